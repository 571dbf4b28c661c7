//! Opening a database by its options.

use crate::database::background::Background;
use crate::database::handle::Database;
use crate::database::options::{Options, Schedule};
use crate::series::helpers::scan_threads_default;
use crate::txn::shared::Shared;
use crate::types::error::Result;
use std::path::Path;
use std::sync::Arc;
use tidalite_pager::{LockMemory, Pager, Storage};

impl Options {
    /// Opens the database file at `path` with these options.
    ///
    /// # Errors
    /// An error of the operating system; the file is not a database, has another format version or is damaged; the
    /// database is open elsewhere, or was replaced while another process has the old file open
    /// ([`Locked`](crate::ErrorKind::Locked)); the file is on a network file system
    /// ([`Unsupported`](crate::ErrorKind::Unsupported)).
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        self.wrap(Pager::open(path, &self.store)?)
    }

    /// Opens a database on a custom storage, such as memory or the simulated disk of the tests.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage(&self, storage: Arc<dyn Storage>) -> Result<Database> {
        self.wrap(Pager::open_storage(storage, &self.store)?)
    }

    /// Opens a database on a custom storage concurrently with other handles that share the lock area `locks`, as
    /// several processes open one file.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storage_with(
        &self,
        storage: Arc<dyn Storage>,
        memory: &LockMemory,
    ) -> Result<Database> {
        self.wrap(Pager::open_storage_with(storage, memory, &self.store)?)
    }

    /// Opens a database on two custom storages: the second one is for large values, as
    /// [`large_values`](Self::large_values) is for files, and the size bound given there applies. Handles may share the
    /// lock area as for `open_storage_with`.
    ///
    /// # Errors
    /// As for `open`.
    pub fn open_storages(
        &self,
        storage: Arc<dyn Storage>,
        large: Arc<dyn Storage>,
        memory: &LockMemory,
    ) -> Result<Database> {
        let opened = Pager::open_storages(storage, Some(large), memory, &self.store);
        self.wrap(opened?)
    }

    fn wrap(&self, pager: Pager) -> Result<Database> {
        let shared = Shared::new(
            (self.write_buffer_bytes, self.leaf_vectors, self.run_bytes),
            (
                self.flush_threads,
                self.scan_threads.unwrap_or_else(scan_threads_default),
            ),
        );
        let mut database = Database {
            pager,
            shared: Arc::new(shared),
            background: None,
        };
        if let Some(Schedule { every, work }) = &self.background
            && !self.store.read_only
        {
            let thread = Background::start(work(database.clone()), *every)?;
            database.background = Some(Arc::new(thread));
        }
        Ok(database)
    }
}

impl Database {
    /// Opens a database with the default options, or creates it if the file does not exist.
    ///
    /// # Errors
    /// As for [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }
}
