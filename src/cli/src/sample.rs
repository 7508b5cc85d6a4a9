//! `planetree sample`

use super::progress::ByteProgress;
use clap::Args;
use planetree_base::error::{Error, Result};
use planetree_base::size::{shown_count, shown_size};
use planetree_data::sample::{SampleOptions, Shape, sample};
use std::path::PathBuf;

/// Write synthetic ranking data: train.txt, vali.txt and test.txt
///
/// LETOR text in the shape of a classical set, of any size, the same for the same seed. Labels
/// depend on the features in a nonlinear way, so that there is something to learn.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  planetree sample --shape letor --rows 2500 --seed 1 --output sample_data
  planetree sample --shape mslr --rows 1000000 --seed 7 --output big")]
pub struct SampleArguments {
    /// Which set to resemble
    #[arg(long, value_enum)]
    shape: Shape,

    /// Rows of the three parts together: three fifths train, one fifth each vali and test
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(5..))]
    rows: u64,

    /// The seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Local directory to write to; files of an earlier sample there are replaced
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

/// Runs the command.
pub fn run(arguments: SampleArguments, quiet: bool) -> Result<()> {
    if arguments.output.to_string_lossy().contains("://") {
        return Err(Error::usage(
            format_args!("{}: samples are written to local directories only", arguments.output.display()),
            "write to a local directory; `planetree convert` takes it from there to a bucket",
        ));
    }
    let options = SampleOptions {
        shape: arguments.shape,
        rows: arguments.rows,
        seed: arguments.seed,
        output: arguments.output,
    };
    let mut progress = ByteProgress::start("generating", None, quiet);
    let mut known = 0;
    let parts = sample(&options, &mut |bytes| {
        progress.step(bytes.saturating_sub(known) as usize, 0);
        known = bytes;
    })?;
    progress.finish();
    if !quiet {
        for part in parts {
            super::say(format_args!(
                "{}: {} rows, {} queries, {}",
                part.path.display(),
                shown_count(part.rows),
                shown_count(part.queries),
                shown_size(part.bytes)
            ));
        }
    }
    Ok(())
}
