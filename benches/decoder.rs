//! Speed of decoding LETOR text on one thread: `cargo bench -p planetree --bench decoder -- FILE`.
//! Compare with a minimal C parser of the same file on the same machine.

use planetree::ingest::decode::letor::LetorDecoder;
use planetree::ingest::decode::{Decoder, Lines};
use planetree::rows::BlockBuilder;
use std::time::Instant;

fn main() {
    let Some(path) = std::env::args().skip(1).find(|word| !word.starts_with("--")) else {
        println!("usage: cargo bench -p planetree --bench decoder -- FILE (LETOR text)");
        return;
    };
    let text = std::fs::read(path).expect("a readable file");
    let decoder = LetorDecoder {
        index_base: 1,
        max_features: 10_000,
        lenient: false,
        query_in_line: true,
        unlabelled: false,
    };
    for _ in 0..3 {
        let mut builder = BlockBuilder::default();
        let (mut rows, mut entries, mut at) = (0, 0, 0);
        let start = Instant::now();
        while at < text.len() {
            let end = (at + (1 << 20)).min(text.len());
            let end = memchr::memchr(b'\n', &text[end..]).map_or(text.len(), |more| end + more + 1);
            let lines = Lines { text: &text[at..end], first_line: 1 };
            decoder.decode(lines, &mut builder).expect("valid lines");
            let block = builder.finish();
            rows += block.rows();
            entries += block.features.entries();
            at = end;
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{rows} rows, {entries} values: {seconds:.2} s = {:.0} MB/s",
            text.len() as f64 / seconds / 1e6
        );
    }
}
