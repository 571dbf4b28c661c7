//! `sql`: the SQL shell, in builds that include it.

#[cfg(feature = "sql")]
mod session;

use crate::args::SqlArgs;
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite sql`.
#[cfg(feature = "sql")]
pub(crate) fn run(args: &SqlArgs, terminal: &mut Terminal<'_>) -> Outcome {
    session::run(args, terminal)
}

/// Prints how to get a program that includes this command.
#[cfg(not(feature = "sql"))]
pub(crate) fn run(_args: &SqlArgs, _terminal: &mut Terminal<'_>) -> Outcome {
    use crate::exit::Failure;
    let failure = Failure::usage("this program was built without SQL");
    Err(failure.hint("build it with SQL: cargo build --release --features sql"))
}
