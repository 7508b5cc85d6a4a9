//! Implements `planetree sample`.

use super::options::parse_whole;
use super::progress::ByteProgress;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::{counted, shown_size};
use planetree_data::sample::{SampleOptions, SampleShape, sample};
use std::path::PathBuf;

/// Write synthetic ranking data: train.txt, vali.txt and test.txt
///
/// LETOR text that resembles a public dataset, of any size; the same seed gives the same text. Labels are a nonlinear
/// function of the features plus noise.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree sample --shape letor --rows 2500 --seed 1 --output sample_data
  planetree sample --shape mslr --rows 1000000 --seed 7 --output big")]
pub(crate) struct SampleArguments {
    /// Dataset to resemble
    #[arg(long, value_enum)]
    shape: ShapeArgument,

    /// Total number of rows: three fifths in train.txt, one fifth each in vali.txt and test.txt
    #[arg(long, value_name = "N", value_parser = parse_rows)]
    rows: u64,

    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = parse_whole::<u64>)]
    seed: u64,

    /// Local directory to write to; files of an earlier sample are replaced
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ShapeArgument {
    /// LETOR 4: 46 features scaled to 0..1, labels 0-2, few documents per query
    Letor,
    /// MSLR-WEB: 136 raw features, labels 0-4, about 120 documents per query
    Mslr,
    /// Yahoo: 700 features, two thirds of them absent, labels 0-4, about 23 documents per query
    Yahoo,
}

impl From<ShapeArgument> for SampleShape {
    fn from(shape: ShapeArgument) -> Self {
        match shape {
            ShapeArgument::Letor => SampleShape::Letor,
            ShapeArgument::Mslr => SampleShape::Mslr,
            ShapeArgument::Yahoo => SampleShape::Yahoo,
        }
    }
}

/// Parses the number of rows, of which each file must have one.
fn parse_rows(text: &str) -> std::result::Result<u64, String> {
    match text.parse::<u64>() {
        Ok(rows) if rows >= 5 => Ok(rows),
        _ => Err("expected a whole number of at least 5, so that each file has a row".to_owned()),
    }
}

/// Runs the command.
pub(crate) fn run(arguments: SampleArguments, quiet: bool) -> Result<()> {
    if arguments.output.to_string_lossy().contains("://") {
        return Err(Error::usage(
            format_args!("{}: samples are written to local directories only", arguments.output.display()),
            "write to a local directory, then use `planetree convert` to write a dataset to a bucket",
        ));
    }
    let options = SampleOptions {
        shape: arguments.shape.into(),
        rows: arguments.rows,
        seed: arguments.seed,
        output: arguments.output,
    };
    let mut progress = ByteProgress::start("generating", None, quiet);
    let mut written = 0;
    let parts = sample(&options, &mut |bytes| {
        progress.step(bytes.saturating_sub(written) as usize, 0);
        written = bytes;
    })?;
    progress.finish();
    if !quiet {
        for part in parts {
            super::message(format_args!(
                "{}: {}, {}, {}",
                part.path.display(),
                counted(part.rows, "row", "rows"),
                counted(part.queries, "query", "queries"),
                shown_size(part.bytes)
            ));
        }
    }
    Ok(())
}
