//! Several threads parse rows and another stores them. Rows are passed in batches, one for each block of the input.
//!
//! ```text
//! one thread    bytes --> blocks that end where records end
//! several       a block --> a batch
//! the caller    batches in the order of their blocks
//! ```
//!
//! Invariants:
//! 1. Batches keep the order of the lines. A bad line is reported in the batch with the rows around it, together with
//!    the number of rows in that batch that precede it.
//! 2. Each reader thread numbers combinations of tags on its own. The list `combinations` of a batch has the tags for
//!    the numbers that occur there for the first time in this thread. A thread takes blocks in order, so a number is
//!    defined before it is used.
//! 3. At most a fixed number of blocks is being processed at a time, so memory is bounded whichever thread is slower.

use crate::exit::{Exit, Failure, Outcome};
use crate::import::batch::{Batch, Combinations};
use crate::import::blocks::{Block, Blocks};
use crate::import::open::Rows;
use crate::import::rows::Reading;
use std::io::Read;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Maximum number of reader threads. With more of them, the storing thread would be the bottleneck.
const READERS_MAX: usize = 16;

/// Maximum number of parsed batches that wait to be stored, for each reader thread.
const WAITING: usize = 2;

/// A parsed batch, and the error that ended parsing after its rows, if there was one.
type Done = (Batch, Outcome);

/// A channel that will deliver the next batch, or `None` after the last batch.
type Coming = Outcome<Option<Receiver<Done>>>;

/// The batches of one input, in the order of the input.
pub(crate) struct Batches {
    coming: Receiver<Coming>,
    spare: Arc<Mutex<Vec<Batch>>>,
    /// The error to return after the last batch.
    failed: Option<Failure>,
}

impl Batches {
    /// Starts threads that parse rows, one for each core, until the end, the first error, or until this value is
    /// dropped.
    pub(crate) fn start(rows: Rows<'static>) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::on(rows, cores.min(READERS_MAX))
    }

    fn on(rows: Rows<'static>, readers: usize) -> Self {
        let (send, coming) = sync_channel(WAITING * readers);
        let (work, blocks) = sync_channel(readers);
        let (blocks, reading) = (Arc::new(Mutex::new(blocks)), Arc::new(rows.reading));
        let spare = Arc::default();
        for reader in 0..readers {
            let (blocks, reading) = (Arc::clone(&blocks), Arc::clone(&reading));
            let spare = Arc::clone(&spare);
            thread::spawn(move || read(reader, &blocks, &reading, &spare));
        }
        thread::spawn(move || take_apart(rows.blocks, &reading, &send, &work));
        Self {
            coming,
            spare,
            failed: None,
        }
    }

    /// Waits for the next batch; `None` after the last.
    pub(crate) fn next(&mut self) -> Outcome<Option<Batch>> {
        if let Some(failure) = self.failed.take() {
            return Err(failure);
        }
        // If a thread has panicked, this must not be taken for the end of the input.
        let lost = |_| Failure::new(Exit::Failure, "a thread that reads rows has ended");
        let Some(batch) = self.coming.recv().map_err(lost)?? else {
            return Ok(None);
        };
        let (batch, done) = batch.recv().map_err(lost)?;
        self.failed = done.err();
        Ok(Some(batch))
    }

    /// Takes a batch back after its rows were stored, to reuse its memory.
    pub(crate) fn recycle(&self, batch: Batch) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        spare.push(batch);
    }
}

/// A block to be parsed, and the channel through which its batch is returned.
type Work = (Block, SyncSender<Done>);

fn take_apart<R: Read>(
    mut blocks: Blocks<R>,
    reading: &Reading,
    send: &SyncSender<Coming>,
    work: &SyncSender<Work>,
) {
    loop {
        let block = match blocks.next() {
            Ok(Some(block)) => block,
            Ok(None) => return drop(send.send(Ok(None))),
            Err(error) => return drop(send.send(Err(reading.unreadable(&error)))),
        };
        let (done, batch) = sync_channel(1);
        if send.send(Ok(Some(batch))).is_err() || work.send((block, done)).is_err() {
            return;
        }
    }
}

fn read(
    reader: usize,
    blocks: &Mutex<Receiver<Work>>,
    reading: &Reading,
    spare: &Mutex<Vec<Batch>>,
) {
    let mut known = Combinations::of_reader(reader);
    loop {
        let work = blocks.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((block, done)) = work else {
            return;
        };
        let mut batch = {
            let mut spare = spare.lock().unwrap_or_else(PoisonError::into_inner);
            spare.pop().unwrap_or_default()
        };
        let read = reading.read(block, &mut known, &mut batch);
        // If the receiver was dropped, the batch is not needed any more, and no more blocks will follow.
        let _ = done.send((batch, read));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::blocks::LinesBefore;
    use crate::import::field::Nulls;
    use crate::import::layout::Wishes;
    use crate::import::open::Format;
    use std::fmt::Write;
    use std::io;

    fn rows(input: impl Read + Send + 'static) -> Rows<'static> {
        let wishes = Wishes {
            header: true,
            tags: vec!["site".into()],
            ..Wishes::default()
        };
        Rows::open(input, "x", &Format::default(), &wishes, Nulls::default()).unwrap()
    }

    fn text(rows: usize) -> String {
        let mut text = String::from("time,site,v\n");
        for row in 0..rows {
            let v = if row % 1000 == 7 { "bad" } else { "1" };
            writeln!(text, "{},{},{v}", 1_401_580_800 + row, row % 13).unwrap();
        }
        text
    }

    /// All rows and errors of the batches as lines, in order.
    fn told(mut batches: Batches) -> (Vec<String>, Outcome) {
        let mut lines = Vec::new();
        let mut known: Vec<Vec<Vec<String>>> = vec![Vec::new(); 8];
        loop {
            let batch = match batches.next() {
                Ok(Some(batch)) => batch,
                Ok(None) => return (lines, Ok(())),
                Err(failure) => return (lines, Err(failure)),
            };
            let known = &mut known[batch.reader];
            known.extend(batch.combinations.iter().cloned());
            let mut before = LinesBefore::default();
            let mut bad = batch.bad.iter().peekable();
            for row in 0..=batch.times.len() {
                while let Some((_, bad)) = bad.next_if(|(before, _)| *before == row) {
                    lines.push(format!("{}: {}", bad.line, bad.why));
                }
                if let Some(time) = batch.times.get(row) {
                    let tags = &known[batch.tags[row] as usize];
                    let line = batch.line(row, &mut before);
                    lines.push(format!("{line}: {time} {tags:?} {:?}", batch.values[row]));
                }
            }
            batches.recycle(batch);
        }
    }

    #[test]
    fn batches_come_in_order_from_any_number_of_threads() {
        let text = text(30_000);
        let (one, done) = told(Batches::on(rows(io::Cursor::new(text.clone())), 1));
        done.unwrap();
        assert_eq!(one.len(), 30_000);
        for (row, line) in one.iter().enumerate() {
            assert!(line.starts_with(&format!("{}: ", row + 2)), "{line}");
            assert_eq!(
                line.contains("`bad` in column `v`"),
                row % 1000 == 7,
                "{line}"
            );
            let site = format!(" [\"{}\"] ", row % 13);
            assert!(row % 1000 == 7 || line.contains(&site), "{line}");
        }
        for readers in [2, 3, 8] {
            let (many, done) = told(Batches::on(rows(io::Cursor::new(text.clone())), readers));
            done.unwrap();
            assert!(many == one, "{readers} threads");
        }
    }

    #[test]
    fn all_rows_before_an_error_come_first() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("it broke"))
            }
        }
        let input = io::Cursor::new(text(30_000) + "1401680800,1").chain(Broken);
        let (lines, done) = told(Batches::on(rows(input), 3));
        assert_eq!(lines.len(), 30_000);
        let failure = done.unwrap_err();
        assert!(failure.message.contains("it broke"), "{}", failure.message);
    }

    #[test]
    fn an_endless_input_can_be_left() {
        let line = "2014-06-01,a,1\n".repeat(1000);
        struct Again(String, usize);
        impl Read for Again {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let rest = &self.0.as_bytes()[self.1..];
                let bytes = rest.len().min(buffer.len());
                buffer[..bytes].copy_from_slice(&rest[..bytes]);
                self.1 = (self.1 + bytes) % self.0.len();
                Ok(bytes)
            }
        }
        let input = io::Cursor::new("time,site,v\n").chain(Again(line, 0));
        let mut batches = Batches::on(rows(input), 2);
        for _ in 0..10 {
            assert!(batches.next().unwrap().unwrap().times.len() > 1000);
        }
    }
}
