//! Loads the free space of a file that a meta record describes.

use super::base::load_base;
use super::free_space::Space;
use super::large::Large;
use super::lists;
use super::read::{ReadPage, damaged, read_kind};
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::layout::{first_page, region_pages};
use crate::format::meta::Meta;
use crate::format::ptr::Ptr;

/// Loads the free space that a meta record describes. `before` is the transaction of the previous durable commit.
pub(crate) fn load(
    page_size: usize,
    meta: &Meta,
    before: u64,
    read: ReadPage<'_>,
) -> Result<Space> {
    let base = load_base(page_size, meta, read)?;
    let region_pages = region_pages(page_size);
    let mut space = Space::new(page_size, meta.pages, base.clone(), [meta.txn, before]);
    for (number, ptr) in base.bitmaps.iter().enumerate() {
        let from = number as u64 * region_pages;
        let here = (base.pages - from).min(region_pages);
        space.map.regions[number].used_for = base.uses[number];
        if ptr.is_null() {
            space.map.load_range(from, here, true);
            continue;
        }
        let page = read_kind(read, ptr, Kind::FreeBitmap)?;
        space.map.load_bitmap(number, &page, here);
    }
    let grown = base.pages.max(first_page(page_size));
    if meta.pages > grown {
        // The bitmaps do not describe pages from `grown` on. Such pages are free unless the changes below say
        // otherwise, and the next rewrite of the bitmaps includes their regions.
        space.map.touch(grown, meta.pages - grown);
        space.map.load_range(grown, meta.pages - grown, true);
    }
    // The head of the file is in use, whatever a bitmap says.
    let head = first_page(page_size).min(meta.pages);
    space.map.load_range(0, head, false);
    let at = Ptr::NULL;
    for change in &meta.changes {
        if !space.in_file(change.page, change.pages) {
            let found = format!("pages {}+{}", change.page, change.pages);
            return Err(damaged("change", &at, found, "a range inside the file"));
        }
        space
            .map
            .load_range(change.page, change.pages, !change.used);
        space.note(change.page, change.pages, change.used);
    }
    space.map.loaded();
    if let Some(redo) = meta.redo
        && (!space.in_file(redo.page, redo.pages) || space.any_free(redo.page, redo.pages))
    {
        let expected = "used pages of the file, behind its head";
        return Err(damaged("log", &at, format!("{redo:?}"), expected));
    }
    let mut pages = meta.pages;
    if !meta.large.is_null() {
        let large = Large::load(page_size, meta.large, meta.pages, read)?;
        pages = pages.saturating_add(large.pages());
        space.large = Some(Box::new(large));
    }
    let mut seen = super::ranges::RangeSet::default();
    for &freed_ranges in &meta.pendings {
        let sound = space.in_file(freed_ranges.page, freed_ranges.pages)
            && !space.any_free(freed_ranges.page, freed_ranges.pages)
            && freed_ranges.birth < freed_ranges.freed
            && freed_ranges.freed <= meta.txn
            && seen.insert(freed_ranges.page, freed_ranges.pages);
        if !sound {
            let expected = "used pages of the file, once";
            return Err(damaged(
                "pending range",
                &at,
                format!("{freed_ranges:?}"),
                expected,
            ));
        }
        // The range is retained for a transaction that may have no snapshot; the first reclaim moves it to a live
        // snapshot.
        space.pending.add(freed_ranges.freed - 1, &[freed_ranges]);
    }
    let (directory, stacks) = lists::load_directory(meta.freed_directory, pages, read)?;
    for stack in &stacks {
        space.pending.pages += stack.pages;
    }
    (space.pending.directory, space.pending.stacks) = (directory, stacks);
    space.check();
    Ok(space)
}
