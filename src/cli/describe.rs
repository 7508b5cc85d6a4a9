//! `planetree describe`
use crate::error::Result;
use clap::Args;
/// Say what is in a dataset
#[derive(Debug, Args)]
pub struct DescribeArguments {
    /// A dataset
    dataset: String,
}
pub fn run(_arguments: DescribeArguments, _quiet: bool) -> Result<()> { Ok(()) }
