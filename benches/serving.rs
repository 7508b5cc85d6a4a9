//! Measures how long a service waits for scores: `cargo bench -p planetree --bench serving -- MODEL ROWS FEATURES`. ROWS is a
//! file of 32-bit floats, row by row. `benches/serving.py` calls it and compares the numbers with those of other programs.

use planetree::error::Result;
use planetree::model::Model;
use planetree::predict::Scorer;
use planetree::storage::{Access, Location};
use std::hint::black_box;
use std::time::Instant;

fn main() -> Result<()> {
    // Cargo adds an option of its own.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let [model, rows, features] = arguments.as_slice() else {
        eprintln!("usage: serving MODEL ROWS FEATURES");
        return Ok(());
    };
    let model = Model::read(&Location::parse(model, Access::default())?)?;
    let features: usize = features.parse().expect("FEATURES is a number");
    let bytes = std::fs::read(rows).expect("ROWS is a file");
    let rows: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|value| f32::from_le_bytes([value[0], value[1], value[2], value[3]]))
        .collect();
    let scorer = Scorer::new(&model).expect("a model without start scores");
    let mut line = "planetree   ".to_owned();
    for (documents, calls) in [(1, 20_000), (100, 2_000), (200_000, 5)] {
        let documents = documents.min(rows.len() / features);
        let mut scores = vec![0.0; documents];
        let mut times: Vec<f64> = (0..calls)
            .map(|call| {
                // Another document each time, as in a service.
                let first = call * documents % (rows.len() / features - documents + 1);
                let rows = &rows[first * features..(first + documents) * features];
                let begun = Instant::now();
                scorer.score(black_box(rows), black_box(&mut scores));
                begun.elapsed().as_secs_f64() * 1e6
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        line += &format!(" {documents} documents {median:.1} ");
    }
    println!("{line}");
    Ok(())
}
