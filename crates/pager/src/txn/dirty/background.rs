//! A background thread that writes leaves of a large transaction on behalf of the transaction's thread, and asks the
//! system to start writing them to the medium. Scattered pages are separate requests and soon fill the queue of the
//! disk, and a thread that submits more then blocks. Without this thread, the transaction's thread was blocked for
//! half of the time of such a commit, although it had other work to do (docs/performance/durable-commits.md).
//!
//! ```text
//! transaction ──pages, sealed──> [write, ask] [write, ask] ...      pages are written in the order of hand-over
//!      └── drain: waits until all of them are in the file
//! ```
//!
//! Invariants
//! 1. Between `write` and `drain` no other thread writes pages of the transaction to the file. A page freed meanwhile
//!    may be reallocated, and a late write would overwrite its new content. Other code that writes such pages must
//!    drain first.
//! 2. A failure is reported by `drain`, once; the caller then abandons the thread and treats none of its pages as
//!    written.
//! 3. The thread ends with its transaction. Dropping the `BackgroundWriter` waits for the pages being written and
//!    discards the rest; after a drain there are none. The thread keeps the file open, and with it the lock that marks
//!    the file as open.

use super::write_pages::{WriteHint, write_pages};
use crate::error::{Error, Result};
use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tidalite_base::{Signal, Worker};
use tidalite_disk::storage::Storage;

/// Number of written bytes after which the system is asked to start their write-back to the medium. With longer
/// pieces the disk is idle meanwhile; shorter pieces separate adjacent pages (docs/performance/durable-commits.md).
const PIECE_BYTES: usize = 256 << 10;

type Pages = Vec<(u64, Arc<[u8]>)>;

enum Piece {
    Write(Pages),
    /// Start and length in bytes of a range that is already written to the file, and whose write-back to the medium
    /// must start.
    Ask(u64, u64),
}

#[derive(Debug, Default)]
struct Writes {
    /// Number of pieces passed to the background thread that are not in the file yet.
    left: usize,
    /// Number of write calls since the last `drain`.
    calls: u64,
    failed: Option<Error>,
    /// Whether the background thread has ended.
    gone: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// Number of pieces that the background thread has not completed yet.
    ahead: AtomicUsize,
    writes: Mutex<Writes>,
    written: Condvar,
}

impl Shared {
    fn writes(&self) -> MutexGuard<'_, Writes> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, storage: &dyn Storage, page_size: usize, mut pages: Pages) {
        pages.sort_unstable_by_key(|(number, _)| *number);
        let (mut calls, mut failed) = (0, None);
        for piece in pages.chunks((PIECE_BYTES / page_size).max(1)) {
            let ask = |at, len| storage.write_back(at, len);
            let lent = piece.iter().map(|(number, bytes)| (*number, &**bytes));
            match write_pages(storage, ask, page_size, lent.collect(), WriteHint::Plain) {
                Ok(made) => calls += made,
                Err(error) => failed = failed.or(Some(error)),
            }
            if let (Some((first, _)), Some((last, _))) = (piece.first(), piece.last()) {
                let bytes = page_size as u64;
                storage.write_back(first * bytes, (last - first + 1) * bytes);
            }
        }
        // The shared pages are dropped before the transaction can change them.
        drop(pages);
        let mut writes = self.writes();
        writes.left -= 1;
        writes.calls += calls;
        writes.failed = writes.failed.take().or(failed);
        self.written.notify_all();
    }
}

/// The background thread, as its transaction sees it.
#[derive(Debug)]
pub(crate) struct BackgroundWriter {
    pieces: Option<Sender<Piece>>,
    shared: Arc<Shared>,
    worker: Option<Worker>,
}

impl BackgroundWriter {
    /// Starts the background thread. Returns `None` if it would not be useful, because the storage does not need it
    /// or there is only one processor.
    pub(crate) fn if_useful(storage: &Arc<dyn Storage>, page_size: usize) -> Option<Self> {
        let cores = || thread::available_parallelism().map_or(1, NonZero::get);
        if !storage.writes_back() || cores() < 2 {
            return None;
        }
        Self::begin(storage, page_size)
    }

    /// Starts the background thread. Returns `None` if the system cannot start a thread.
    fn begin(storage: &Arc<dyn Storage>, page_size: usize) -> Option<Self> {
        let (sender, pieces) = channel::<Piece>();
        let (storage, shared) = (Arc::clone(storage), Arc::<Shared>::default());
        let (own, ended) = (Arc::clone(&shared), Arc::clone(&shared));
        let write = move |signal: &Signal| {
            for piece in pieces.iter().take_while(|_| !signal.is_stopped()) {
                match piece {
                    Piece::Write(pages) => own.write(&*storage, page_size, pages),
                    Piece::Ask(at, len) => storage.write_back(at, len),
                }
                own.ahead.fetch_sub(1, Ordering::Relaxed);
            }
        };
        let at_end = move || {
            ended.writes().gone = true;
            ended.written.notify_all();
        };
        let worker = Worker::start_with_end("write", write, at_end).ok()?;
        Some(Self {
            pieces: Some(sender),
            shared,
            worker: Some(worker),
        })
    }

    /// Whether the background thread has completed all pieces, so that the disk is about to become idle.
    pub(crate) fn is_idle(&self) -> bool {
        self.shared.ahead.load(Ordering::Relaxed) == 0
    }

    fn send(&self, piece: Piece) {
        self.shared.ahead.fetch_add(1, Ordering::Relaxed);
        if let Some(pieces) = &self.pieces {
            // If the thread has ended, `drain` reports that the piece was not written.
            drop(pieces.send(piece));
        }
    }

    /// Makes the background thread write sealed pages and start their write-back to the medium.
    pub(crate) fn write(&self, pages: Pages) {
        self.shared.writes().left += 1;
        self.send(Piece::Write(pages));
    }

    /// Makes the background thread start the write-back of a range that is already written.
    pub(crate) fn write_back(&self, at: u64, len: u64) {
        self.send(Piece::Ask(at, len));
    }

    /// Waits until all pages passed to the background thread are in the file. Returns the number of write calls since
    /// the last `drain`.
    ///
    /// # Errors
    /// I/O errors of writes since the last `drain`.
    pub(crate) fn drain(&self) -> Result<u64> {
        let mut writes = self.shared.writes();
        while writes.left > 0 && !writes.gone {
            let woken = self.shared.written.wait(writes);
            writes = woken.unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(error) = writes.failed.take() {
            return Err(error);
        }
        if writes.left > 0 {
            let source = io::Error::other("the thread that writes has ended");
            return Err(Error::of_write("write", 0, 0, source));
        }
        Ok(std::mem::take(&mut writes.calls))
    }

    /// Abandons the background thread in a forked process, in which this thread does not exist.
    pub(crate) fn leave(mut self) {
        std::mem::forget(self.pieces.take());
        if let Some(worker) = self.worker.take() {
            worker.forget();
        }
    }
}

impl Drop for BackgroundWriter {
    fn drop(&mut self) {
        if let Some(worker) = &self.worker {
            worker.stop();
        }
        // Dropping the sender ends the background thread, whose errors were reported by `drain`.
        self.pieces = None;
        drop(self.worker.take());
    }
}

#[cfg(test)]
mod tests {
    use super::BackgroundWriter;
    use crate::error::Error;
    use std::io;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};
    use tidalite_disk::Error as DiskError;
    use tidalite_disk::storage::{Growth, MemoryStorage, Storage};

    const PAGE: usize = 4096;

    /// A storage for tests that records write-back requests, delays writes, and fails or panics on demand.
    #[derive(Default)]
    struct SlowStorage {
        memory: MemoryStorage,
        requested: Mutex<Vec<(u64, u64)>>,
        fails: AtomicBool,
        panics: AtomicBool,
    }

    impl Storage for SlowStorage {
        fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
            self.memory.read_at(at, bytes)
        }
        fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
            std::thread::yield_now();
            assert!(!self.panics.load(Ordering::SeqCst), "as it was told to");
            if self.fails.load(Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.memory.write_at(at, bytes)
        }
        fn write_back(&self, at: u64, len: u64) {
            self.requested.lock().unwrap().push((at, len));
        }
        fn writes_back(&self) -> bool {
            true
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn sync_all(&self) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            self.memory.len()
        }
        fn grow(&self, len: u64, how: Growth) -> io::Result<()> {
            self.memory.grow(len, how)
        }
    }

    fn page(byte: u8) -> Arc<[u8]> {
        Arc::from([byte; PAGE])
    }

    fn begin() -> (Arc<SlowStorage>, BackgroundWriter) {
        let late = Arc::new(SlowStorage::default());
        late.grow(1 << 20, Growth::Reserve).unwrap();
        let storage: Arc<dyn Storage> = Arc::clone(&late) as Arc<dyn Storage>;
        let background = BackgroundWriter::begin(&storage, PAGE).unwrap();
        (late, background)
    }

    #[test]
    fn what_was_handed_over_is_in_the_file_when_it_is_drained() {
        let (late, background) = begin();
        for round in 1..50u8 {
            background.write(vec![(9, page(round)), (8, page(round)), (40, page(round))]);
            background.write(vec![(9, page(round | 0x80))]);
            // The first call of `write` causes two write calls, the second call one.
            assert_eq!(background.drain().unwrap(), 3);
            let mut bytes = vec![0; 2 * PAGE];
            late.read_at(8 * PAGE as u64, &mut bytes).unwrap();
            assert_eq!((bytes[0], bytes[PAGE]), (round, round | 0x80));
        }
        background.write_back(0, 77);
        while !background.is_idle() {
            std::thread::yield_now();
        }
        drop(background);
        assert_eq!(Arc::strong_count(&late), 1, "nobody holds the file");
        let requested = late.requested.lock().unwrap();
        let bytes = PAGE as u64;
        assert_eq!(
            requested[..2],
            [(8 * bytes, 33 * bytes), (9 * bytes, bytes)]
        );
        assert_eq!(requested.last(), Some(&(0, 77)));
    }

    #[test]
    fn what_fails_shows_when_it_is_drained() {
        let (late, background) = begin();
        late.fails.store(true, Ordering::SeqCst);
        background.write(vec![(8, page(1))]);
        let found = background.drain().unwrap_err();
        assert!(
            matches!(found, Error::Disk(DiskError::DiskFull { .. })),
            "{found:?}"
        );
        late.fails.store(false, Ordering::SeqCst);
        background.write(vec![(8, page(1))]);
        background.drain().unwrap();
        late.panics.store(true, Ordering::SeqCst);
        background.write(vec![(8, page(1))]);
        background.write(vec![(8, page(2))]);
        let found = background.drain().unwrap_err();
        assert!(
            matches!(found, Error::Disk(DiskError::Io { .. })),
            "{found:?}"
        );
    }
}
