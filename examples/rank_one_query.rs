//! Rank the documents of one query in memory: `cargo run -p planetree --example rank_one_query`.

use planetree::error::Result;
use planetree::train::{Silent, TrainRequest, config, train};
use planetree::{ConvertRequest, Ranker};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data");

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("cannot create a temporary directory");
    let dataset = directory.path().join("train");
    let data =
        ConvertRequest::new([format!("{SAMPLE}/train.txt").as_str()], &dataset.to_string_lossy()).run()?;
    let plan = config::load(Some("lambdamart"), None, &["num_trees=50".to_owned()])?;
    let outcome = train(&TrainRequest::new(data.location().clone(), plan), &mut Silent)?;

    // A service reads the model once (`Model::read`), keeps the ranker, and calls it for every query.
    let ranker = Ranker::new(&outcome.model)?;
    let features = ranker.features().len();
    let documents: Vec<Vec<f32>> = (0..5)
        .map(|document| {
            (0..features).map(|feature| ((document * 7 + feature * 3) % 10) as f32 / 10.0).collect()
        })
        .collect();
    let scores = ranker.scores(&documents)?;
    for (rank, document) in ranker.rank(&documents)?.into_iter().enumerate() {
        println!("{}. document {document}: {:.4}", rank + 1, scores[document]);
    }
    Ok(())
}
