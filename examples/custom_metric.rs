//! Define a metric, and use it for evaluation and early stopping: `cargo run -p planetree --example custom_metric`.

use planetree::ConvertRequest;
use planetree::error::Result;
use planetree::metric::{Metric, QueryRows};
use planetree::train::{Silent, TrainRequest, config, train};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data");

/// Whether the document with the highest score has the highest label of its query.
fn best_on_top(rows: &QueryRows<'_>) -> Option<f64> {
    let top =
        (0..rows.scores.len()).max_by(|one, other| rows.scores[*one].total_cmp(&rows.scores[*other]))?;
    let best = rows.labels.iter().copied().fold(f32::MIN, f32::max);
    // Queries without relevant documents are not counted.
    (best > 0.0).then(|| f64::from(rows.labels[top] == best))
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("cannot create a temporary directory");
    let convert = |part: &str| {
        let (text, dataset) = (format!("{SAMPLE}/{part}.txt"), directory.path().join(part));
        ConvertRequest::new([text.as_str()], &dataset.to_string_lossy()).run()
    };
    let (data, valid) = (convert("train")?, convert("vali")?);
    let set = ["num_trees=100".to_owned(), "early_stopping_rounds=20".to_owned()];
    let mut plan = config::load(Some("lambdamart"), None, &set)?;
    plan.stages[0].metrics = vec![Metric::custom("best_on_top", true, best_on_top), Metric::Ndcg(Some(10))];
    let request =
        TrainRequest::new(data.location().clone(), plan).validate("valid", valid.location().clone());
    let outcome = train(&request, &mut Silent)?;
    match outcome.best {
        Some(best) => println!("best round {}: {} {:.4}", best.round, outcome.log[0].metric, best.value),
        None => println!("no best round"),
    }
    Ok(())
}
