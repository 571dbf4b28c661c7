//! The handle of an open database.

use crate::database::background::Background;
use crate::txn::read::ReadTxn;
use crate::txn::shared::Shared;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tidalite_pager::Pager;

/// An open database. Clones share it; it is closed once the last clone and the last transaction are dropped.
#[derive(Clone)]
pub struct Database {
    pub(crate) pager: Pager,
    pub(crate) shared: Arc<Shared>,
    pub(super) background: Option<Arc<Background>>,
}

impl Database {
    /// The path of the file with symbolic links resolved; `None` for a storage of another kind, such as memory.
    #[must_use]
    pub fn path(&self) -> Option<&std::path::Path> {
        self.pager.path()
    }

    /// The identity of the file: random bytes assigned at creation and kept for ever. A byte-for-byte copy
    /// ([`image`](Self::image)) has the same identity; a file made by [`copy`](Self::copy) or
    /// [`Restore`](crate::maintenance::Restore) has a new one. [`Inspection::uuid`](crate::monitor::Inspection::uuid)
    /// reads the identity of a file without opening it.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.pager.uuid()
    }

    /// Changes the bounds of the file's length, like [`Options::file_bytes`](crate::Options::file_bytes) at opening: at
    /// least `min` bytes, free or not, and at most `max`. Applies to later operations of this handle and its clones; a
    /// transaction in progress may follow either bound. A file already longer than `max` does not grow until free space
    /// at its end is truncated.
    pub fn set_file_bytes(&self, min: u64, max: u64) {
        self.pager.set_file_bytes(min, max);
    }

    /// Takes a snapshot of the newest commit of any process. Never waits for a writer.
    ///
    /// # Errors
    /// Too many snapshots ([`Limit`](crate::ErrorKind::Limit)); a forked child ([`Broken`](crate::ErrorKind::Broken));
    /// damage in the roots or in the delta's record.
    pub fn begin_read(&self) -> Result<ReadTxn> {
        let shared = &self.shared;
        if let Some(read) = shared.newest.begin(&self.pager)? {
            return Ok(read);
        }
        ReadTxn::begin_again(
            self.pager.begin_read()?,
            &shared.newest,
            shared.scan_threads,
        )
    }

    /// Begins the write transaction. Waits for other writers, first come first served among processes. Among the
    /// threads of one handle, an awake thread may take the freed writer lock before a sleeping waiter, for 5 ms at
    /// most: many threads then commit faster.
    ///
    /// # Errors
    /// A handle opened read-only; an earlier failed sync; a forked child; damage in the roots.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        WriteTxn::begin(Arc::clone(&self.shared), self.pager.begin_write()?)
    }

    /// Begins the write transaction; waits at most `patience` for other writers.
    ///
    /// # Errors
    /// [`Locked`](crate::ErrorKind::Locked), which names the writer; else as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        let pages = self.pager.begin_write_within(patience)?;
        WriteTxn::begin(Arc::clone(&self.shared), pages)
    }

    /// Begins the write transaction; returns `None` at once if another one is open in any process.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.try_begin_write()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// Begins the write transaction like `begin_write`; returns `None` if `goes_on` returns false while it waits.
    pub(crate) fn begin_write_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.begin_write_while(goes_on)? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// Returns and clears the last error of the background maintenance.
    #[must_use]
    pub fn take_maintenance_error(&self) -> Option<crate::Error> {
        self.background.as_ref()?.take_error()
    }
}
