//! Tests that predictions do not depend on the codes that a conversion assigns to categories.

use super::stream::dataset;
use crate::explain::explain;
use crate::model::{Branch, Combine, Model, ModelFeature, Node, Origin, Part, Split, Tree, TreeEnsemble};
use crate::predict::{GroupPredictor, predict};
use planetree_data::dataset::DatasetReader;
use planetree_data::ingest::InputFormat;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Categories that differ in case, blanks, quotes and non-ASCII letters.
const WORDS: [&str; 8] = ["red", "Red", "blue ", "größe", "a,b", "\"x\"", "nan word", "z"];

/// A document: the number of its query and, for each of the two features, the index of its category in `WORDS`. An
/// index beyond the end stands for a missing value.
type Document = (u8, usize, usize);

fn table(documents: &[Document]) -> String {
    let quoted = |index: usize| match WORDS.get(index) {
        Some(word) => format!("\"{}\"", word.replace('"', "\"\"")),
        None => String::new(),
    };
    let mut text = "query_id,doc_id,label,a,b\n".to_owned();
    for (number, (query, a, b)) in documents.iter().enumerate() {
        text.push_str(&format!("q{query},d{number},0,{},{}\n", quoted(*a), quoted(*b)));
    }
    text
}

/// Creates a model with one tree for every threshold between two codes. A score shows the branch taken in every tree.
fn model(reader: &DatasetReader, missing: [Branch; 2], combine: Combine) -> Model {
    let manifest = reader.manifest();
    let words = |name: &str| {
        let column = manifest.categories.iter().find(|column| column.feature == name);
        column.map(|column| column.words.clone()).unwrap_or_default()
    };
    let features: Vec<ModelFeature> =
        ["a", "b"].map(|name| ModelFeature { words: words(name), ..ModelFeature::new(name) }).to_vec();
    let leaf = |value: f64| Node { depth: 1, split: None, value, cover: 1.0 };
    let mut trees = Vec::new();
    for (feature, missing) in (0..2u32).zip(missing) {
        for code in 0..features[feature as usize].words.len() {
            let middle = (missing == Branch::Middle).then_some(3);
            let threshold = code as f32 + 0.5;
            let split = Split { feature, threshold, missing, left: 1, right: 2, middle, gain: 1.0 };
            let root = Node { depth: 0, split: Some(split), value: 0.0, cover: 2.0 };
            let value = 2f64.powi(-(trees.len() as i32));
            let mut nodes = vec![root, leaf(value), leaf(-value)];
            nodes.extend(middle.map(|_| leaf(value / 3.0)));
            trees.push(Tree { nodes });
        }
    }
    Model {
        intercept: 0.0,
        rounds: trees.len() as u32,
        parts: vec![Part::trees(TreeEnsemble::new(combine, 0.0, None, trees))],
        groups: Vec::new(),
        features,
        configuration: String::new(),
        data: Vec::new(),
        start_scores: None,
        origin: Origin::default(),
    }
}

/// Returns the bits of the score of every document, by document id.
fn scores(reader: &DatasetReader, model: &Model) -> BTreeMap<String, u64> {
    let mut scores = BTreeMap::new();
    let mut documents = Vec::new();
    predict(reader, model, 2, &mut |group| {
        for (document, score) in group.doc_ids.iter().zip(&group.scores) {
            documents.push((document.unwrap().to_owned(), *score));
            scores.insert(document.unwrap().to_owned(), score.to_bits());
        }
        Ok(())
    })
    .unwrap();
    if model.only_trees().unwrap().combine != Combine::Wins {
        // SQL and explanations use other code, but must agree with these scores.
        let scorer = GroupPredictor::new(model, reader).unwrap();
        let mut all = Vec::new();
        for id in reader.groups() {
            all.extend(scorer.scores(reader, &reader.open_group(id).unwrap()).unwrap());
        }
        assert_eq!(all, documents.iter().map(|(_, score)| *score).collect::<Vec<_>>());
        let mut sums = Vec::new();
        let report = explain(reader, model, 1, &mut |rows| {
            sums.extend(rows.contributions.chunks(2).map(|row| row[0] + row[1]));
            Ok(())
        });
        let expected = report.unwrap().expected_value;
        for ((_, score), sum) in documents.iter().zip(sums) {
            assert!((score - expected - sum).abs() < 1e-9, "{score} is not {expected} + {sum}");
        }
    }
    scores
}

fn documents() -> impl Strategy<Value = Vec<Document>> {
    let document = (0u8..5, 0..WORDS.len() + 1, 0..WORDS.len() + 1);
    prop::collection::vec(document, 2..30).prop_map(|mut documents| {
        documents.sort_by_key(|document| document.0);
        // A column without any category would be converted to a numeric column.
        (documents[0].1, documents[0].2) = (0, 1);
        documents
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn predictions_do_not_depend_on_the_codes_of_categories(
        known in documents(),
        scored in documents(),
        order in any::<prop::sample::Index>(),
        missing in prop::sample::select(vec![Branch::Left, Branch::Right, Branch::Middle]),
        combine in prop::sample::select(vec![Combine::Sum, Combine::Mean, Combine::Wins]),
    ) {
        let rooms = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let learned = dataset(rooms[0].path(), &table(&known), InputFormat::Csv);
        let mut model = model(&learned, [missing, Branch::Left], combine);
        if combine == Combine::Wins {
            // A difference is missing if either value is missing, so missing values are filled.
            model.features.iter_mut().for_each(|feature| feature.fill = Some(0.0));
        }
        // The same documents with the same ids, but with the queries in another order, so that categories get other
        // codes.
        let text = table(&scored);
        let (header, lines) = text.split_once('\n').unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        let query = |line: &str| line.split(',').next().unwrap().to_owned();
        let queries: Vec<&[&str]> = lines.chunk_by(|one, other| query(one) == query(other)).collect();
        let first = order.index(queries.len());
        let reordered: Vec<&str> = queries[first..].iter().chain(&queries[..first]).rev().copied().flatten().copied().collect();
        let reordered = format!("{header}\n{}\n", reordered.join("\n"));
        let one = dataset(rooms[1].path(), &text, InputFormat::Csv);
        let other = dataset(rooms[2].path(), &reordered, InputFormat::Csv);
        prop_assert_eq!(scores(&one, &model), scores(&other, &model));
    }
}
