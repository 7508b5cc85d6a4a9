//! `planetree sample`
use crate::error::Result;
use clap::Args;
/// Write synthetic ranking data
#[derive(Debug, Args)]
pub struct SampleArguments {
}
pub fn run(_arguments: SampleArguments, _quiet: bool) -> Result<()> { Ok(()) }
