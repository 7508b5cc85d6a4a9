//! The `planetree` program; see the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    planetree_cli::main()
}
