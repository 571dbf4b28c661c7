//! `topic watch`: prints the messages that match filters, and then each change.
//!
//! The database is polled. The sequence number of the last poll separates the messages that were printed from those
//! still to be printed: first the messages of a snapshot, later the changes in the feed. So no change is missed or
//! printed twice, unless the feed has lost changes; a note then reports this.

use super::filters::filters;
use super::line::{json_of, text_of};
use super::place::topics;
use super::read::{PAGE_MESSAGES, page};
use crate::args::TopicWatchArgs;
use crate::commands::messages::Place;
use crate::exit::Outcome;
use crate::output::printable;
use crate::terminal::Terminal;
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use tidalite::topics::{
    Filter, Retained, SearchOptions, TopicChange, TopicChanges, TopicSearch, Topics,
};

/// Number of changes that are read from the feed at a time.
const PAGE_CHANGES: usize = 1000;

/// Runs the command `tidalite topic watch`.
pub(super) fn run(args: &TopicWatchArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let filters = filters(&args.filters, args.include_dollar)?;
    let nanos = |width: i64| Duration::from_nanos(width.unsigned_abs());
    let end = args
        .duration
        .and_then(|width| Instant::now().checked_add(nanos(width)));
    let (db, mut snap) = place.open()?;
    let mut watch = Watch {
        place,
        filters,
        after: 0,
        left: args.count.unwrap_or(u64::MAX),
        json: args.format.is_json(),
        terminal,
    };
    {
        let topics = topics(&place, &snap)?;
        if topics.options().feed_changes == 0 {
            watch.note("the table has no feed, so removals are not seen; `tidalite topic create --alter --feed 10000` adds one");
        }
        match args.skip_retained {
            true => watch.after = topics.sequence(),
            false => watch.messages_since(&topics, 0)?,
        }
    }
    loop {
        watch.terminal.out.flush()?;
        let rest = end.map(|end| end.saturating_duration_since(Instant::now()));
        if watch.left == 0 || rest == Some(Duration::ZERO) {
            return Ok(());
        }
        let every = nanos(args.every);
        std::thread::sleep(rest.map_or(every, |rest| rest.min(every)));
        let newer = db.begin_read().map_err(|error| place.fail(&error))?;
        if newer.txn() != snap.txn() {
            watch.look(&topics(&place, &newer)?)?;
        }
        snap = newer;
    }
}

/// A watch in progress.
struct Watch<'a, 'o> {
    place: Place<'a>,
    filters: Vec<Filter>,
    /// All changes up to this sequence number have been printed.
    after: u64,
    /// Number of lines that may still be printed.
    left: u64,
    json: bool,
    terminal: &'a mut Terminal<'o>,
}

impl Watch<'_, '_> {
    fn note(&self, text: &str) {
        eprintln!("{} {text}", self.terminal.messages.warning("note:"));
    }

    /// Prints the changes since the last poll.
    fn look(&mut self, topics: &Topics<'_>) -> Outcome {
        if topics.options().feed_changes == 0 {
            // A new table may have got the same name.
            let since = match topics.sequence() < self.after {
                true => 0,
                false => self.after,
            };
            return self.messages_since(topics, since);
        }
        while self.left > 0 {
            let changes = topics.changes(self.after, PAGE_CHANGES);
            match changes.map_err(|error| self.place.fail(&error))? {
                TopicChanges::Truncated { from } => {
                    self.lost(from)?;
                    let since = match topics.sequence() < self.after {
                        true => 0,
                        false => self.after,
                    };
                    return self.messages_since(topics, since);
                }
                TopicChanges::Some {
                    changes,
                    next,
                    has_more,
                } => {
                    for change in &changes {
                        self.change(topics, change)?;
                    }
                    self.after = next;
                    if !has_more {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// Prints a note that the feed has lost changes.
    fn lost(&mut self, from: u64) -> Outcome {
        self.note(&format!(
            "the feed has lost changes after number {}: the messages that are newer follow; removals among the lost changes are not seen",
            self.after
        ));
        if self.json {
            let line = serde_json::json!({"event": "lost", "after": self.after, "from": from});
            writeln!(self.terminal.out, "{line}")?;
        }
        Ok(())
    }

    /// Prints the messages of a snapshot with a greater sequence number.
    fn messages_since(&mut self, topics: &Topics<'_>, since: u64) -> Outcome {
        let options = SearchOptions {
            since,
            ..SearchOptions::default()
        };
        let mut search = TopicSearch::new(self.filters.clone(), options);
        let place = self.place;
        while self.left > 0 && !search.is_done() {
            let credit = self.left.min(PAGE_MESSAGES);
            page(&place, topics, &mut search, credit, &mut |found| {
                self.message(&found.retained)
            })?;
        }
        self.after = topics.sequence();
        Ok(())
    }

    fn change(&mut self, topics: &Topics<'_>, change: &TopicChange) -> Outcome {
        let topic = &change.topic;
        let is_wanted = self.filters.iter().any(|filter| filter.matches(topic));
        if !is_wanted || self.left == 0 {
            return Ok(());
        }
        if change.is_removed {
            self.left -= 1;
            let line = match self.json {
                true => serde_json::json!({
                    "event": "removed", "topic": topic, "sequence": change.sequence,
                })
                .to_string(),
                false => format!("{}\t(removed)", printable(topic)),
            };
            return Ok(writeln!(self.terminal.out, "{line}")?);
        }
        let place = self.place;
        let found = topics.get(topic).map_err(|error| place.fail(&error))?;
        let Some(found) = found else {
            return Ok(());
        };
        let retained = found.retained();
        let retained = retained.map_err(|error| place.fail(&error.into()))?;
        match retained.sequence == change.sequence {
            true => self.message(&retained),
            // A later change in the feed has replaced this message.
            false => Ok(()),
        }
    }

    fn message(&mut self, retained: &Retained<'_>) -> Outcome {
        self.left = self.left.saturating_sub(1);
        let line = match self.json {
            true => {
                let mut object: Map<String, Value> = json_of(retained);
                object.insert("event".to_owned(), Value::from("message"));
                Value::Object(object).to_string()
            }
            false => text_of(retained),
        };
        Ok(writeln!(self.terminal.out, "{line}")?)
    }
}
