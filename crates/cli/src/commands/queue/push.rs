//! `queue push`: pushes one message, or one for each line of standard input.

use super::place::queue_mut;
use crate::args::QueuePushArgs;
use crate::commands::messages::{Place, given, reading_failed, told};
use crate::exit::Outcome;
use crate::output::plural;
use crate::terminal::Terminal;
use std::io::BufRead;
use tidalite::Database;
use tidalite::queue::{BATCH_MAX, NewMessage, Pushed};

/// Number of bytes of payloads in one transaction.
const BATCH_BYTES: usize = 32 << 20;

/// Runs the command `tidalite queue push`.
pub(super) fn run(args: &QueuePushArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    // The payload is read before the database is opened, so that no other process has to wait for it.
    let payload = match args.lines {
        true => None,
        false => Some(given(&args.payload)?),
    };
    let (db, _) = place.open_or_create()?;
    let mut pusher = Pusher {
        args,
        place,
        counts: Counts::default(),
    };
    match payload {
        Some(payload) => pusher.push(&db, &[payload], terminal)?,
        None => pusher.lines(&db, terminal)?,
    }
    place.close(db)?;
    match args.lines && !args.format.is_json() {
        true => told(&pusher.counts.text(place.table), terminal),
        false => Ok(terminal.out.flush()?),
    }
}

/// Numbers of messages by their outcome.
#[derive(Default)]
struct Counts {
    stored: u64,
    repeated: u64,
    dropped: u64,
}

impl Counts {
    fn text(&self, table: &str) -> String {
        let stored = plural(self.stored, "message", "messages");
        let mut text = format!("{stored} stored in {table}");
        for (count, told) in [
            (self.repeated, "repeated"),
            (self.dropped, "dropped: the queue is full"),
        ] {
            if count > 0 {
                text += &format!(", {count} {told}");
            }
        }
        text
    }
}

struct Pusher<'a> {
    args: &'a QueuePushArgs,
    place: Place<'a>,
    counts: Counts,
}

impl Pusher<'_> {
    /// Pushes the lines of standard input, many in one transaction.
    fn lines(&mut self, db: &Database, terminal: &mut Terminal<'_>) -> Outcome {
        let mut input = std::io::stdin().lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let mut line = Vec::new();
            let read = input.read_until(b'\n', &mut line);
            let read = read.map_err(|error| reading_failed(&error))?;
            if read > 0 {
                line.pop_if(|last| *last == b'\n');
                bytes += line.len();
                batch.push(line);
            }
            let is_full = batch.len() == BATCH_MAX || bytes >= BATCH_BYTES;
            if (read == 0 || is_full) && !batch.is_empty() {
                let first = self.counts.stored + self.counts.repeated + self.counts.dropped + 1;
                self.push(db, &batch, terminal).map_err(|failure| {
                    let last = first + batch.len() as u64 - 1;
                    failure.about(format!("lines {first} to {last}, none of which is stored"))
                })?;
                (batch, bytes) = (Vec::new(), 0);
            }
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Pushes messages in one transaction, and prints their ids.
    fn push(
        &mut self,
        db: &Database,
        payloads: &[Vec<u8>],
        terminal: &mut Terminal<'_>,
    ) -> Outcome {
        let args = self.args;
        let mut tx = self.place.begin(db)?;
        let now = tx.clock().now();
        let headers = args.headers.iter();
        let headers: Vec<(&[u8], &[u8])> = headers
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
            .collect();
        let messages = payloads.iter().map(|payload| NewMessage {
            payload,
            key: args.key.as_deref().map(str::as_bytes),
            priority: args.priority,
            not_before: args.delay.map(|delay| delay.at(now)),
            expires: args.expires.map(|expires| expires.at(now)),
            headers: &headers,
            idempotency_key: args.idempotency_key.as_deref().map(str::as_bytes),
        });
        let messages: Vec<NewMessage<'_>> = messages.collect();
        let pushed = queue_mut(&self.place, &mut tx)?.push_many(&messages);
        let pushed = pushed.map_err(|error| self.place.fail(&error))?;
        self.place.commit(tx)?;
        for pushed in pushed {
            self.tell(pushed, terminal)?;
        }
        Ok(())
    }

    fn tell(&mut self, pushed: Pushed, terminal: &mut Terminal<'_>) -> Outcome {
        let table = self.place.table;
        let (count, word, id, text) = match pushed {
            Pushed::Stored(id) => (
                &mut self.counts.stored,
                "stored",
                Some(id),
                format!("message {id} stored in {table}"),
            ),
            Pushed::Repeated(id) => (
                &mut self.counts.repeated,
                "repeated",
                Some(id),
                format!("nothing stored: message {id} has this idempotency key"),
            ),
            Pushed::Dropped => (
                &mut self.counts.dropped,
                "dropped",
                None,
                format!("nothing stored: queue {table} is full"),
            ),
        };
        *count += 1;
        if self.args.format.is_json() {
            let line = serde_json::json!({"outcome": word, "id": id});
            return Ok(writeln!(terminal.out, "{line}")?);
        }
        match self.args.lines {
            true => Ok(()),
            false => told(&text, terminal),
        }
    }
}
