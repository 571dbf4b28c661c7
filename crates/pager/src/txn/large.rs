//! The free space of the second file, written as ordinary pages of the first one before a record names them.

use super::WriteTxn;
use crate::error::Result;
use crate::header::Kind;
use crate::pages::PageWrite;
use crate::ptr::Ptr;
use crate::space::large::LargeWhat;

impl WriteTxn {
    /// Writes what changed; the pages, for `Large::install` once the commit is whole. The root is the last one.
    pub(super) fn write_large(&mut self) -> Result<Vec<(LargeWhat, Ptr)>> {
        if let Some(writer) = &mut self.writer {
            writer.space.note_large(&self.space);
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
        let mut bytes = vec![0; self.inner.page_size];
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
