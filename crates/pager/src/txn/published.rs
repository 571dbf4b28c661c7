//! The published commit, for callers that do not wait for the writer: a snapshot of the newest commit visible to all
//! processes, and the free space that its meta record describes.
//!
//! Invariants
//! 1. The snapshot retains everything to which the meta record points, including the free-space structure. Only data
//!    of the durable meta record on which it builds may disappear, when a newer one is written; then the whole
//!    operation is repeated.
//! 2. Nothing is written to the file or the lock area, except the slot of the snapshot.

use super::inner::Inner;
use super::snapshot::Snapshot;
use super::writer::Writer;
use crate::commit::found::Found;
use crate::commit::versions::State;
use crate::error::{Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite_base::Corrupt;

/// Maximum number of attempts; each attempt may fail because of another commit.
const ATTEMPTS: usize = 1000;

/// Returns a snapshot of the newest published commit, and the free space that its meta record describes.
pub(crate) fn published(inner: &Arc<Inner>) -> Result<(Snapshot, Box<Writer>)> {
    inner.files.lock.check_process()?;
    let word = || inner.files.lock.area.published().load(Ordering::SeqCst);
    let mut failed = None;
    for _ in 0..ATTEMPTS {
        let known = word();
        let Some(slot) = Snapshot::hold(&inner.files.lock, known)? else {
            continue;
        };
        let found = Found::published(
            &*inner.files.storage,
            &inner.files.superblock,
            &inner.files.lock,
            None,
        );
        let found = match found {
            Ok(Some(found)) if found.meta.txn == known => found,
            other => {
                inner.files.lock.leave_slot(slot);
                other?;
                continue;
            }
        };
        let state = State::of_meta(&found.meta, inner.files.page_size);
        let snapshot = Snapshot::of_slot(inner, slot, state.txn.0, Arc::new(state));
        match Writer::load(&inner.files, found) {
            Ok(mut writer) => {
                writer.reclaim_in_memory(inner);
                return Ok((snapshot, Box::new(writer)));
            }
            Err(error) if word() == known => return Err(error),
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.unwrap_or_else(|| {
        let found = format!("another one, {ATTEMPTS} times");
        Error::from(Corrupt::new("meta records", 0, found, "the published one"))
    }))
}
