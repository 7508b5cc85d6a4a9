//! Synthetic ranking data in the shapes of the classical sets, of any size, from a seed. A query is
//! generated from its own key, so any number of threads writes the same text.

mod shape;
mod text;

pub use shape::Shape;

use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use rayon::prelude::*;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// What to generate.
#[derive(Debug, Clone)]
pub struct SampleOptions {
    /// Which set to resemble.
    pub shape: Shape,
    /// Rows of all three parts together.
    pub rows: u64,
    /// The seed.
    pub seed: u64,
    /// The directory for `train.txt`, `vali.txt` and `test.txt`.
    pub output: PathBuf,
}

/// The parts and their shares of the rows, in fifths.
const PARTS: [(&str, u64); 3] = [("train", 3), ("vali", 1), ("test", 1)];

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplePart {
    /// Path of the file.
    pub path: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Queries in it.
    pub queries: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// Writes the three parts; each appears whole or not at all.
pub fn sample(options: &SampleOptions, progress: &mut dyn FnMut(u64)) -> Result<Vec<SamplePart>> {
    interrupt::be_orderly();
    fs::create_dir_all(&options.output)
        .map_err(|error| Error::io(options.output.display(), "create the directory", &error))?;
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
    /// Queries generated at a time.
    const WAVE: u64 = 256;
    let failed = |error: std::io::Error| Error::io(path.display(), "write", &error);
    let aside = path.with_extension("txt.part");
    let mut part = SamplePart { path: path.to_owned(), rows: 0, queries: 0, bytes: 0 };
    let write = |part: &mut SamplePart, progress: &mut dyn FnMut(u64)| -> Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&aside).map_err(failed)?);
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
        file.into_inner().map_err(|error| failed(error.into_error()))?.sync_all().map_err(failed)?;
        fs::rename(&aside, path).map_err(failed)
    };
    let outcome = write(&mut part, progress);
    if outcome.is_err() {
        let _ = fs::remove_file(&aside); // nothing half-written stays
    }
    outcome.map(|()| part)
}
