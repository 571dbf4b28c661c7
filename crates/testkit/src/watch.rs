//! Puts the write-protocol monitor around every storage that a test process opens, including files of the operating
//! system.
//!
//! Handles of one process on one file, or on one storage, share their state. The monitor does not see writes of another
//! process, so a test with several writing processes runs without it.

use crate::monitor::{Monitor, Shared};
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tidalite_disk::storage::{Opened, wrap_opened};
use tidalite_pager::Storage;

/// Identity of a storage: device and inode number of a file, or the memory address of any other storage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Same {
    File(u64, u64),
    Address(usize),
}

static KNOWN: Mutex<Vec<(Same, Weak<Shared>)>> = Mutex::new(Vec::new());

/// Puts a [`Monitor`] around every storage that this process opens from now on.
pub fn watch() {
    wrap_opened(monitored);
}

fn monitored(opened: Opened<'_>) -> Arc<dyn Storage> {
    let same = match std::fs::metadata(opened.path) {
        Ok(file) => Same::File(file.dev(), file.ino()),
        Err(_) => Same::Address(Arc::as_ptr(&opened.storage).cast::<()>().addr()),
    };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(_, shared)| shared.strong_count() > 0);
    if !opened.first {
        let found = known.iter().find(|(known, _)| *known == same);
        return match found.and_then(|(_, shared)| shared.upgrade()) {
            Some(shared) => Monitor::sharing(opened.storage, shared),
            // Another process opened the file first, and the monitor has not seen the writes of that process.
            None => opened.storage,
        };
    }
    known.retain(|(known, _)| *known != same);
    let monitor = Monitor::new(opened.storage);
    known.push((same, Arc::downgrade(monitor.shared())));
    monitor
}
