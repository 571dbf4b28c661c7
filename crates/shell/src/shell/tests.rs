//! Sessions with buffers in place of the terminal.

use super::*;
use crate::failure::Failure;
use crate::settings::{Mode, Settings};
use crate::streams::{Screen, Streams};
use std::path::Path;
use tidalite::Database;
use tidalite_sql::{Connection, ErrorKind};
use tidalite_testkit::Scratch;

/// The result of a session, its output and its errors.
struct Ran {
    result: Result<Flow, Failure>,
    out: String,
    err: String,
}

/// Runs a text in an empty database.
fn run_with(settings: Settings, screen: fn() -> Option<Screen>, text: &str) -> Ran {
    let scratch = Scratch::new();
    let database = Database::open(scratch.path("a.tdl")).unwrap();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams {
        out: &mut out,
        err: &mut err,
        screen,
        pager: None,
        progress: false,
    };
    let connection = Connection::new(&database).unwrap();
    let mut shell = Shell::new(connection, settings, streams);
    let result = shell.run_input(&mut text.as_bytes(), "test.sql");
    drop(shell);
    Ran {
        result,
        out: String::from_utf8(out).unwrap(),
        err: String::from_utf8(err).unwrap(),
    }
}

fn csv() -> Settings {
    Settings {
        mode: Mode::Csv,
        ..Settings::default()
    }
}

fn run(text: &str) -> Ran {
    run_with(csv(), || None, text)
}
