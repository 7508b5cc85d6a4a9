//! Train on one Parquet file and evaluate on another: `cargo run -p planetree --example train_and_evaluate [TRAIN TEST]`.
//!
//! The files may be Parquet, CSV or LETOR text with query, label and feature columns. Without arguments, the sample data
//! are converted to Parquet first.

use planetree::error::Result;
use planetree::evaluate::{EvaluateRequest, EvaluationSummary, Ranking, evaluate};
use planetree::metric::{Convention, Metric};
use planetree::storage::{Access, Location};
use planetree::train::{Silent, TrainRequest, config, train};
use planetree::{ConvertRequest, write_predictions};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data");

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("cannot create a temporary directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let location = |name: &str| Location::parse(&path(name), Access::default());

    let files: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let (train_file, test_file) = match files.as_slice() {
        [train, test] => (train.clone(), test.clone()),
        // A dataset is a directory of Parquet files, so it can be an input, too.
        _ => {
            ConvertRequest::new([format!("{SAMPLE}/train.txt").as_str()], &path("train-parquet")).run()?;
            ConvertRequest::new([format!("{SAMPLE}/test.txt").as_str()], &path("test-parquet")).run()?;
            (path("train-parquet"), path("test-parquet"))
        }
    };
    let train_data = ConvertRequest::new([train_file.as_str()], &path("train")).run()?;
    let test_data = ConvertRequest::new([test_file.as_str()], &path("test")).run()?;

    let plan = config::load(Some("lambdamart"), None, &["num_trees=50".to_owned()])?;
    let outcome = train(&TrainRequest::new(train_data.location().clone(), plan), &mut Silent)?;
    outcome.model.write(&location("model.parquet")?)?;
    println!("{} trees on {} rows", outcome.size().trees, train_data.manifest().rows);

    write_predictions(&location("model.parquet")?, &test_data, &location("predictions.parquet")?)?;
    let metrics = vec![Metric::Ndcg(Some(10)), Metric::Err(None)];
    let ranking = Ranking::Predictions(location("predictions.parquet")?);
    let results = evaluate(&ranking, &EvaluateRequest::new(metrics.clone(), Convention::default()))?;
    for summary in EvaluationSummary::of(&results, &metrics, 0).metrics {
        println!("{}: {:.4}", summary.metric, summary.mean.unwrap_or(f64::NAN));
    }
    Ok(())
}
