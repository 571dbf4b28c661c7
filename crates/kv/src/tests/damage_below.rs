//! Tests of damage in nested tables and in tables of sets, and of pages to which several pointers lead.

use super::raw::RawPages;
use super::{claims, few, random_key, random_value};
use crate::page::entries::Bias;
use crate::page::key::Key;
use crate::page::layout::{Payload, child_bytes, tag};
use crate::table::free::OldPayload;
use crate::{
    Error, MissingTable, PageVisitor, Result, TableReader, TableWriter, Tree, VisitedPage,
};
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::Corrupt;
use tidalite_pager::{Extent, HEADER_BYTES, PageRead};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// The values of a table and its nested tables, each by its path of keys; in a set, the value is the last part of the
/// path.
type Rows = BTreeMap<Vec<Vec<u8>>, Vec<u8>>;

/// Maximum number of rows that a test reads from a table made to deceive.
const ROWS_MAX: usize = 20_000;

fn path(rng: &mut Rng) -> Vec<Vec<u8>> {
    let depth = rng.index(4);
    (0..depth)
        .map(|_| vec![b'a' + rng.below(3) as u8; 1 + rng.index(2)])
        .collect()
}

/// A key that never occurs as a nested table's key in a path.
fn row_key(rng: &mut Rng, page_size: usize) -> Vec<u8> {
    let mut key = random_key(rng, page_size - 3);
    key.insert(0, b'~');
    key
}

fn nested(rng: &mut Rng, page_size: usize, rows: usize) -> (ScratchPages, Tree, Rows) {
    let mut pages = ScratchPages::new(page_size);
    let mut work = TableWriter::of(Tree::new(9));
    let mut model = Rows::new();
    for _ in 0..rows {
        let mut way = path(rng);
        let (key, value) = (row_key(rng, page_size), random_value(rng, page_size));
        work.at(
            &mut pages,
            &way,
            MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, &key, &value),
        )
        .unwrap();
        way.push(key);
        model.insert(way, value);
    }
    let mut tree = *work.tree().unwrap();
    tree.seal(&mut pages).unwrap();
    pages.commit();
    (pages, tree, model)
}

fn multi(rng: &mut Rng, page_size: usize, rows: usize) -> (ScratchPages, Tree, Rows) {
    let mut pages = ScratchPages::new(page_size);
    let mut tree = Tree::new_multi(9);
    let mut model = Rows::new();
    for _ in 0..rows {
        let key = vec![b'k', rng.below(20) as u8];
        let value = if rng.one_in(2) {
            (rng.below(3000) as u32).to_be_bytes().to_vec()
        } else {
            random_key(rng, page_size)
        };
        tree.pairs().insert(&mut pages, &key, &value).unwrap();
        model.insert(vec![key, value], Vec::new());
    }
    tree.seal(&mut pages).unwrap();
    pages.commit();
    (pages, tree, model)
}

fn table(rng: &mut Rng, seed: u64, page_size: usize) -> (ScratchPages, Tree, Rows) {
    if seed.is_multiple_of(2) {
        nested(rng, page_size, 250)
    } else {
        multi(rng, page_size, 900)
    }
}

/// Reads all rows, including rows of nested tables, up to `ROWS_MAX`.
fn read<R: PageRead>(sub: &TableReader<'_>, multi: bool, pages: &R, rows: &mut Rows) -> Result<()> {
    fn below<R: PageRead>(
        sub: &TableReader<'_>,
        multi: bool,
        pages: &R,
        way: &mut Vec<Vec<u8>>,
        (rows, left): (&mut Rows, &mut usize),
    ) -> Result<()> {
        let mut cursor = sub.cursor(pages)?;
        while cursor.next()? && *left > 0 {
            *left -= 1;
            way.push(cursor.key().to_vec());
            if cursor.is_nested() {
                below(&cursor.nested()?, false, pages, way, (rows, left))?;
            } else if multi {
                way.push(cursor.value()?.to_vec()?);
                rows.insert(way.clone(), Vec::new());
                way.pop();
            } else {
                rows.insert(way.clone(), cursor.value()?.to_vec()?);
            }
            way.pop();
        }
        Ok(())
    }
    below(
        sub,
        multi,
        pages,
        &mut Vec::new(),
        (rows, &mut { ROWS_MAX }),
    )
}

/// A visitor that enters every page and counts.
#[derive(Default)]
struct Seen {
    pages: BTreeSet<u64>,
    reached: usize,
    values: usize,
    paths: BTreeSet<Vec<Vec<u8>>>,
    damaged: usize,
}

impl PageVisitor for Seen {
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool> {
        self.pages.insert(page.ptr.addr);
        self.reached += 1;
        self.paths.insert(page.path.to_vec());
        Ok(true)
    }

    fn large_value(&mut self, _: &[Vec<u8>], extent: &Extent) -> Result<()> {
        self.values += 1;
        self.pages.insert(extent.addr);
        Ok(())
    }

    fn long_key(&mut self, extent: &Extent) -> Result<()> {
        self.values += 1;
        self.pages.insert(extent.addr);
        Ok(())
    }

    fn damaged(&mut self, _: &VisitedPage<'_>, _: Corrupt) -> Result<()> {
        self.damaged += 1;
        Ok(())
    }
}

#[test]
fn walk_reaches_nested_tables() {
    for seed in 0..few(4) {
        let page_size = [512, 512, 4096, 4096][seed as usize];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(500 + seed);
        let (pages, tree, model) = table(&mut rng, seed, page_size);
        let mut seen = Seen::default();
        tree.walk(&pages, &mut seen).unwrap();
        let claimed: BTreeSet<u64> = claims(&tree, &pages).iter().map(|claim| claim.0).collect();
        assert_eq!((&seen.pages, seen.damaged), (&claimed, 0));
        assert_eq!(seen.reached + seen.values, claimed.len());
        assert!(seen.paths.len() > 1 && seen.paths.contains(&Vec::new()));
        if seed.is_multiple_of(2) {
            assert!(seen.values > 0);
        }
        for path in seen.paths.iter().filter(|path| !path.is_empty()) {
            assert!(model.keys().any(|row| row.starts_with(path)), "{path:?}");
        }
        printed.passed();
    }
}

#[test]
fn flipped_bit_in_nested_data_is_found_or_harmless() {
    for seed in 0..few(8) {
        let page_size = [512, 4096][seed as usize / 2 % 2];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(seed);
        let (mut pages, tree, model) = table(&mut rng, seed, page_size);
        let ranges = claims(&tree, &pages);
        for _ in 0..few(120) {
            let (addr, count) = *rng.pick(&ranges);
            let at = addr + rng.below(count * page_size as u64);
            let bit = rng.below(8) as u8;
            pages.flip_bit(at, bit);
            let snapshot = pages.snapshot();
            let checked = tree.check(&snapshot, &mut |_| {});
            assert!(matches!(checked, Err(Error::Corrupt(_))), "byte {at}");
            let mut rows = Rows::new();
            if read(
                &TableReader::of(tree),
                tree.is_multi(),
                &snapshot,
                &mut rows,
            )
            .is_ok()
            {
                assert!(
                    rows == model,
                    "a long separator, which a scan does not read"
                );
            }
            let same = |row: &(Vec<Vec<u8>>, Vec<u8>)| model.get(&row.0) == Some(&row.1);
            assert!(rows.into_iter().all(|row| same(&row)), "byte {at}");
            let mut seen = Seen::default();
            tree.walk(&snapshot, &mut seen).unwrap();
            pages.flip_bit(at, bit);
        }
        let mut rows = Rows::new();
        read(&TableReader::of(tree), tree.is_multi(), &pages, &mut rows).unwrap();
        assert_eq!(rows, model);
        printed.passed();
    }
}

/// Calls every operation of a table; operations may return errors, but must not panic.
fn use_it(rng: &mut Rng, raw: &mut RawPages, mut tree: Tree, old: &Tree, page_size: usize) {
    let _ = tree.check(raw, &mut |_| {});
    let _ = tree.walk(raw, &mut Seen::default());
    let _ = tree.changed_since(raw, old, raw, &mut |_, _| Ok(()));
    let _ = read(
        &TableReader::of(tree),
        tree.is_multi(),
        raw,
        &mut Rows::new(),
    );
    for _ in 0..20 {
        let (way, key) = (path(rng), row_key(rng, page_size));
        let mut sub = TableReader::of(tree);
        for step in &way {
            match sub.nested(&*raw, step) {
                Ok(Some(below)) => sub = below,
                _ => break,
            }
        }
        let _ = sub.get(&*raw, &key).map(|value| value.map(|v| v.to_vec()));
        let _ = sub.rank(&*raw, &key);
        let _ = sub.cursor(&*raw).and_then(|mut c| {
            c.seek_le(&key)?;
            c.previous()?;
            c.select(3)
        });
        if tree.is_multi() {
            let mut pairs = tree.pair_cursor(&*raw);
            let _ = pairs.seek_le(&[b'k', 9], &key);
            let _ = pairs.previous();
            let _ = pairs.next_nodup();
            let _ = pairs.get_multiple(100, |_| ());
        }
    }
    let mut work = TableWriter::of(tree);
    for _ in 0..40 {
        let (way, key) = (path(rng), row_key(rng, page_size));
        let value = random_value(rng, page_size);
        let done = if tree.is_multi() {
            let set = vec![b'k', rng.below(20) as u8];
            match rng.below(3) {
                0 => tree.pairs().insert(raw, &set, &key).map(drop),
                1 => tree.pairs().remove(raw, &set, &key).map(drop),
                _ => tree.pairs().remove_all(raw, &set).map(drop),
            }
        } else {
            let put = rng.one_in(2);
            let missing = match put {
                true => MissingTable::CreateToFill,
                false => MissingTable::Ignore,
            };
            work.at(
                raw,
                &way,
                missing,
                &mut |w, table| match (put, rng.below(8)) {
                    (true, _) => table.insert(w, &key, &value),
                    (false, 0) => table.clear(w).map(|()| true),
                    (false, 1) => table.remove_range(w, b"~", &key).map(|_| true),
                    (false, 2) => table.remove(w, b"a"),
                    (false, _) => table.remove(w, &key),
                },
            )
            .map(drop)
        };
        if done.is_err() {
            break;
        }
    }
    if !tree.is_multi()
        && let Some(changed) = work.tree()
    {
        tree = *changed;
    }
    let mut step = crate::Relocation {
        boundary: 0,
        second_boundary: u64::MAX,
        pages: 200,
        reads: 200,
    };
    let _ = tree.relocate(raw, &mut step, b"");
    let _ = tree.remove_range(raw, b"b", b"z");
    let _ = tree.seal(raw);
    let _ = tree.clear(raw);
}

#[test]
fn damage_in_nested_data_with_valid_checksums_neither_panics_nor_loops() {
    for seed in 0..few(24) {
        let page_size = [512, 512, 1024, 4096][seed as usize / 2 % 4];
        let printed = super::Seed::of(seed, page_size);
        let mut rng = Rng::new(4000 + seed);
        let (pages, tree, _) = table(&mut rng, seed, page_size);
        let ranges = claims(&tree, &pages);
        for _ in 0..few(25) {
            let mut raw = RawPages::of(&tree, &pages);
            for _ in 0..=rng.below(4) {
                let (addr, pages) = *rng.pick(&ranges);
                let page = addr as usize + rng.index(pages as usize) * page_size;
                let within = match rng.below(3) {
                    0 => HEADER_BYTES + rng.index(16),
                    1 => HEADER_BYTES + rng.index(page_size / 4),
                    _ => rng.index(page_size),
                };
                let byte = &mut raw.bytes[page + within];
                *byte = match rng.below(3) {
                    0 => *byte ^ 1 << rng.below(8),
                    1 => byte.wrapping_add(1),
                    _ => rng.u64() as u8,
                };
            }
            use_it(&mut rng, &mut raw, tree, &tree, page_size);
        }
        printed.passed();
    }
}

/// A table stored under two keys of its parent, forty levels deep, so that 2^40 paths lead to one page; and branches
/// that contain the same child three times, thirty levels high. Each is reported at once.
#[test]
fn page_with_several_parents_is_visited_once() {
    let mut pages = RawPages::new(512);
    let mut below = Tree::new_inner(9);
    below.insert(&mut pages, b"k", b"v").unwrap();
    for _ in 0..40 {
        let root = below.encode_nested_root();
        let payload = Payload {
            tag: tag::of(tag::ROOT, root.len()),
            bytes: &root,
        };
        below = Tree::new_inner(9);
        for key in [b"a", b"b"] {
            below
                .put_payload(&mut pages, key, payload, OldPayload::Keep)
                .unwrap();
        }
    }
    let nested = Tree {
        flags: below.flags & !crate::table::tree::INNER,
        ..below
    };

    let mut high = Tree::new(9);
    high.insert(&mut pages, b"k", b"v").unwrap();
    for level in 1..30 {
        let branch = high.new_page(&mut pages, level).unwrap();
        for (index, key) in [&b""[..], b"x", b"y"].into_iter().enumerate() {
            let child = child_bytes(&high.root, 1);
            let payload = Payload {
                tag: 0,
                bytes: &child,
            };
            let bias = Bias::Balance;
            high.insert_or_split(
                &mut pages,
                &branch,
                level,
                index,
                Key::plain(key),
                payload,
                bias,
            )
            .unwrap();
        }
        high.root = branch;
        high.height = level + 1;
    }
    for tree in [nested, high] {
        let mut tree = tree;
        assert!(matches!(
            tree.check(&pages, &mut |_| {}),
            Err(Error::Corrupt(_))
        ));
        let mut seen = Seen::default();
        tree.walk(&pages, &mut seen).unwrap();
        assert!(seen.damaged > 0 && seen.reached < 200, "{}", seen.reached);
        if tree.height > 1 {
            // A scan of the rows meets the same leaf again and again.
            let mut cursor = tree.cursor(&pages);
            assert!(cursor.first().unwrap() && cursor.next().unwrap());
            assert!(matches!(cursor.next(), Err(Error::Corrupt(_))));
            assert!(!cursor.is_at_row() && cursor.last().unwrap() && cursor.previous().unwrap());
            assert!(matches!(cursor.previous(), Err(Error::Corrupt(_))));
            assert!(
                cursor.first().unwrap() && cursor.next().unwrap() && cursor.previous().unwrap()
            );
        }
        let mut step = crate::Relocation {
            boundary: u64::MAX,
            second_boundary: u64::MAX,
            pages: u64::MAX,
            reads: u64::MAX,
        };
        let moved = tree.relocate(&mut pages, &mut step, b"");
        assert!(matches!(moved, Err(Error::Corrupt(_))), "{moved:?}");
        let cut = tree.remove_range(&mut pages, b"", b"zz");
        assert!(matches!(cut, Err(Error::Corrupt(_))));
        assert!(matches!(tree.clear(&mut pages), Err(Error::Corrupt(_))));
    }
}

/// Tables nested deeper than allowed, each the only row of its parent: a descent to the last one would overflow the
/// stack.
#[test]
fn check_reports_tables_nested_too_deep() {
    let mut pages = RawPages::new(512);
    let mut below = Tree::new_inner(9);
    below.insert(&mut pages, b"k", b"v").unwrap();
    for _ in 0..few(100_000) {
        let root = below.encode_nested_root();
        let payload = Payload {
            tag: tag::of(tag::ROOT, root.len()),
            bytes: &root,
        };
        below = Tree::new_inner(9);
        below
            .put_payload(&mut pages, b"a", payload, OldPayload::Keep)
            .unwrap();
    }
    let mut tree = Tree {
        flags: below.flags & !crate::table::tree::INNER,
        ..below
    };
    assert!(tree.check(&pages, &mut |_| {}).is_err());
    let mut seen = Seen::default();
    tree.walk(&pages, &mut seen).unwrap();
    assert!(seen.damaged > 0);
    let mut step = crate::Relocation {
        boundary: u64::MAX,
        second_boundary: u64::MAX,
        pages: u64::MAX,
        reads: u64::MAX,
    };
    assert!(tree.relocate(&mut pages, &mut step, b"").is_err());
    assert!(tree.clear(&mut pages).is_err());
}
