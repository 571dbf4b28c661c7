//! The stores of messages: ours and the peers.

use super::face::{Reader, Writer};
use super::{ours, sqlite};
use crate::engine::{Kind, Result};
use std::path::Path;

/// Creates a store. `data_bytes` is the maximum size of all messages.
pub(super) fn create(
    kind: Kind,
    dir: &Path,
    devices: u64,
    data_bytes: u64,
) -> Result<Box<dyn Writer>> {
    Ok(match kind.ours {
        true => Box::new(ours::Ours::create(dir, devices)?),
        false => Box::new(sqlite::Sqlite::create(dir, data_bytes)?),
    })
}

/// Opens an existing store, and calls `work` with a snapshot of it.
pub(super) fn with_reader(
    kind: Kind,
    dir: &Path,
    devices: u64,
    data_bytes: u64,
    work: &mut dyn FnMut(&dyn Reader) -> Result<()>,
) -> Result<()> {
    match kind.ours {
        true => ours::with_reader(dir, devices, work),
        false => sqlite::with_reader(dir, data_bytes, work),
    }
}
