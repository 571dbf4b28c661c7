//! Progress, rate limit and cancellation of long operations.

use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tidalite_pager::{
    Counters, Error as StoreError, PageRead, PageRef, Ptr, Snapshot, verify_block,
};

/// Number of bytes read or written between two calls of the progress callback.
const TELL_BYTES: u64 = 256 << 10;
/// Minimum time to sleep for the rate limit. Shorter delays accumulate until they reach it.
const SLEEP_MIN: Duration = Duration::from_millis(2);

/// Progress of a long operation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Number of bytes processed so far.
    pub done_bytes: u64,
    /// Total number of bytes, as far as known; it may grow.
    pub total_bytes: u64,
    /// Name of the structure being processed.
    pub what: &'a str,
}

type Callback<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + 'a;

/// Monitors a long operation: a callback that gets its progress and may stop it, and a rate limit.
///
/// ```
/// use std::ops::ControlFlow;
/// use tidalite::maintenance::Watch;
/// let watch = Watch::new().bytes_per_second(50 << 20).on_progress(|progress| {
///     println!("{} of {}: {}", progress.done_bytes, progress.total_bytes, progress.what);
///     ControlFlow::Continue(())
/// });
/// # drop(watch);
/// ```
#[derive(Default)]
#[must_use]
pub struct Watch<'a> {
    callback: Option<Box<Callback<'a>>>,
    bytes_per_second: u64,
}

impl<'a> Watch<'a> {
    /// Creates a watch without a callback and without a rate limit.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `f` regularly, at least once per 256 KiB. If `f` returns `Break`, the operation ends with `Cancelled`.
    pub fn on_progress(mut self, f: impl FnMut(&Progress<'_>) -> ControlFlow<()> + 'a) -> Self {
        self.callback = Some(Box::new(f));
        self
    }

    /// Sets the maximum average rate in bytes per second; 0 means no limit.
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }
}

/// The state of a watch during an operation.
pub(crate) struct Running<'a> {
    watch: Watch<'a>,
    began: Instant,
    moved: u64,
    told: u64,
    what: String,
    pub(crate) done: u64,
    pub(crate) total: u64,
}

impl<'a> Running<'a> {
    pub(crate) fn new(watch: Watch<'a>, total: u64) -> Self {
        Self {
            watch,
            began: Instant::now(),
            moved: 0,
            told: 0,
            what: String::new(),
            done: 0,
            total,
        }
    }

    /// Records the name of the structure that is processed from now on.
    pub(crate) fn at(&mut self, what: &str) {
        what.clone_into(&mut self.what);
    }

    /// Records that this many bytes were read or written: sleeps for the rate limit, and calls the callback when it is
    /// due.
    pub(crate) fn moved(&mut self, bytes: u64) -> tidalite_pager::Result<()> {
        self.moved += bytes;
        if self.watch.bytes_per_second > 0 {
            let due = self.moved as f64 / self.watch.bytes_per_second as f64;
            let ahead = Duration::from_secs_f64(due).saturating_sub(self.began.elapsed());
            if ahead >= SLEEP_MIN {
                std::thread::sleep(ahead);
            }
        }
        if self.moved < self.told + TELL_BYTES {
            return Ok(());
        }
        self.told = self.moved;
        self.tell()
    }

    /// Records that this many bytes were processed, and counts them as done in the progress.
    #[inline]
    pub(crate) fn done_with(&mut self, bytes: usize) -> tidalite_pager::Result<()> {
        self.done += bytes as u64;
        self.moved(bytes as u64)
    }

    /// Calls the progress callback, if there is one; returns the error `Cancelled` if the callback stops the operation.
    pub(crate) fn tell(&mut self) -> tidalite_pager::Result<()> {
        let progress = Progress {
            done_bytes: self.done,
            total_bytes: self.total.max(self.done),
            what: &self.what,
        };
        let callback = self.watch.callback.as_mut();
        if callback.is_some_and(|callback| callback(&progress).is_break()) {
            return Err(StoreError::Cancelled);
        }
        Ok(())
    }
}

/// A snapshot whose reads are counted by a watch.
pub(crate) struct Watched<'s, 'a> {
    pub(crate) pages: &'s Snapshot,
    pub(crate) running: &'s RefCell<Running<'a>>,
}

impl Watched<'_, '_> {
    fn moved(&self, bytes: usize) -> tidalite_pager::Result<()> {
        match self.running.try_borrow_mut() {
            Ok(mut running) => running.moved(bytes as u64),
            // The progress callback is running and reads through this snapshot itself; that read is not counted.
            Err(_) => Ok(()),
        }
    }
}

impl PageRead for Watched<'_, '_> {
    fn page_size(&self) -> usize {
        self.pages.page_size()
    }

    fn page(&self, ptr: &Ptr) -> tidalite_pager::Result<PageRef<'_>> {
        self.moved(self.page_size())?;
        self.pages.page(ptr)
    }

    fn reads_single_pages(&self) -> bool {
        self.pages.reads_single_pages()
    }

    fn read_ahead(&self, addr: u64, bytes: u64) {
        self.pages.read_ahead(addr, bytes);
    }

    fn block(&self, ptr: &Ptr) -> tidalite_pager::Result<PageRef<'_>> {
        self.moved(ptr.len as usize)?;
        let block = self.pages.block(ptr)?;
        // A check verifies every block again, even if an earlier read has verified it.
        verify_block(&block, ptr)?;
        Ok(block)
    }

    fn bytes(&self, addr: u64, len: usize) -> tidalite_pager::Result<PageRef<'_>> {
        self.moved(len)?;
        self.pages.bytes(addr, len)
    }

    fn counters(&self) -> &Counters {
        self.pages.counters()
    }
}

/// Whether an operation ended because the watch stopped it.
pub(crate) fn is_cancelled<T>(result: &Result<T>) -> bool {
    matches!(result, Err(error) if error.kind() == ErrorKind::Cancelled)
}
