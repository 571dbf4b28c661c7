//! Runs the program `tidalite`, which is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidalite_cli::main()
}
