//! The SQL shell of the program `tidalite`: runs statements and dot commands, and prints results.
//!
//! ```text
//!   a person ──► editor ──┐
//!                         ├──► shell ──► tidalite-sql ──► format ──► sink ──► screen, pager, pipe or file
//! scripts, -c text ───────┘
//! ```
//!
//! ```text
//! settings   the format of results, and other settings
//! streams    the streams of a session
//! lexer      tokens of SQL
//! keywords   keywords of SQL
//! splitter   splits the input into statements and dot commands
//! command    the dot commands
//! failure    failures and their text
//! catalog    tables and columns
//! interrupt  handles Ctrl-C
//! progress   the spinner of a long query
//! format     writers of results
//! sink       destination of a result: stream, pager or file
//! shell      a session
//! editor     the line editor
//! ```
//!
//! A [`Shell`] writes to the [`Streams`] that are passed to it, so tests run it without a terminal. Only the editor
//! needs a terminal.

mod catalog;
mod command;
mod editor;
mod failure;
mod format;
mod interrupt;
mod keywords;
mod lexer;
mod progress;
mod settings;
mod shell;
mod sink;
mod splitter;
mod streams;

pub use editor::{History, interact};
pub use failure::Failure;
pub use format::FileBytes;
pub use interrupt::Interrupt;
pub use settings::{Explain, Mode, Settings};
pub use shell::{Flow, Shell};
pub use streams::{Screen, Streams, pager_of_environment};
pub use tidalite_sql as sql;
