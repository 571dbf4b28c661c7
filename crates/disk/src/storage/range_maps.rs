//! Maps for reading leaves in file order in a large file, with readahead by the system.
//!
//! The system decides about readahead by the access pattern of each *opened* file; scattered reads of single pages make
//! it stop. These maps therefore use a second opening of the file, which only sees sequential reads. Readahead fills
//! large units of the system's cache, which cost a fraction of single prefetched pages to allocate, to map, and to
//! evict when memory is short (docs/performance/table-reads.md).
//!
//! Invariants
//! 1. The second opening is of the same file, by the system's name for the descriptor. If there is no such name, or it
//!    cannot be opened, these maps do not exist and everything else works as before. It is read-only and takes no
//!    locks.
//! 2. Lent bytes lie inside the file: as for the other maps, the caller compares with the length.

use super::map::{MAPS_MAX, Map, place};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

#[derive(Debug)]
pub(super) struct RangeMaps {
    file: File,
    maps: [OnceLock<Option<Map>>; MAPS_MAX],
}

impl RangeMaps {
    pub(super) fn of(file: &File) -> Option<Self> {
        // On other systems than Linux, such a name refers to the same opening of the file, or does not exist.
        if !cfg!(target_os = "linux") {
            return None;
        }
        let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(Self {
            file,
            maps: [const { OnceLock::new() }; MAPS_MAX],
        })
    }

    /// Returns bytes of the file; the caller must have checked that they lie before the end of the file.
    #[inline]
    pub(super) fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        let (index, from, inside) = place(at, len)?;
        let map = self.maps[index].get_or_init(|| Map::new(&self.file, from));
        Some(map.as_ref()?.slice(inside, len))
    }
}
