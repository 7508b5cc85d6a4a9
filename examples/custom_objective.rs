//! Define an objective, and train with it: `cargo run -p planetree --example custom_objective`.

use planetree::ConvertRequest;
use planetree::error::Result;
use planetree::train::objective::{Gradients, Objective, Query, QueryBuffers};
use planetree::train::{LogEntry, Observer, TrainRequest, config, train};

const SAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample_data");

/// Huber loss: quadratic for small errors, linear beyond `delta`, so that outliers count less.
#[derive(Debug)]
struct Huber {
    delta: f32,
}

impl Objective for Huber {
    fn gradients(&self, query: &Query<'_>, _buffers: &mut QueryBuffers, out: Gradients<'_>) {
        for (document, (label, score)) in query.labels.iter().zip(query.scores).enumerate() {
            let error = label - *score as f32;
            out.gradients[document] = error.clamp(-self.delta, self.delta);
            out.hessians[document] = 1.0;
        }
    }

    fn has_gradient(&self, _labels: &[f32]) -> bool {
        true
    }

    fn hessians_are_one(&self) -> bool {
        true
    }

    fn weights_rows(&self) -> bool {
        true
    }
}

/// Prints the log of every tenth round.
struct Log;

impl Observer for Log {
    fn phase(&mut self, _name: &str) {}

    fn round(&mut self, round: u32, _rounds: u32, values: &[LogEntry]) {
        if round.is_multiple_of(10) {
            let shown: Vec<String> =
                values.iter().map(|entry| format!("{} {:.4}", entry.metric, entry.value)).collect();
            println!("[{round}] {}", shown.join("  "));
        }
    }

    fn note(&mut self, text: &str) {
        println!("{text}");
    }
}

fn main() -> Result<()> {
    let directory = tempfile::tempdir().expect("cannot create a temporary directory");
    let convert = |part: &str| {
        let (text, dataset) = (format!("{SAMPLE}/{part}.txt"), directory.path().join(part));
        ConvertRequest::new([text.as_str()], &dataset.to_string_lossy()).run()
    };
    let (data, valid) = (convert("train")?, convert("vali")?);
    let plan = config::load(Some("planet"), None, &["num_trees=30".to_owned()])?;
    let request = TrainRequest::new(data.location().clone(), plan)
        .validate("valid", valid.location().clone())
        .objective("huber", || Huber { delta: 1.0 });
    let outcome = train(&request, &mut Log)?;
    println!(
        "{} trees; {}",
        outcome.size().trees,
        outcome.model.configuration.lines().next().unwrap_or_default()
    );
    Ok(())
}
