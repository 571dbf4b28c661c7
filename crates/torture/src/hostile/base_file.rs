//! Files in memory of which the hostile files are made.

use super::errors::broken;
use super::files::{Files, Stored};
use crate::model::clock;
use crate::workload::RUN_BYTES;
use std::sync::Arc;
use std::time::Duration;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Options, Result, Tuning};

/// Creates a file in memory with a database that `fill` fills.
pub(super) fn file(page_size: usize, fill: impl FnOnce(&Database) -> Result<()>) -> Result<Files> {
    file_with_log(page_size, 0, fill)
}

pub(super) fn file_with_log(
    page_size: usize,
    log_bytes: u64,
    fill: impl FnOnce(&Database) -> Result<()>,
) -> Result<Files> {
    let stored = Stored {
        first: Arc::new(MemoryStorage::new()),
        second: None,
    };
    let db = stored.open_by(small(page_size, log_bytes))?;
    fill(&db)?;
    drop(db);
    stored.files().map_err(broken)
}

pub(super) fn small(page_size: usize, log_bytes: u64) -> Options {
    Options::new().page_size(page_size).tuning(
        clock::of_thread(Tuning::new())
            .growth_bytes(16 << 10, 64 << 10)
            .log_bytes(log_bytes)
            .run_bytes(RUN_BYTES)
            // Every commit writes an entry of the commit clock, so that the clock has pages.
            .clock_step(Duration::from_nanos(1)),
    )
}
