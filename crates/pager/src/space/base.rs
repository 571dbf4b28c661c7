//! The free-space structure on disk: a root, directories, and one bitmap per region. Only touched regions are
//! rewritten, and only when the changes no longer fit in the meta record.
//!
//! ```text
//! FreeRoot       0..32 header | 32 pages u64 | 40 0 | 80 next root Ptr | 112 directories u32 | 0
//!                128 Ptr of each directory
//! FreeDirectory  0..32 header | 0            | 64 entries of 40 bytes: bitmap Ptr, free pages u32,
//!                use u8 | longest free run << 8, u32
//! FreeBitmap     0..32 header (owner = region) | 0 | 64 one bit a page, set = free,
//!                bit i of byte j = page 8j + i of the region
//! ```
//!
//! The structure does not count the pages of its own latest rewrite as used. These are a few extents, which the meta
//! record that points to the new root lists as its first changes. So allocating pages for a rewrite does not change the
//! content that the rewrite stores, and one pass suffices. A null bitmap pointer means that all pages of the region
//! are free.

use super::read::ReadPage;
use super::read::{damaged, read_kind};
use super::region::Use;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::layout::{first_page, region_pages};
use crate::format::meta::Meta;
use crate::format::ptr::{PTR_BYTES, Ptr};
use tidalite_base::{get_u32, get_u64};

pub(super) const ROOT_PAGES_AT: usize = 32;
pub(super) const ROOT_NEXT_AT: usize = 80;
pub(super) const ROOT_COUNT_AT: usize = ROOT_NEXT_AT + PTR_BYTES;
pub(super) const ROOT_ENTRIES_AT: usize = 128;
pub(super) const DIRECTORY_ENTRIES_AT: usize = 64;
pub(super) const DIRECTORY_ENTRY_BYTES: usize = PTR_BYTES + 8;
const _: () = assert!(ROOT_PAGES_AT + 8 <= ROOT_NEXT_AT && ROOT_COUNT_AT + 4 <= ROOT_ENTRIES_AT);

pub(super) fn directories_per_root(page_size: usize) -> usize {
    (page_size - ROOT_ENTRIES_AT) / PTR_BYTES
}

pub(super) fn regions_per_directory(page_size: usize) -> usize {
    (page_size - DIRECTORY_ENTRIES_AT) / DIRECTORY_ENTRY_BYTES
}

/// Pointers to the pages of the free-space structure in the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Base {
    /// Number of pages of the file that the free-space structure describes.
    pub(super) pages: u64,
    pub(super) roots: Vec<Ptr>,
    pub(super) directories: Vec<Ptr>,
    pub(super) bitmaps: Vec<Ptr>,
    /// Use of each region (single pages or extents), as read from the file.
    pub(super) uses: Vec<Use>,
}

impl Base {
    pub(crate) fn root(&self) -> Ptr {
        self.roots.first().copied().unwrap_or(Ptr::NULL)
    }

    /// Returns pointers to all pages of the free-space structure.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &Ptr> {
        let lists = [&self.roots, &self.directories, &self.bitmaps];
        let all = lists.into_iter().flatten();
        all.filter(|ptr| !ptr.is_null())
    }
}

pub(super) fn load_base(page_size: usize, meta: &Meta, read: ReadPage<'_>) -> Result<Base> {
    let mut base = Base::default();
    if meta.free_root.is_null() {
        return Ok(base);
    }
    let (region_pages, per_root) = (region_pages(page_size), directories_per_root(page_size));
    let mut at = meta.free_root;
    loop {
        let page = read_kind(read, &at, Kind::FreeRoot)?;
        let pages = get_u64(&page, ROOT_PAGES_AT);
        if base.roots.is_empty() {
            base.pages = pages;
        }
        if pages > meta.pages || pages < first_page(page_size) || pages != base.pages {
            let expected = format!("at most {} pages, alike in all roots", meta.pages);
            return Err(damaged("root", &at, pages, &expected));
        }
        let regions = pages.div_ceil(region_pages) as usize;
        let directories = regions.div_ceil(regions_per_directory(page_size));
        let wanted = (directories - base.directories.len()).min(per_root);
        let found = get_u32(&page, ROOT_COUNT_AT) as usize;
        if found != wanted {
            let expected = format!("{wanted} directories");
            return Err(damaged("root", &at, found, &expected));
        }
        for i in 0..found {
            let directory = Ptr::decode(&page, ROOT_ENTRIES_AT + i * PTR_BYTES);
            base.directories.push(directory);
        }
        base.roots.push(at);
        at = Ptr::decode(&page, ROOT_NEXT_AT);
        if base.directories.len() == directories {
            break;
        }
    }
    let regions = base.pages.div_ceil(region_pages) as usize;
    for directory in &base.directories {
        let page = read_kind(read, directory, Kind::FreeDirectory)?;
        for i in 0..regions_per_directory(page_size).min(regions - base.bitmaps.len()) {
            let at = DIRECTORY_ENTRIES_AT + i * DIRECTORY_ENTRY_BYTES;
            base.bitmaps.push(Ptr::decode(&page, at));
            let word = get_u32(&page, at + PTR_BYTES + 4);
            base.uses.push(Use::from_u8((word & 0xff) as u8));
        }
    }
    assert_eq!(base.bitmaps.len(), base.uses.len(), "a use for each bitmap");
    Ok(base)
}
