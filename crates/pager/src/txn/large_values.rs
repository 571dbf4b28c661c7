//! The second file in a transaction: its free space, written as ordinary pages of the first one before a record names them, and
//! what a compaction asks about it.

use super::WriteTxn;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::pages::{Extent, PageWrite};
use crate::format::ptr::Ptr;
use crate::space::large::LargeWhat;

/// How full the second file is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondFile {
    /// Pages in use, those that wait to become free and the head included.
    pub used: u64,
    /// Where the last of them ends.
    pub end: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl WriteTxn {
    /// How full the second file is; all 0 without one.
    #[must_use]
    pub fn second_file(&self) -> SecondFile {
        let writer = self.writer.as_ref();
        let large = writer.and_then(|writer| writer.space.large.as_deref());
        let (Some(large), Some(file)) = (large, &self.inner.files.large) else {
            return SecondFile::default();
        };
        let known = large.pages() * self.inner.files.page_size as u64;
        SecondFile {
            used: large.pages() - large.free_pages(),
            end: large.end(),
            bytes: file.storage.len().unwrap_or(known),
        }
    }

    /// Its name or its length is not the one that the record says.
    pub(super) fn second_changed(&self) -> bool {
        let writer = self.writer.as_ref();
        let large = writer.and_then(|writer| writer.space.large.as_deref());
        large.is_some_and(|large| large.changed)
    }

    pub(super) fn fits_lower(&mut self, extent: &Extent) -> bool {
        let page = extent.addr / self.inner.files.page_size as u64;
        let large = self.writer().space.large.as_deref_mut();
        large.is_some_and(|large| {
            let place = large.place(page);
            place.is_some_and(|place| large.fits_before(place, extent.pages))
        })
    }

    /// Writes what changed; the pages, for `Large::install` once the commit is whole. The root is the last one.
    pub(super) fn write_large(&mut self) -> Result<Vec<(LargeWhat, Ptr)>> {
        let writer = self.writer();
        if writer.space.large.is_none() {
            return Ok(Vec::new());
        }
        if let Some(writer) = &mut self.writer {
            writer.space.note_large(&self.space);
            let large = writer.space.large.as_deref();
            for ptr in large.map_or(Vec::new(), |large| large.gone().to_vec()) {
                self.free_page(&ptr);
            }
        }
        let mut new: Vec<(LargeWhat, Ptr)> = Vec::new();
        // Taking pages for it may free more of the second file; there is an end, since each zone is taken in once.
        loop {
            let plan = self
                .writer
                .as_ref()
                .and_then(|writer| writer.space.large.as_ref());
            let plan = plan.map(|large| large.plan()).unwrap_or_default();
            let known = new.len();
            for page in plan {
                if new.iter().any(|(what, _)| *what == page.what) {
                    continue;
                }
                let (kind, owner) = match page.what {
                    LargeWhat::Bitmap(zone) => (Kind::FreeBitmap, zone as u64),
                    LargeWhat::Directory(number) => (Kind::LargeSpace, number as u64),
                    LargeWhat::Root => (Kind::LargeSpace, 0),
                };
                let ptr = self.new_page(kind, owner)?;
                new.push((page.what, ptr));
                if !page.old.is_null() {
                    self.free_page(&page.old);
                }
            }
            if new.len() == known {
                break;
            }
        }
        self.check()?;
        // Bitmaps, then directories, then the root.
        new.sort_unstable_by_key(|(what, _)| *what);
        let mut bytes = vec![0; self.inner.files.page_size];
        for i in 0..new.len() {
            let (what, ptr) = new[i];
            bytes.fill(0);
            if let Some(large) = self.writer().space.large.as_deref() {
                large.fill(what, &new[..i], &mut bytes);
            }
            self.page_mut(&ptr)?.copy_from_slice(&bytes);
            new[i].1 = self.seal_page(&ptr)?;
        }
        Ok(new)
    }
}
