//! `topic import` and `topic export`: messages with all properties, as JSON lines.

use super::filters::filters;
use super::line::{Line, json_of};
use super::place::{topics, topics_mut};
use super::read::{PAGE_MESSAGES, page};
use crate::args::{TopicExportArgs, TopicImportArgs};
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::export::Target;
use crate::import::source;
use crate::output::plural;
use crate::terminal::Terminal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use tidalite::topics::{SearchOptions, TopicSearch};
use tidalite::{Database, ErrorKind};

/// Number of bytes of lines in one transaction of an import.
const BATCH_BYTES: usize = 32 << 20;

/// Runs the command `tidalite topic import`.
pub(super) fn import(args: &TopicImportArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let input = args.input.as_deref().unwrap_or(Path::new("-"));
    let input = source::open(input)?;
    let (db, _) = place.open_or_create()?;
    let mut lines = Lines {
        input: Box::new(BufReader::new(input.reader)),
        line: Vec::new(),
        number: 0,
        stored: 0,
    };
    while lines.batch(&place, &db)? {}
    place.close(db)?;
    let messages = plural(lines.stored, "message", "messages");
    told(
        &format!("{messages} imported into {}", place.table),
        terminal,
    )
}

struct Lines {
    input: Box<dyn BufRead>,
    line: Vec<u8>,
    /// Number of lines read.
    number: u64,
    /// Number of messages stored and committed.
    stored: u64,
}

impl Lines {
    fn bad(&self, problem: &str) -> Failure {
        let hint = match self.stored {
            0 => "nothing was stored; `tidalite topic import --help` shows the fields".to_owned(),
            stored => format!(
                "the first {} stored; `tidalite topic import --help` shows the fields",
                plural(stored, "message is", "messages are")
            ),
        };
        Failure::bad_input(format!("line {}: {problem}", self.number)).hint(hint)
    }

    /// Stores the messages of the next lines in one transaction; returns whether there may be more lines.
    fn batch(&mut self, place: &Place<'_>, db: &Database) -> Outcome<bool> {
        let mut tx = place.begin(db)?;
        let mut topics = topics_mut(place, &mut tx)?;
        let (mut bytes, mut stored) = (0, 0);
        let more = loop {
            if bytes >= BATCH_BYTES {
                break true;
            }
            self.line.clear();
            let read = self.input.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| self.bad(&format!("reading failed: {error}")))?;
            if read == 0 {
                break false;
            }
            self.number += 1;
            bytes += read;
            if self.line.trim_ascii().is_empty() {
                continue;
            }
            let line = Line::read(&self.line).map_err(|problem| self.bad(&problem))?;
            let message = line.message();
            let set = match line.time {
                Some(time) => topics.set(&message, time),
                None => topics.publish(&message, true),
            };
            set.map_err(|error| match error.kind() {
                ErrorKind::Limit | ErrorKind::InvalidName | ErrorKind::InvalidInput => {
                    self.bad(&error.to_string())
                }
                _ => place.fail(&error),
            })?;
            stored += 1;
        };
        place.commit(tx)?;
        self.stored += stored;
        Ok(more)
    }
}

/// Runs the command `tidalite topic export`.
pub(super) fn export(args: &TopicExportArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let output = args
        .output
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    let Some(path) = output else {
        let written = write(args, terminal.out)?;
        terminal.out.flush()?;
        written.tell_missing(args, terminal);
        return Ok(());
    };
    let mut target = Target::create(path, args.replace)?;
    let written = write(args, &mut target)?;
    target.finish()?;
    written.tell_missing(args, terminal);
    let messages = plural(written.messages, "message", "messages");
    told(
        &format!("{messages} written to {}", path.display()),
        terminal,
    )
}

/// Numbers of messages of an export.
struct Written {
    messages: u64,
    /// Number of messages in the table.
    all: u64,
}

impl Written {
    /// Prints a note if an export of all topics lacks some messages.
    fn tell_missing(&self, args: &TopicExportArgs, terminal: &Terminal<'_>) {
        let missing = self.all.saturating_sub(self.messages);
        if args.filters.is_empty() && missing > 0 {
            let (note, missing) = (
                terminal.messages.warning("note:"),
                plural(missing, "message", "messages"),
            );
            let next = "tidalite dump writes everything";
            match args.include_dollar {
                true => eprintln!("{note} without {missing} that have expired; {next}"),
                false => eprintln!(
                    "{note} without {missing} that have expired, or whose topics begin with $; --include-dollar exports such topics, and {next}"
                ),
            }
        }
    }
}

/// Writes the messages of one snapshot.
fn write(args: &TopicExportArgs, out: &mut dyn Write) -> Outcome<Written> {
    let place = args.place.place();
    let filters = match args.filters.is_empty() {
        true => filters(&["#".to_owned()], args.include_dollar)?,
        false => filters(&args.filters, args.include_dollar)?,
    };
    let (_db, snap) = place.open()?;
    let topics = topics(&place, &snap)?;
    let mut search = TopicSearch::new(filters, SearchOptions::default());
    let mut messages = 0;
    while !search.is_done() {
        messages += page(&place, &topics, &mut search, PAGE_MESSAGES, &mut |found| {
            Ok(writeln!(
                out,
                "{}",
                Value::Object(json_of(&found.retained))
            )?)
        })?;
    }
    let stat = topics.stat().map_err(|error| place.fail(&error))?;
    Ok(Written {
        messages,
        all: stat.messages,
    })
}
