//! The `planetree` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    planetree_cli::main()
}
