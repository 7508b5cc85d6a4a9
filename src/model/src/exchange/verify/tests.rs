//! Every export is read again as its target reads it; hand-worked cases show that each emulation has the arithmetic of its
//! target, and damaged files show that a difference is found.

use super::served::ServedModel;
use crate::exchange::tests::{exported, portable};
use crate::exchange::{ExportRequest, ModelFormat, PartSupport, PreparedModel, TargetFeatures, VerifyReport};
use crate::model::{
    Branch, Combine, FeatureNormalisation, LinearFunction, LinearTerm, Model, ModelFeature, Node,
    Normalisation, Part, Split, Tree, TreeEnsemble,
};
use crate::predict::tests::scorer::RandomModel;
use proptest::prelude::*;

fn request(kind: &str) -> ExportRequest {
    ExportRequest { kind: Some(kind.to_owned()), opset: None, name: "ranker".to_owned() }
}

fn prepared(model: &Model) -> PreparedModel {
    PreparedModel::new(model.clone(), None, false).unwrap()
}

fn named(name: &str) -> &'static ModelFormat {
    ModelFormat::named(name).unwrap()
}

fn verify(format: &ModelFormat, model: &Model, bytes: &[u8]) -> VerifyReport {
    format.verify(&prepared(model), bytes, "file", None).unwrap()
}

/// Exports a model in all formats and kinds for trees, and checks that only reported losses change scores.
fn check_trees(model: &Model) {
    for (format, functions) in exported() {
        for kind in functions.kinds.iter().filter(|kind| kind.parts != PartSupport::LinearSums) {
            let opsets: Vec<Option<u32>> = match functions.opsets.is_empty() || kind.name == "double" {
                true => vec![None],
                false => functions.opsets.iter().copied().map(Some).collect(),
            };
            for opset in opsets {
                let request = ExportRequest { opset, ..request(kind.name) };
                let exported = match format.export(model, &request) {
                    Ok(exported) => exported,
                    Err(error) => {
                        assert!(error.to_string().contains("branch of their own"), "{error}");
                        continue;
                    }
                };
                let report = verify(format, model, &exported.bytes);
                let name = format!("{} {}", format.name, kind.name);
                assert_eq!((report.format, report.kind), (format.name, kind.name));
                if exported.losses.is_empty() {
                    assert_eq!(report.mismatches, 0, "{name}: {report:?}");
                }
                // Kinds without parts have a tree of their own for the base score, so every split is tried.
                if format.name != "json" {
                    let splits =
                        model.trees().flat_map(|tree| &tree.nodes).filter(|node| node.split.is_some());
                    assert!(report.split_rows >= 8 * splits.count() as u64, "{name}: {report:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn exports_of_any_trees_have_the_scores_of_the_model(
        seed in any::<u64>(), bag in any::<bool>(), features in 1..8usize, trees in 0..6usize, leaves in 1..40usize,
    ) {
        let combine = if bag { Combine::Mean } else { Combine::Sum };
        check_trees(&portable(&RandomModel { seed, combine, features, trees, max_leaves: leaves, numbers: 30 }));
    }
}

#[test]
fn folded_parts_and_many_trees_have_the_scores_of_the_model() {
    let shape =
        RandomModel { seed: 5, combine: Combine::Sum, features: 4, trees: 3, max_leaves: 9, numbers: 20 };
    let mut model = portable(&shape);
    model.parts.extend(portable(&RandomModel { seed: 6, combine: Combine::Mean, ..shape.clone() }).parts);
    model.intercept = -0.25;
    (model.parts[0].weight, model.parts[1].weight) = (0.7, -2.0);
    check_trees(&model);
    check_trees(&portable(&RandomModel { trees: 2_000, ..shape }));
}

/// A tree that is a chain: each split sends the values above its threshold on.
fn chain(depth: u32) -> Tree {
    let leaf = |depth, value| Node { depth, split: None, value, cover: 1.0 };
    let mut nodes = Vec::new();
    for level in 0..depth {
        let next = nodes.len() as u32;
        let split = Split {
            feature: 0,
            threshold: level as f32,
            missing: Branch::Left,
            left: next + 1,
            right: next + 2,
            middle: None,
            gain: 1.0,
        };
        nodes.push(Node { depth: level, split: Some(split), value: 0.0, cover: 2.0 });
        nodes.push(leaf(level + 1, f64::from(level)));
    }
    nodes.push(leaf(depth, -1.0));
    Tree { nodes }
}

fn model_of(trees: Vec<Tree>, base_score: f64) -> Model {
    let mut model = crate::model::example();
    model.features = vec![ModelFeature::new("a"), ModelFeature::new("b")];
    let ensemble = TreeEnsemble::new(Combine::Sum, base_score, None, trees);
    model.parts = vec![Part::trees(ensemble)];
    model.intercept = 0.0;
    model
}

#[test]
fn trees_may_be_deeper_than_a_stack() {
    let model = model_of(vec![chain(2_000)], 0.5);
    assert_eq!(model.fault(), None);
    check_trees(&model);
}

/// A tree with one split.
fn stump(threshold: f32, missing: Branch, left: f64, right: f64) -> Tree {
    let leaf = |value| Node { depth: 1, split: None, value, cover: 1.0 };
    let split = Split { feature: 0, threshold, missing, left: 1, right: 2, middle: None, gain: 1.0 };
    Tree {
        nodes: vec![Node { depth: 0, split: Some(split), value: 0.0, cover: 2.0 }, leaf(left), leaf(right)],
    }
}

/// Scores rows with a file as the target would.
fn served_scores(format: &str, bytes: &[u8], model: &Model, rows: &[[f32; 2]]) -> Vec<f64> {
    let served = (named(format).exporter().unwrap().served)(bytes, &model.features).unwrap();
    let score = |row: &[f32; 2]| match &served {
        ServedModel::Trees(trees) => trees.score(row),
        ServedModel::Linear(function) => function.score(row),
        ServedModel::Whole(_) => unreachable!("a format of another program"),
    };
    rows.iter().map(score).collect()
}

#[test]
fn the_emulations_have_the_arithmetic_of_their_targets() {
    let model = model_of(vec![], 0.0);
    let nan = f32::NAN;
    // Solr: `x <= t + 0.000001`, and absent values are 0.
    let tree = r#"{"class":"org.apache.solr.ltr.model.MultipleAdditiveTreesModel","features":[{"name":"a"},{"name":"b"}],"params":
        {"trees":[{"weight":"1","root":{"feature":"a","threshold":"0.5","left":{"value":"1"},"right":{"value":"2"}}}]}}"#;
    let rows = [[0.5, 0.0], [0.500_000_9, 0.0], [0.500_002, 0.0], [nan, 0.0]];
    assert_eq!(served_scores("solr", tree.as_bytes(), &model, &rows), [1.0, 1.0, 2.0, 1.0]);
    // The plugins: left if `t > x`; a missing value follows `missing`.
    let tree = r#"{"objective":"rank:pairwise","splits":[{"nodeid":0,"depth":0,"split":"a","split_condition":0.5,"yes":1,"no":2,"missing":2,
        "children":[{"nodeid":1,"leaf":1},{"nodeid":2,"leaf":2}]}]}"#;
    let rows = [[0.5, 0.0], [0.499_999_97, 0.0], [nan, 0.0]];
    assert_eq!(served_scores("elasticsearch-ltr", tree.as_bytes(), &model, &rows), [2.0, 1.0, 2.0]);
    // Vespa: `x < t`, although the file says `<=`.
    let tree = r#"{"objective":"regression","feature_names":["a","b"],"tree_info":[{"tree_structure":{"split_feature":0,"threshold":0.5,
        "decision_type":"<=","default_left":true,"left_child":{"leaf_value":1},"right_child":{"leaf_value":2}}}]}"#;
    assert_eq!(served_scores("vespa", tree.as_bytes(), &model, &rows), [2.0, 1.0, 1.0]);
    // RankLib: the sum is rounded to 32 bits after every tree, so 2^24 + 1 + 1 is 2^24.
    let tree = |value: &str| {
        format!("<tree id=\"1\" weight=\"1.0\">\n<split>\n<output> {value} </output>\n</split>\n</tree>\n")
    };
    let text = format!(
        "## LambdaMART\n\n<ensemble>\n{}{}{}</ensemble>\n",
        tree("16777216"),
        tree("1.0"),
        tree("1.0")
    );
    assert_eq!(served_scores("ranklib", text.as_bytes(), &model, &[[0.0, 0.0]]), [16_777_216.0]);
    // Random Forests: the mean of the ensembles, in 64 bits, so (2^24 + 1 + 1) / 3 loses nothing.
    let bags: String = ["16777216", "1.0", "1.0"]
        .iter()
        .map(|value| format!("<ensemble>\n{}</ensemble>\n", tree(value)))
        .collect();
    let text = format!("## Random Forests\n\n{bags}");
    assert_eq!(served_scores("ranklib", text.as_bytes(), &model, &[[0.0, 0.0]]), [5_592_406.0]);
    let text = "## Linear Regression\n\n0:0.5 1:2.0 2:-1.0\n";
    assert_eq!(served_scores("ranklib", text.as_bytes(), &model, &[[1.0, 3.0], [nan, 1.0]]), [-0.5, -0.5]);
}

#[test]
fn infinite_values_that_elasticsearch_takes_as_missing_are_counted_apart() {
    let model = model_of(vec![stump(0.5, Branch::Left, 1.0, 2.0)], 0.0);
    let bytes = named("elastic").export(&model, &request("trees")).unwrap().bytes;
    let report = verify(named("elastic"), &model, &bytes);
    assert_eq!(report.mismatches, 0, "{report:?}");
    assert!(report.blind_rows > 0 && report.blind_reason.unwrap().contains("infinite"), "{report:?}");
    let rows = [[f32::INFINITY, 0.0], [0.5, 0.0], [0.6, 0.0]];
    assert_eq!(served_scores("elastic", &bytes, &model, &rows), [1.0, 1.0, 2.0]);
}

#[test]
fn damaged_exports_are_mismatches_with_a_reason() {
    let model = model_of(vec![stump(0.5, Branch::Right, 1.0, 2.0)], 0.0);
    let after = format!("{:?}", 0.5f32.next_up());
    for (format, kind, from, to, expected) in [
        (
            "solr",
            "trees",
            "\"threshold\":\"0.499999\"",
            "\"threshold\":\"0.5\"",
            "tree 0: a = 0.50000006 goes right here",
        ),
        ("solr", "trees", "\"missing\":\"right\"", "\"missing\":\"left\"", "a = missing goes right here"),
        ("elasticsearch-ltr", "xgboost+json", after.as_str(), "0.5", "a = 0.5 goes left here"),
        (
            "elasticsearch-ltr",
            "xgboost+json",
            "\"missing\":2",
            "\"missing\":1",
            "a = missing goes right here",
        ),
        ("vespa", "xgboost", after.as_str(), "0.5", "a = 0.5 goes left here"),
        ("vespa", "lightgbm", "\"leaf_value\":2.0", "\"leaf_value\":2.5", "the value of a leaf differs"),
        ("lightgbm", "trees", "threshold=0.5", "threshold=0.4999", "a = 0.5 goes left here"),
        ("xgboost", "trees", "\"default_left\":[0", "\"default_left\":[1", "a = missing goes right here"),
        ("pmml", "trees", "defaultChild=\"2\"", "defaultChild=\"1\"", "a = missing goes right here"),
        ("pmml", "trees", "score=\"2.0\"", "score=\"2.0000001\"", "the value of a leaf differs"),
    ] {
        let format = named(format);
        let bytes = format.export(&model, &request(kind)).unwrap().bytes;
        assert_eq!(verify(format, &model, &bytes).mismatches, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.contains(from), "{}: {from}: {text}", format.name);
        let report = verify(format, &model, text.replace(from, to).as_bytes());
        let first = report.first.expect("a mismatch");
        assert!(report.mismatches > 0 && first.reason.contains(expected), "{}: {first:?}", format.name);
        // The largest difference is that of the mismatches, too.
        let difference = (first.target - first.planetree).abs();
        assert!(difference > 0.0 && report.largest_difference >= difference, "{}: {first:?}", format.name);
    }
    // Bytes that are not a model of the format are an error, not a mismatch.
    for (format, _) in exported() {
        for bytes in [&b""[..], b"{}", b"<x>", &[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]] {
            assert!(format.verify(&prepared(&model), bytes, "file", None).is_err(), "{}", format.name);
        }
    }
}

/// A query of one document has the same normalised score whatever the trees say.
#[test]
fn damaged_files_of_models_that_compare_documents_are_refused() {
    let mut model = model_of(vec![stump(0.5, Branch::Right, 1.25, 2.0)], 0.0);
    model.parts[0].normalisation = Normalisation::Minmax;
    let format = named("json");
    let text = String::from_utf8(format.export(&model, &request("trees")).unwrap().bytes).unwrap();
    assert_eq!(verify(format, &model, text.as_bytes()).mismatches, 0);
    for (from, to) in [("1.25", "1.75"), ("0.5", "0.25")] {
        assert!(text.contains(from), "{from}: {text}");
        let damaged = text.replace(from, to);
        let error =
            format.verify(&prepared(&model), damaged.as_bytes(), "file", None).unwrap_err().to_string();
        assert!(error.contains("a model with other parts"), "{error}");
    }
}

#[test]
fn a_base_score_that_is_lost_is_a_mismatch() {
    let model = model_of(vec![stump(0.5, Branch::Right, 1.0, 2.0)], 3.0);
    let format = named("xgboost");
    let text = String::from_utf8(format.export(&model, &request("trees")).unwrap().bytes).unwrap();
    let report =
        verify(format, &model, text.replace("\"base_score\":\"3E0\"", "\"base_score\":\"2E0\"").as_bytes());
    assert!(report.first.unwrap().reason.contains("the base score differs"));
}

fn linear_model(normalisation: FeatureNormalisation, fill: Option<f32>) -> Model {
    let term = |feature, weight| LinearTerm {
        feature,
        weight,
        centre: 2.0,
        spread: 4.0,
        mean: 0.0,
        gain: 1.0,
        cover: 10.0,
    };
    let mut model = model_of(vec![], 0.0);
    let terms = vec![term(0, 0.75), term(1, -1.5)];
    model.parts = vec![Part::linear(LinearFunction::new(0.25, normalisation, terms))];
    model.parts[0].weight = 2.0;
    model.features.iter_mut().for_each(|feature| feature.fill = fill);
    model
}

#[test]
fn linear_models_go_to_the_linear_kinds() {
    for (normalisation, fill) in [
        (FeatureNormalisation::None, None),
        (FeatureNormalisation::None, Some(3.0)),
        (FeatureNormalisation::Z, None),
        (FeatureNormalisation::Minmax, Some(0.0)),
    ] {
        let model = linear_model(normalisation, fill);
        for (format, functions) in exported() {
            let Ok(exported) = format.export(&model, &ExportRequest::default()) else {
                assert!(functions.kinds.iter().all(|kind| kind.name != "linear"), "{}", format.name);
                continue;
            };
            let report = verify(format, &model, &exported.bytes);
            assert_eq!(report.kind, "linear", "{}", format.name);
            // Missing values count as 0 at most targets, so another value is a loss there.
            let counts_as =
                fill.map_or(if normalisation == FeatureNormalisation::None { 0.0 } else { 2.0 }, f64::from);
            let is_lost = counts_as != 0.0 && format.name != "pmml";
            assert_eq!(!exported.losses.is_empty(), is_lost, "{}", format.name);
            assert_eq!(report.mismatches > 0, is_lost, "{}: {report:?}", format.name);
        }
    }
}

/// Weights, centres and spreads over many orders of magnitude, as those of features that are counts, lengths and shares.
fn uneven_model(normalisation: FeatureNormalisation) -> Model {
    let mut model = model_of(vec![], 0.0);
    model.features = (1..=40).map(|feature| ModelFeature::new(format!("f{feature}"))).collect();
    let term = |feature: u32| {
        let spread = 10f64.powi(feature as i32 % 11 - 5);
        let (weight, centre) = (0.1 + f64::from(feature % 7), spread * f64::from(feature % 3));
        let (centre, spread) = match normalisation {
            FeatureNormalisation::None => (0.0, 1.0),
            _ => (centre, spread),
        };
        LinearTerm { feature, weight, centre, spread, mean: 0.0, gain: 1.0, cover: 10.0 }
    };
    let function = LinearFunction::new(0.25, normalisation, (0..40).map(term).collect());
    model.parts = vec![Part::linear(function)];
    model
}

#[test]
fn a_weight_that_differs_a_little_shows_on_most_rows() {
    for normalisation in [FeatureNormalisation::None, FeatureNormalisation::Z, FeatureNormalisation::Minmax] {
        let model = uneven_model(normalisation);
        for (format, _) in exported() {
            let Ok(exported) = format.export(&model, &ExportRequest::default()) else { continue };
            let bytes = exported.bytes;
            let same = verify(format, &model, &bytes);
            let name = format!("{}, {normalisation:?}", format.name);
            if exported.losses.is_empty() {
                assert_eq!(same.mismatches, 0, "{name}: {same:?}");
                // Scores of rows with a value of 1e30 may differ by more than 1.
                assert!(same.is_relative && same.largest_difference < 1e-5, "{name}: {same:?}");
            }
            for feature in 0..model.features.len() {
                let mut other = model.clone();
                let Some(function) = other.parts[0].family.linear() else { panic!("a linear function") };
                let mut terms = function.terms.clone();
                terms[feature].weight *= 1.02;
                let function = LinearFunction::new(function.base_score, normalisation, terms);
                other.parts = vec![Part::linear(function)];
                let report = verify(format, &other, &bytes);
                assert!(2 * report.mismatches > report.whole_rows, "{name}, {feature}: {report:?}");
                assert!(report.largest_difference > 1e-5, "{name}, {feature}: {report:?}");
            }
        }
    }
}

#[test]
fn features_of_the_target_have_its_order_and_names() {
    let model = model_of(vec![stump(0.5, Branch::Right, 1.0, 2.0)], 0.0);
    let list = TargetFeatures::parse("# ours\ttheirs\nb\na\tprice\n", "list").unwrap();
    let prepared = PreparedModel::new(model.clone(), Some(&list), false).unwrap();
    let text = |format: &str, kind: &str| {
        String::from_utf8(named(format).export(&prepared.model, &request(kind)).unwrap().bytes).unwrap()
    };
    assert!(text("solr", "trees").contains(r#""features":[{"name":"b"},{"name":"price"}]"#));
    assert!(text("xgboost", "trees").contains("\"split_indices\":[1,0,0]"));
    for (list, expected) in [
        ("b\n", "feature a is not listed, but the model uses it"),
        ("a\nbb\n", "the model has no feature bb"),
    ] {
        let list = TargetFeatures::parse(list, "list").unwrap();
        let error = PreparedModel::new(model.clone(), Some(&list), false).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
    for list in ["", "a\na\n", "a\tx\nb\tx\n", "a\t\n"] {
        assert!(TargetFeatures::parse(list, "list").is_err(), "{list:?}");
    }
}

#[test]
fn shifted_scores_are_never_negative() {
    let shape =
        RandomModel { seed: 9, combine: Combine::Mean, features: 3, trees: 9, max_leaves: 9, numbers: 20 };
    let mut model = portable(&shape);
    model.only_trees_mut().unwrap().base_score = -5.0;
    let prepared = PreparedModel::new(model.clone(), None, true).unwrap();
    assert!(prepared.shift > 0.0);
    // RankLib adds 32-bit sums in another order, and Solr cannot express the threshold -1: both have tests of their own.
    for (format, functions) in exported().filter(|(format, _)| !["ranklib", "solr"].contains(&format.name)) {
        let bytes = format.export(&prepared.model, &request(functions.kinds[0].name)).unwrap().bytes;
        let report = format.verify(&prepared, &bytes, "file", None).unwrap();
        assert_eq!(report.mismatches, 0, "{}: {report:?}", format.name);
        let served = (functions.served)(&bytes, &model.features).unwrap();
        if let ServedModel::Trees(trees) = served {
            // All leaves at their smallest at once.
            let least = |nodes: &Vec<super::served::ServedNode>| {
                let values = nodes.iter().filter_map(|node| match node {
                    super::served::ServedNode::Leaf(value) => Some(*value),
                    super::served::ServedNode::Split(_) => None,
                });
                values.fold(f64::INFINITY, f64::min)
            };
            let count = if trees.rules.is_mean { trees.trees.len() as f64 } else { 1.0 };
            let sum: f64 = trees.trees.iter().map(least).sum();
            assert!(sum / count + trees.base_score >= 0.0, "{}", format.name);
        }
    }
    assert!(PreparedModel::new(linear_model(FeatureNormalisation::None, None), None, true).is_err());
    // The leaves of these models say nothing about their smallest score.
    let mut normalised = model.clone();
    normalised.parts[0].normalisation = Normalisation::Z;
    let mut pairwise = model;
    pairwise.only_trees_mut().unwrap().combine = Combine::Wins;
    for model in [normalised, pairwise] {
        let error = PreparedModel::new(model, None, true).err().unwrap().to_string();
        assert!(error.contains("no known minimum"), "{error}");
    }
}
