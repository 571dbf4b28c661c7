//! Rows are read on one thread and stored on another, and travel in batches.
//!
//! Invariants:
//! 1. Batches keep the order of the lines. A bad line is told in the batch of the rows around it, with
//!    the number of rows of that batch that stand before it.
//! 2. A combination of tags is a small number within one input: `combinations` of a batch says what the
//!    numbers mean that it is the first to use.
//! 3. At most [`WAITING`] batches wait, so the memory is bounded whichever thread is slower.

use crate::exit::Outcome;
use crate::import::rows::{BadRow, Next, Row, Rows};
use crate::time::Nanos;
use std::collections::HashMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use tidalite::Value;

/// Rows of one batch.
const ROWS: usize = 2048;

/// Batches that wait at most.
const WAITING: usize = 6;

/// Rows in a row.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// When each row was.
    pub times: Vec<Nanos>,
    /// The line of each row.
    pub lines: Vec<u64>,
    /// Number of each row's combination of tags.
    pub tags: Vec<u32>,
    /// The values of each row, one after the other.
    pub values: Vec<Option<f64>>,
    /// The same where the columns have types.
    pub cells: Vec<Value>,
    /// Tags of the combinations that come up here for the first time.
    pub combinations: Vec<Vec<String>>,
    /// Lines that are no rows, and how many rows of the batch stand before each.
    pub bad: Vec<(usize, BadRow)>,
}

impl Batch {
    fn clear(&mut self) {
        self.times.clear();
        self.lines.clear();
        self.tags.clear();
        self.values.clear();
        self.cells.clear();
        self.combinations.clear();
        self.bad.clear();
    }
}

/// Batches of one input, in order.
pub(crate) struct Batches {
    full: Receiver<Outcome<Batch>>,
    empty: SyncSender<Batch>,
}

impl Batches {
    /// Reads rows on another thread until the end, the first failure, or until this is dropped.
    pub(crate) fn start<R: Read + Send + 'static>(rows: Rows<R>, what: String) -> Self {
        let (send, full) = sync_channel(WAITING);
        let (empty, recycled) = sync_channel(WAITING + 2);
        std::thread::spawn(move || fill(rows, &what, &send, &recycled));
        Self { full, empty }
    }

    /// The next batch; none behind the last.
    pub(crate) fn next(&self) -> Outcome<Option<Batch>> {
        self.full.recv().ok().transpose()
    }

    /// Takes a batch back, for its memory.
    pub(crate) fn recycle(&self, batch: Batch) {
        let _ = self.empty.try_send(batch);
    }
}

fn fill<R: Read>(
    mut rows: Rows<R>,
    what: &str,
    full: &SyncSender<Outcome<Batch>>,
    empty: &Receiver<Batch>,
) {
    let mut numbers: HashMap<Vec<String>, u32> = HashMap::new();
    let mut row = Row::default();
    loop {
        let mut batch = empty.try_recv().unwrap_or_default();
        batch.clear();
        let mut end = false;
        while batch.times.len() + batch.bad.len() < ROWS && !end {
            match rows.next(&mut row, what) {
                Ok(Next::Row) => {
                    let number = match numbers.get(&row.tags) {
                        Some(number) => *number,
                        None => {
                            let number = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                            numbers.insert(row.tags.clone(), number);
                            batch.combinations.push(row.tags.clone());
                            number
                        }
                    };
                    batch.times.push(row.time);
                    batch.lines.push(rows.line());
                    batch.tags.push(number);
                    batch.values.extend_from_slice(&row.values);
                    batch.cells.append(&mut row.cells);
                }
                Ok(Next::Bad(bad)) => batch.bad.push((batch.times.len(), bad)),
                Ok(Next::End) => end = true,
                Err(failure) => {
                    // The rows before the failure come first.
                    if full.send(Ok(batch)).is_ok() {
                        let _ = full.send(Err(failure));
                    }
                    return;
                }
            }
        }
        if full.send(Ok(batch)).is_err() || end {
            return;
        }
    }
}
