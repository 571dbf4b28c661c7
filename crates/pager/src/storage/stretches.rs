//! Maps for who reads leaves in the order in which they lie in a large file: around pages of these the system reads.
//!
//! What the system reads around a page, how far, and whether at all, it decides by what it has seen of that *opened* file; single pages
//! read here and there make it give up. So the file is opened once more for these maps, and only walks along it are seen there.
//! What the system reads by itself comes in large units of its cache, which cost a fraction of single pages asked for: to take,
//! to map, and to give back when memory is short (decision 0506).
//!
//! Invariants
//! 1. The second opening is of the very same file, by the system's own name for what is open; where there is no such name, or
//!    it may not be opened, there are no stretches and everything else is as before. It is for reading only, and nothing is locked by it.
//! 2. What is lent lies inside the file: as for the other maps, whose length the caller compares with.

use super::map::{MAPS_MAX, Map, place};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

#[derive(Debug)]
pub(super) struct Stretches {
    file: File,
    maps: [OnceLock<Option<Map>>; MAPS_MAX],
}

impl Stretches {
    pub(super) fn of(file: &File) -> Option<Self> {
        // Elsewhere than on Linux such a name is another handle of the same opening, or nothing.
        if !cfg!(target_os = "linux") {
            return None;
        }
        let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(Self {
            file,
            maps: [const { OnceLock::new() }; MAPS_MAX],
        })
    }

    /// Bytes that the caller knows to lie before the file's end.
    #[inline]
    pub(super) fn slice(&self, at: u64, len: usize) -> Option<&[u8]> {
        let (index, from, inside) = place(at, len)?;
        let map = self.maps[index].get_or_init(|| Map::new(&self.file, from));
        Some(map.as_ref()?.slice(inside, len))
    }
}
