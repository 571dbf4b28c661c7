//! Tests of flipped bits. In a file with checksums a flipped bit must cause an error or change no result. Without
//! checksums (a file made to deceive) results may be wrong, but there must be no panic and no endless loop.

use super::raw::RawPages;
use super::{claims, few, random_key, random_value};
use crate::{Error, Result, Tree};
use std::collections::BTreeMap;
use tidalite_pager::{HEADER_BYTES, PageRead};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn table(rng: &mut Rng, page_size: usize, rows: usize) -> (ScratchPages, Tree, Model) {
    let mut pages = ScratchPages::new(page_size);
    let mut tree = Tree::new(9);
    let mut model = Model::new();
    for _ in 0..rows {
        let (key, value) = (random_key(rng, page_size), random_value(rng, page_size));
        tree.insert(&mut pages, &key, &value).unwrap();
        model.insert(key, value);
    }
    tree.seal(&mut pages).unwrap();
    pages.commit();
    (pages, tree, model)
}

/// All rows that a cursor returns, at most `most` of them.
fn read<R: PageRead>(tree: &Tree, pages: &R, most: usize) -> Result<Model> {
    let mut rows = Model::new();
    let mut cursor = tree.cursor(pages);
    let mut steps = 0;
    while cursor.next()? && steps < most {
        rows.insert(cursor.key().to_vec(), cursor.value()?.to_vec()?);
        steps += 1;
    }
    Ok(rows)
}

#[test]
fn flipped_bit_is_found_or_harmless() {
    for seed in 0..few(8) {
        let page_size = [512, 4096, 128 * 1024][seed as usize % 3];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let (mut pages, tree, model) = table(&mut rng, page_size, 120);
        let ranges = claims(&tree, &pages);
        let mut silent = 0;
        for _ in 0..few(150) {
            let (addr, count) = *rng.pick(&ranges);
            let at = addr + rng.below(count * page_size as u64);
            let bit = rng.below(8) as u8;
            pages.flip_bit(at, bit);
            let checked = tree.check(&pages.snapshot(), &mut |_| {});
            assert!(matches!(checked, Err(Error::Corrupt(_))), "byte {at}");
            let snapshot = pages.snapshot();
            for _ in 0..20 {
                let key = random_key(&mut rng, page_size);
                if let Ok(value) = tree.get(&snapshot, &key) {
                    if let Some(Ok(bytes)) = value.as_ref().map(|value| value.to_vec()) {
                        assert_eq!(Some(&bytes), model.get(&key));
                    }
                    assert_eq!(value.is_some(), model.contains_key(&key));
                }
            }
            // Some damage goes unnoticed by a scan: a chunk that holds only zeros (in pages above 64 KiB) and a long
            // separator are read only by `check` or on demand.
            if let Ok(rows) = read(&tree, &snapshot, usize::MAX) {
                assert!(rows == model, "byte {at}");
                silent += 1;
            }
            pages.flip_bit(at, bit);
        }
        assert!(silent < 75, "a scan passed over {silent} flips");
        assert_eq!(read(&tree, &pages, usize::MAX).unwrap(), model);
        printed.passed();
    }
}

#[test]
fn damage_with_valid_checksums_neither_panics_nor_loops() {
    for seed in 0..few(60) {
        let page_size = [512, 512, 1024, 4096][seed as usize % 4];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(1000 + seed);
        let (pages, tree, model) = table(&mut rng, page_size, 150);
        let ranges = claims(&tree, &pages);
        let clean = RawPages::of(&tree, &pages);
        assert_eq!(read(&tree, &clean, usize::MAX).unwrap(), model);
        for _ in 0..few(40) {
            let mut raw = RawPages::of(&tree, &pages);
            let mut tree = tree;
            for _ in 0..=rng.below(4) {
                damage(&mut rng, &mut raw, &ranges, page_size);
            }
            let _ = tree.check(&raw, &mut |_| {});
            let _ = read(&tree, &raw, 10_000);
            for _ in 0..30 {
                let key = random_key(&mut rng, page_size);
                let _ = tree.get(&raw, &key).map(|value| value.map(|v| v.to_vec()));
                let _ = tree.rank(&raw, &key);
                let mut cursor = tree.cursor(&raw);
                let _ = cursor.seek_le(&key);
                let mut more = cursor.previous();
                for _ in 0..1000 {
                    if !matches!(more, Ok(true)) || cursor.value().is_err() {
                        break;
                    }
                    more = cursor.previous();
                }
            }
            for _ in 0..60 {
                let key = random_key(&mut rng, page_size);
                let done = if rng.one_in(2) {
                    let value = random_value(&mut rng, page_size);
                    tree.insert(&mut raw, &key, &value).map(drop)
                } else {
                    tree.remove(&mut raw, &key).map(drop)
                };
                if done.is_err() {
                    break;
                }
            }
            let key = random_key(&mut rng, page_size);
            let _ = tree.remove_range(&mut raw, &key, &[b'z'; 3]);
            let _ = tree.append(&mut raw, [(vec![255; 9], vec![1]), (vec![255; 10], vec![])]);
            let _ = tree.seal(&mut raw);
            let _ = tree.clear(&mut raw);
        }
        printed.passed();
    }
}

/// Changes a byte of a page, mostly among the header fields and slots at the beginning of the page.
fn damage(rng: &mut Rng, raw: &mut RawPages, ranges: &[(u64, u64)], page_size: usize) {
    let (addr, pages) = *rng.pick(ranges);
    let within = match rng.below(3) {
        0 => HEADER_BYTES + rng.index(16),
        1 => HEADER_BYTES + rng.index(page_size / 4),
        _ => rng.index(page_size),
    };
    let page = addr as usize + rng.index(pages as usize) * page_size;
    let byte = &mut raw.bytes[page + within];
    *byte = match rng.below(3) {
        0 => *byte ^ 1 << rng.below(8),
        1 => byte.wrapping_add(1),
        _ => rng.u64() as u8,
    };
}

/// The leaves that a walk still reaches although other pages are damaged.
#[derive(Default)]
struct Saved {
    leaves: Vec<tidalite_pager::Ptr>,
    lost: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl crate::PageVisitor for Saved {
    fn enter(&mut self, page: &crate::VisitedPage<'_>) -> Result<bool> {
        if page.level == 0 {
            self.leaves.push(page.ptr);
        }
        Ok(page.level > 0)
    }

    fn damaged(&mut self, page: &crate::VisitedPage<'_>, _: tidalite_base::Corrupt) -> Result<()> {
        self.lost
            .push((page.from.to_vec(), page.to.map(<[u8]>::to_vec)));
        Ok(())
    }
}

/// After one flipped bit, `check_each` reports the affected keys, all other keys are readable, and a walk finds at
/// least the keys that were not reported.
#[test]
fn damage_is_reported_by_key_range_and_spares_other_keys() {
    for seed in 0..few(6) {
        let page_size = [512, 4096][seed as usize % 2];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let (mut pages, tree, model) = table(&mut rng, page_size, 200);
        let ranges = claims(&tree, &pages);
        for _ in 0..few(60) {
            let (addr, count) = *rng.pick(&ranges);
            let (at, bit) = (
                addr + rng.below(count * page_size as u64),
                rng.below(8) as u8,
            );
            pages.flip_bit(at, bit);
            let snapshot = pages.snapshot();
            let mut damages = Vec::new();
            tree.check_each(&snapshot, &mut |_| {}, &mut |damage| damages.push(damage))
                .unwrap();
            assert!(!damages.is_empty(), "byte {at}");
            let hit = |key: &[u8]| {
                let within = |d: &crate::Damage| {
                    d.from.as_slice() <= key && d.to.as_deref().is_none_or(|to| key < to)
                };
                damages.iter().any(within)
            };
            for (key, value) in &model {
                if !hit(key) {
                    let found = tree.get(&snapshot, key).unwrap().unwrap();
                    assert_eq!(&found.to_vec().unwrap(), value);
                }
            }
            let mut saved = Saved::default();
            tree.walk(&snapshot, &mut saved).unwrap();
            let mut rows = Model::new();
            for leaf in &saved.leaves {
                if let Ok(leaf) = Tree::of_leaf(&snapshot, leaf) {
                    let mut cursor = leaf.cursor(&snapshot);
                    // A damaged long key ends the scan of its leaf.
                    while cursor.next().unwrap_or(false) {
                        if let Ok(value) = cursor.value().unwrap().to_vec() {
                            rows.insert(cursor.key().to_vec(), value);
                        }
                    }
                }
            }
            for (key, value) in &model {
                let found = rows.get(key);
                assert!(
                    found == Some(value) || (found.is_none() && hit(key)),
                    "byte {at}"
                );
            }
            pages.flip_bit(at, bit);
        }
        printed.passed();
    }
}
