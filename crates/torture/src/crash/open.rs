//! Opens and checks the databases of a run.

use crate::model::clock;
use crate::workload::RUN_BYTES;
use crate::workload::round_robin::WRITE_BUFFER_BYTES;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidalite::storage::{LockMemory, Storage};
use tidalite::{Database, OpenMode, Options, Tuning};
use tidalite_testkit::SimDisk;

/// Size in bytes of the head of a file: superblocks and meta blocks.
pub(super) const HEAD_BYTES: usize = 6 * 4096;
/// Minimum size in bytes of values that are stored on the second disk, if there is one.
const LARGE_BYTES_MIN: u64 = 600;

pub(super) type Judged<T = ()> = Result<T, String>;

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

pub(super) fn options(page_size: usize) -> Options {
    Options::new()
        .mode(OpenMode::CreateOrOpen)
        .page_size(page_size)
        .tuning(tuning())
}

fn tuning() -> Tuning {
    clock::of_thread(Tuning::new())
        .growth_bytes(16 << 10, 64 << 10)
        .shrink_bytes(32 << 10)
        .reserve_bytes(32 << 10)
        .log_bytes(48 << 10)
        .dirty_bytes(16 << 10)
        .write_behind_bytes(1 << 10)
        .write_buffer_bytes(256 << 10)
        .run_bytes(RUN_BYTES)
}

/// Sets the number of helper threads, and a write buffer so small that these threads are sometimes used.
pub(super) fn helped(options: Options, threads: usize) -> Options {
    match threads {
        0 => options,
        _ => options
            .flush_threads(threads)
            .tuning(tuning().write_buffer_bytes(WRITE_BUFFER_BYTES)),
    }
}

pub(super) fn storage_of(image: Option<&Vec<u8>>) -> Option<Arc<dyn Storage>> {
    image.map(|image| Arc::new(SimDisk::from_image(image.clone())) as Arc<dyn Storage>)
}

/// Opens the database for a process of the run.
pub(super) fn open(
    storage: Arc<dyn Storage>,
    second: Option<Arc<dyn Storage>>,
    memory: &LockMemory,
    options: Options,
) -> Result<Database, String> {
    let opened = match second {
        None => options.open_storage_with(storage, memory),
        Some(second) => options
            .large_values("", LARGE_BYTES_MIN)
            .open_storages(storage, second, memory),
    };
    opened.map_err(|error| match (error.operation(), error.io_error()) {
        (Some(_), Some(source)) => format!("open: {source}"),
        _ => format!("open: {error}"),
    })
}

pub(super) fn checked(db: &Database) -> Judged {
    let report = db.check().map_err(|error| format!("check: {error}"))?;
    if report.is_clean() {
        Ok(())
    } else {
        Err(format!("check: {:?}", report.problems))
    }
}
