//! Time to explain the rows of a dataset: `cargo bench -p planetree --bench explain -- DATASET MODEL [THREADS]` prints
//! seconds, best of three. `benches/explain.py` compares with LightGBM.

use planetree::dataset::DatasetReader;
use planetree::explain::explain;
use planetree::model::Model;
use planetree::storage::{Access, Location};
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let [dataset, model, threads @ ..] = words.as_slice() else {
        println!("usage: cargo bench -p planetree --bench explain -- DATASET MODEL [THREADS]");
        return;
    };
    let threads = threads.first().map_or(2, |threads| threads.parse().expect("a number of threads"));
    let place = |text: &str| Location::parse(text, Access::default()).expect("a path");
    let model = Model::read(&place(model)).expect("a model");
    let reader = DatasetReader::open(&place(dataset)).expect("a dataset");
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let begun = Instant::now();
        explain(&reader, &model, threads, &mut |_| Ok(())).expect("the model fits the dataset");
        best = best.min(begun.elapsed().as_secs_f64());
    }
    println!("{best:.3}");
}
