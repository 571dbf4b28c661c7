//! `hash`: commands for hash tables.
//!
//! ```text
//! place     the hash table that a command names: its types, the forms of its keys and values, its errors
//! lines     records as lines of text or as JSON
//! read      get, scan
//! counter   the sum of a counter and a number
//! create    a new table, and its options
//! write     set, del, rebuild
//! stat      stat
//! ```

mod counter;
mod create;
mod lines;
mod place;
mod read;
mod stat;
mod write;

use crate::args::{HashArgs, HashCommand};
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite hash`.
pub(crate) fn run(args: &HashArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        HashCommand::Get(args) => read::get(args, terminal),
        HashCommand::Set(args) => write::set(args, terminal),
        HashCommand::Del(args) => write::del(args, terminal),
        HashCommand::Scan(args) => read::scan(args, terminal),
        HashCommand::Stat(args) => stat::run(args, terminal),
        HashCommand::Rebuild(args) => write::rebuild(args, terminal),
    }
}
