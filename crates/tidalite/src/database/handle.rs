//! The database: one file, opened.

use crate::database::background::Background;
use crate::txn::read::ReadTxn;
use crate::txn::shared::Shared;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::sync::Arc;
use std::time::Duration;
use tidalite_pager::Pager;

/// An open database. Clones share it; it is closed when the last clone and the last transaction are gone.
#[derive(Clone)]
pub struct Database {
    pub(crate) pager: Pager,
    pub(crate) shared: Arc<Shared>,
    pub(super) background: Option<Arc<Background>>,
}

impl Database {
    /// The identity of the file: random bytes that it got when it was created and keeps for ever. A byte-for-byte copy has the same ([`copy_image`](Self::copy_image)); one that was made by `copy_to`
    /// or [`restore`](crate::restore) has one of its own. [`Look::uuid`](crate::Look::uuid) tells it of a file that is not opened.
    #[must_use]
    pub fn uuid(&self) -> [u8; 16] {
        self.pager.uuid()
    }

    /// Bounds the file's length anew, as [`Options::file_bytes`](crate::Options::file_bytes) does when it is opened: at least `min` bytes, free or not, and at most `max`. For what this handle and its clones do from
    /// now on; a transaction under way may go by either. A file that is longer than `max` already only grows no further, until free space at its end is cut off.
    pub fn set_file_bytes(&self, min: u64, max: u64) {
        self.pager.set_file_bytes(min, max);
    }

    /// Takes a snapshot of the newest commit of any process. Never waits.
    ///
    /// # Errors
    /// `Store` with: too many snapshots (`Limit`); a forked child (`Forked`); damage in the roots or in the front's record.
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

    /// Begins the write transaction; waits for others, first come first served among processes. Of the threads of one handle who is awake
    /// when the turn becomes free may have it before who sleeps and waits for it, for 5 ms at most: so many threads commit faster.
    ///
    /// # Errors
    /// `Store` with: read-only; poisoned by a failed sync; a forked child; damage in the roots.
    pub fn begin_write(&self) -> Result<WriteTxn> {
        WriteTxn::begin(Arc::clone(&self.shared), self.pager.begin_write()?)
    }

    /// Begins the write transaction; waits for others no longer than `patience`.
    ///
    /// # Errors
    /// `Store(WriterBusy)`, which names the writer; else as for `begin_write`.
    pub fn begin_write_within(&self, patience: Duration) -> Result<WriteTxn> {
        let pages = self.pager.begin_write_within(patience)?;
        WriteTxn::begin(Arc::clone(&self.shared), pages)
    }

    /// Begins the write transaction unless another one is under way in any process.
    ///
    /// # Errors
    /// As for `begin_write`.
    pub fn try_begin_write(&self) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.try_begin_write()? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// As `begin_write`; `None` when `goes_on` says no while it waits.
    pub(crate) fn begin_write_while(&self, goes_on: &dyn Fn() -> bool) -> Result<Option<WriteTxn>> {
        let Some(pages) = self.pager.begin_write_while(goes_on)? else {
            return Ok(None);
        };
        WriteTxn::begin(Arc::clone(&self.shared), pages).map(Some)
    }

    /// What maintenance in the background failed with last; asked once, it is forgotten.
    #[must_use]
    pub fn take_maintenance_error(&self) -> Option<crate::Error> {
        self.background.as_ref()?.take_error()
    }
}
