//! Loads the free space of a file as described by a meta record.

use super::base::load_base;
use super::free_space::Space;
use super::large::Large;
use super::lists;
use super::read::{ReadPage, damaged, read_kind};
use super::zone::Zone;
use crate::error::Result;
use crate::format::kind::Kind;
use crate::format::layout::{BITMAP_AT, first_page, zone_pages};
use crate::format::meta::Meta;
use crate::format::ptr::Ptr;
use tidalite_base::get_u64;

/// Loads the free space as described by a meta record. `before` is the previous durable transaction.
pub(crate) fn load(
    page_size: usize,
    meta: &Meta,
    before: u64,
    read: ReadPage<'_>,
) -> Result<Space> {
    let base = load_base(page_size, meta, read)?;
    let zone_pages = zone_pages(page_size);
    let mut space = Space::new(page_size, meta.pages, base.clone(), [meta.txn, before]);
    for (number, ptr) in base.bitmaps.iter().enumerate() {
        let from = number as u64 * zone_pages;
        let here = (base.pages - from).min(zone_pages);
        let zone = &mut space.zones[number];
        zone.used_for = base.uses[number];
        if ptr.is_null() {
            zone.load_range(0, here, true);
            continue;
        }
        let page = read_kind(read, ptr, Kind::FreeBitmap)?;
        load_bitmap(zone, &page, here);
    }
    let grown = base.pages.max(first_page(page_size));
    if meta.pages > grown {
        // Bits beyond the described length are undefined: these pages are free until changes apply, and the next
        // rewrite writes their zones.
        space
            .touched
            .extend((grown / zone_pages) as usize..space.zones.len());
        space.for_zones(grown, meta.pages - grown, |_, zone, from, len| {
            zone.load_range(from, len, true);
        });
    }
    // The head is used, whatever a bitmap says.
    let head = first_page(page_size);
    space.for_zones(0, head, |_, zone, from, len| {
        zone.load_range(from, len, false);
    });
    let at = Ptr::NULL;
    for change in &meta.changes {
        if !space.in_file(change.page, change.pages) {
            let found = format!("pages {}+{}", change.page, change.pages);
            return Err(damaged("change", &at, found, "a range inside the file"));
        }
        space.for_zones(change.page, change.pages, |_, zone, from, len| {
            zone.load_range(from, len, !change.used);
        });
        space.note(change.page, change.pages, change.used);
    }
    for zone in &mut space.zones {
        zone.loaded();
    }
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
    for &dead in &meta.pendings {
        let sound = space.in_file(dead.page, dead.pages)
            && !space.any_free(dead.page, dead.pages)
            && dead.birth < dead.freed
            && dead.freed <= meta.txn
            && seen.insert(dead.page, dead.pages);
        if !sound {
            let expected = "used pages of the file, once";
            return Err(damaged("pending range", &at, format!("{dead:?}"), expected));
        }
        // The first reclaim moves it to a live snapshot.
        space.held.entry(dead.freed - 1).or_default().push(dead);
        space.held_pages += dead.pages;
    }
    let (directory, stacks) = lists::load_directory(meta.dead_directory, pages, read)?;
    for stack in &stacks {
        space.held_pages += stack.pages;
    }
    (space.directory, space.stacks) = (directory, stacks);
    Ok(space)
}

fn load_bitmap(zone: &mut Zone, page: &[u8], here: u64) {
    let words = zone.words().len();
    for i in 0..words {
        let at = BITMAP_AT + i * 8;
        if at + 8 > page.len() {
            break;
        }
        zone.load_word(i, get_u64(page, at));
    }
    // Bits beyond the described part are undefined.
    let bits = words as u64 * 64;
    zone.load_range(here, bits - here, false);
}
