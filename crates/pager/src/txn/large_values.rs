//! The second file in a transaction. Its free space is written as ordinary pages of the first file before a meta
//! record refers to these pages; its fill level is reported for compaction.

use super::WriteTxn;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::pages::{Extent, PageWrite};
use crate::format::ptr::Ptr;
use crate::space::large::LargeWhat;

/// Fill level of the second file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondFile {
    /// Number of pages in use, including the head and freed pages that snapshots still need.
    pub used: u64,
    /// Number of the first page after the last page in use.
    pub end: u64,
    /// Length of the second file in bytes.
    pub bytes: u64,
}

impl WriteTxn {
    /// Fill level of the second file; all fields are 0 if there is no second file.
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
            end: large.map.end(),
            bytes: file.storage.len().unwrap_or(known),
        }
    }

    /// Whether the name or length of the second file differs from the name or length that the newest meta record
    /// refers to.
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

    /// Writes the changed pages that describe the second file, and returns them, the root last, for `Large::install`
    /// once the commit is complete.
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
        // Allocating pages may free more pages of the second file, whose regions must then be written as well. The
        // loop ends, since each region is added only once.
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
                    LargeWhat::Bitmap(region) => (Kind::FreeBitmap, region as u64),
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
        // Bitmaps sort before directories, and directories before the root.
        new.sort_unstable_by_key(|(what, _)| *what);
        assert!(
            new.last().is_none_or(|(what, _)| *what == LargeWhat::Root),
            "the root is written last"
        );
        debug_assert!(
            new.is_sorted_by(|(a, _), (b, _)| a < b),
            "a page of the second file's free space is written twice"
        );
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
