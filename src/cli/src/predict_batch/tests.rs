use super::*;
use planetree_model::model::{
    Branch, Combine, ModelFeature, Node, Normalisation, Origin, Part, Split, Tree, TreeEnsemble,
};

/// A model whose score is 1 if the first feature is above 0, plus 10 if the second is. Missing values score 5 and 50.
fn model(names: [&str; 2]) -> Model {
    let leaf = |value| Node { depth: 1, split: None, value, cover: 1.0 };
    let tree = |feature: u32, above: f64| {
        let (missing, middle) = (Branch::Middle, Some(3));
        let split = Split { feature, threshold: 0.0, missing, left: 1, right: 2, middle, gain: 1.0 };
        let root = Node { depth: 0, split: Some(split), value: 0.0, cover: 1.0 };
        Tree { nodes: vec![root, leaf(0.0), leaf(above), leaf(5.0 * above)] }
    };
    let trees = vec![tree(0, 1.0), tree(1, 10.0)];
    let (combine, base_score, base_feature) = (Combine::Sum, 0.0, None);
    Model {
        intercept: 0.0,
        parts: vec![Part::trees(TreeEnsemble::new(combine, base_score, base_feature, trees))],
        groups: Vec::new(),
        rounds: 2,
        features: names.map(ModelFeature::new).to_vec(),
        configuration: String::new(),
        data: Vec::new(),
        start_scores: None,
        origin: Origin::default(),
    }
}

/// The scores of each query.
fn scores(model: &Model, index_base: u32, text: &str) -> Result<Vec<Vec<f64>>> {
    let mut all = Vec::new();
    let report = score_input(model, index_base, text.as_bytes(), &mut |scores| {
        all.push(scores.to_vec());
        Ok(ControlFlow::Continue(()))
    })?;
    assert_eq!(report.queries as usize, all.len());
    assert_eq!(report.rows as usize, all.iter().map(Vec::len).sum::<usize>());
    Ok(all)
}

#[test]
fn a_query_ends_at_an_empty_line_at_another_query_and_at_the_end() {
    let text =
        "1 qid:a 1:1\nqid:a 2:3 # d2\n# a comment\n0 qid:b 1:-1 2:NaN\r\n\n\n0 qid:b 1:1 2:1\n2 qid:c 7:1";
    let found = scores(&model(["f1", "f2"]), 1, text).unwrap();
    assert_eq!(found, [vec![51.0, 15.0], vec![50.0], vec![11.0], vec![55.0]]);
    assert_eq!(scores(&model(["f1", "f2"]), 1, "\n\n").unwrap(), Vec::<Vec<f64>>::new());
}

#[test]
fn features_are_found_by_number_or_in_the_order_of_the_model() {
    let text = "qid:a 1:1 2:-1 3:-1\n";
    assert_eq!(scores(&model(["f3", "f1"]), 1, text).unwrap(), [[10.0]]);
    assert_eq!(scores(&model(["bm25", "f9"]), 1, text).unwrap(), [[1.0]]);
    // Datasets that were converted with --index-base 0 have the same names.
    assert_eq!(scores(&model(["f3", "f1"]), 0, "qid:a 0:1 2:-1\n").unwrap(), [[10.0]]);
}

#[test]
fn a_comment_with_a_query_id_does_not_end_a_query() {
    let mut model = model(["f1", "f2"]);
    model.parts[0].normalisation = Normalisation::Rank;
    let found = scores(&model, 1, "0 qid:1 1:1 2:1\n# qid:2 comment\n #qid:3\n1 qid:1 1:-1 2:-1\n").unwrap();
    assert_eq!(found, scores(&model, 1, "0 qid:1 1:1 2:1\n1 qid:1 1:-1 2:-1\n").unwrap());
    assert_eq!(found[0].len(), 2);
}

#[test]
fn a_byte_order_mark_before_the_first_line_is_skipped() {
    let found = scores(&model(["f1", "f2"]), 1, "\u{feff}1 qid:a 1:1 2:1\n").unwrap();
    assert_eq!(found, [[11.0]]);
    assert!(scores(&model(["f1", "f2"]), 1, "1 qid:a 1:1\n\u{feff}1 qid:a 1:1\n").is_err());
}

#[test]
fn scores_that_depend_on_the_query_see_all_of_it() {
    let mut model = model(["f1", "f2"]);
    model.parts[0].normalisation = Normalisation::Rank;
    let together = scores(&model, 1, "qid:a 1:1 2:1\nqid:a 1:-1 2:-1\n").unwrap();
    assert_ne!(together[0][0], together[0][1]);
    let alone = scores(&model, 1, "qid:a 1:1 2:1\n\nqid:a 1:-1 2:-1\n").unwrap();
    assert_eq!(alone[0], alone[1]);
}

#[test]
fn faults_name_the_line() {
    let error = |text: &str| scores(&model(["f1", "f2"]), 1, text).unwrap_err().to_string();
    let found = error("1 qid:a 1:1\n\n1 qid:a 1:x\n");
    assert!(found.contains("standard input:3:11"), "{found}");
    assert!(error("1 1:1\n").contains("standard input:1"), "no query id");
    assert!(error("1 qid:a 99999:1\n").contains("standard input:1"), "a feature beyond all limits");
    let mut words = model(["f1", "f2"]);
    words.features[0].words = vec!["red".to_owned()];
    let found = scores(&words, 1, "").unwrap_err().to_string();
    assert!(found.contains("feature f1 is categorical"), "{found}");
}

/// Ends like a pipe whose reader is gone.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_is_read_any_more_when_nobody_reads_the_scores() {
    let model = model(["f1", "f2"]);
    let text = "qid:a 1:1\n\nqid:b this would be a fault\n";
    let mut print =
        |scores: &[f64]| print_scores(&mut Closed, scores, |text, score| writeln!(text, "{score}"));
    assert_eq!(score_input(&model, 1, text.as_bytes(), &mut print).unwrap().queries, 0);
}

#[test]
fn latencies_are_sorted() {
    let report = BatchReport { queries: 4, rows: 4, latencies: vec![4.0, 1.0, 3.0, 2.0] };
    assert_eq!((report.latency(0.0), report.latency(0.5), report.latency(0.99)), (1.0, 3.0, 4.0));
    assert_eq!(BatchReport::default().latency(0.5), 0.0);
}
