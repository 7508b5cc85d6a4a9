//! Generates synthetic ranking data of any size that resemble well-known datasets. Every query has its own stream of
//! random numbers, so the files do not depend on the number of threads.

mod shape;
mod text;

pub use shape::SampleShape;

use planetree_base::error::{Error, Result};
use planetree_base::storage::{FileOutput, Head, Location, interrupt, replaces};
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options for generating synthetic data.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// The dataset to resemble.
    pub shape: SampleShape,
    /// Total number of rows in the three files.
    pub rows: u64,
    /// Random seed.
    pub seed: u64,
    /// Directory for `train.txt`, `vali.txt` and `test.txt`.
    pub output: PathBuf,
}

/// Names of the files, and how many fifths of the rows each file gets.
const PARTS: [(&str, u64); 3] = [("train", 3), ("vali", 1), ("test", 1)];

/// A file of synthetic data that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplePart {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of rows.
    pub rows: u64,
    /// Number of queries.
    pub queries: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// Writes the three files, each of them atomically. `progress` receives the number of bytes written to the current
/// file.
pub fn sample(options: &SampleOptions, progress: &mut dyn FnMut(u64)) -> Result<Vec<SamplePart>> {
    interrupt::be_orderly();
    let generator = shape::Generator::new(options.shape, options.seed);
    let mut parts = Vec::new();
    let mut first_query = 1;
    for (number, (name, fifths)) in PARTS.iter().enumerate() {
        let rows = match number {
            0 => options.rows - 2 * (options.rows / 5),
            _ => options.rows * fifths / 5,
        };
        let path = options.output.join(format!("{name}.txt"));
        let part = write_part(&generator, &path, rows, first_query, progress)?;
        first_query += part.queries;
        parts.push(part);
    }
    Ok(parts)
}

fn write_part(
    generator: &shape::Generator,
    path: &Path,
    rows: u64,
    first_query: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<SamplePart> {
    /// Number of queries that are generated in parallel before they are written.
    const WAVE: u64 = 256;
    let failed = |error: std::io::Error| Error::io(path.display(), "write", error);
    let mut file = FileOutput::guarded(&Location::Local(path.to_owned()), replaces(is_sample))?;
    let mut part = SamplePart { path: path.to_owned(), rows: 0, queries: 0, bytes: 0 };
    while part.rows < rows {
        interrupt::check()?;
        let first = first_query + part.queries;
        let wave: Vec<(u64, Vec<u8>)> =
            (first..first + WAVE).into_par_iter().map(|query| generator.query(query)).collect();
        for (documents, text) in wave {
            let wanted = (rows - part.rows).min(documents);
            let text = text::first_lines(&text, wanted);
            file.write_all(text).map_err(failed)?;
            part.rows += wanted;
            part.queries += 1;
            part.bytes += text.len() as u64;
            if part.rows == rows {
                break;
            }
        }
        progress(part.bytes);
    }
    file.commit().map(|()| part)
}

/// Checks whether a file was written by an earlier call. Its document ids, such as `Q7-D3`, have a form that no real
/// collection uses.
fn is_sample(head: &Head) -> bool {
    let is_ours = |line: &str| {
        let name = line.rsplit_once(" #docid = Q").map_or("", |(_, name)| name);
        name.split_once("-D").is_some_and(|(query, document)| {
            [query, document].iter().all(|number| number.parse::<u64>().is_ok())
        })
    };
    head.lines().is_some_and(|mut lines| lines.all(is_ours))
}
