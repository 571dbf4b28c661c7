//! Tests sizes at a limit and one beyond it, empty tables, page fill, and the state after a full disk.

use super::{all_rows, check_all, claims, few, random_key, random_value};
use crate::page::edit;
use crate::value::check_len;
use crate::{
    Error, HEIGHT_MAX, KEY_BYTES_MAX, PageVisitor, Result, TREE_BYTES, Tree, VALUE_BYTES_MAX,
    VALUE_CHUNK_BYTES, VisitedPage, key_bytes_max,
};
use std::collections::BTreeMap;
use tidalite_base::Corrupt;
use tidalite_base::limits::{PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use tidalite_pager::{DiskError, Kind, PageRead};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

fn page_sizes() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(PAGE_SIZE_MIN), |size| Some(size * 2))
        .take_while(|size| *size <= PAGE_SIZE_MAX)
}

#[test]
#[cfg_attr(miri, ignore = "keys as long as can be, byte for byte")]
fn longest_plain_keys_and_shortest_spilled_keys() {
    for page_size in page_sizes() {
        let most = key_bytes_max(page_size);
        assert!(most * 3 >= page_size);
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new(1);
        let mut rng = Rng::new(page_size as u64);
        let mut model = BTreeMap::new();
        for i in 0..60 {
            let mut key = vec![b'm'; most];
            // The keys differ at the front (no common prefix), at the back (a long common prefix), or everywhere (a
            // short common prefix).
            match i % 3 {
                0 => key[0] = i,
                1 => key[most - 1] = i,
                _ => rng.fill(&mut key),
            }
            let value = vec![i; page_size / [9, 2, 1][i as usize % 3]];
            tree.insert(&mut pages, &key, &value).unwrap();
            model.insert(key, value);
        }
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        let live = pages.live_pages();
        let long = vec![1; most + 1];
        assert!(tree.get(&pages, &long).unwrap().is_none());
        tree.insert(&mut pages, &long, b"").unwrap();
        assert!(pages.live_pages() > live, "its rest has an extent");
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        model.insert(long, Vec::new());
        for (key, value) in &model {
            assert_eq!(
                &tree.get(&pages, key).unwrap().unwrap().to_vec().unwrap(),
                value
            );
        }
        while let Some((key, _)) = model.pop_first() {
            assert!(tree.remove(&mut pages, &key).unwrap());
        }
        assert_eq!((tree.is_empty(), pages.live_pages()), (true, 0));
    }
}

#[test]
#[cfg_attr(miri, ignore = "keys as long as can be, byte for byte")]
fn keys_up_to_the_limit_are_accepted() {
    for page_size in [512, 4096, PAGE_SIZE_MAX] {
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new(1);
        let mut longest = vec![7; KEY_BYTES_MAX];
        tree.insert(&mut pages, &longest, b"first").unwrap();
        longest[KEY_BYTES_MAX - 1] = 8;
        tree.insert(&mut pages, &longest, b"second").unwrap();
        let (before, live) = (tree, pages.live_pages());
        longest.push(0);
        let error = tree.insert(&mut pages, &longest, b"").unwrap_err();
        assert!(matches!(error, Error::Limit { found, limit, .. }
                if found == KEY_BYTES_MAX as u64 + 1 && limit == KEY_BYTES_MAX as u64));
        assert_eq!((tree, pages.live_pages()), (before, live));
        assert!(tree.get(&pages, &longest).unwrap().is_none());
        assert_eq!(tree.rank(&pages, &longest).unwrap(), 2);
        longest.pop();
        let second = tree.get(&pages, &longest).unwrap().unwrap();
        assert_eq!(second.to_vec().unwrap(), b"second");
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        assert!(tree.remove(&mut pages, &longest).unwrap());
        assert_eq!(tree.len(), 1);
        tree.clear(&mut pages).unwrap();
        assert_eq!(pages.live_pages(), 0);
    }
}

#[test]
fn the_longest_keys_in_the_smallest_pages_stay_within_the_height() {
    for ascending in [true, false] {
        let mut pages = ScratchPages::new(PAGE_SIZE_MIN);
        let mut tree = Tree::new(1);
        let mut rng = Rng::new(5);
        for i in 0..few(6000) {
            let mut key = vec![0; key_bytes_max(PAGE_SIZE_MIN)];
            rng.fill(&mut key);
            if ascending {
                key[..8].copy_from_slice(&i.to_be_bytes());
            }
            tree.insert(&mut pages, &key, &[]).unwrap();
        }
        assert!(tree.height() <= HEIGHT_MAX / 2, "{}", tree.height());
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
    }
}

#[test]
fn values_up_to_the_limit_are_accepted() {
    check_len(VALUE_BYTES_MAX).unwrap();
    let error = check_len(VALUE_BYTES_MAX + 1).unwrap_err();
    assert!(matches!(error, Error::Limit { limit, .. } if limit == VALUE_BYTES_MAX));
}

#[test]
fn values_around_every_chunk_boundary_are_read_back() {
    let data = VALUE_CHUNK_BYTES - 48;
    // Under Miri, which interprets every instruction and is slow, uses small pages and values of one chunk.
    let (sizes, len_max) = if cfg!(miri) {
        (1, 4000)
    } else {
        (5, usize::MAX)
    };
    for page_size in [512, 4096, 65536, 131_072, 262_144].into_iter().take(sizes) {
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new(1);
        let inline = (page_size - 48) / 2 - 8 - 1 - 1 - if page_size < 1024 { 2 } else { 0 };
        let mut borders = vec![0, 1, page_size - 48, page_size, data, 2 * data, 4 * data];
        borders.extend([inline, page_size * 2 - 48, page_size * 2]);
        let lengths: Vec<usize> = borders
            .iter()
            .flat_map(|&len| [len.saturating_sub(1), len, len + 1])
            .filter(|&len| len <= len_max)
            .collect();
        let mut rng = Rng::new(3);
        for len in lengths {
            let mut value = vec![0; len];
            rng.fill(&mut value);
            tree.insert(&mut pages, b"v", &value).unwrap();
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            let got = tree.get(&pages, b"v").unwrap().unwrap();
            assert_eq!((got.len(), got.is_empty()), (len as u64, len == 0));
            assert_eq!(got.to_vec().unwrap(), value);
            match got.as_slice() {
                Some(bytes) => assert!(bytes == value && bytes.len() * 2 < page_size),
                None => {
                    let parts: Vec<usize> = got.chunks().map(|part| part.unwrap().len()).collect();
                    assert_eq!(parts.len(), len.div_ceil(data));
                    assert!(parts.iter().all(|part| *part <= data));
                    let extent = claims(&tree, &pages)[1].1 as usize * page_size;
                    assert!(extent < len + page_size + parts.len() * 48);
                }
            }
        }
        assert!(tree.remove(&mut pages, b"v").unwrap());
        assert_eq!(pages.live_pages(), 0);
    }
}

#[test]
fn the_largest_inline_value_is_inline_and_the_next_is_not() {
    for page_size in page_sizes() {
        let mut pages = ScratchPages::new(page_size);
        let mut tree = Tree::new(1);
        let inline = |tree: &Tree, pages: &ScratchPages| {
            let value = tree.get(pages, b"key").unwrap().unwrap();
            value.as_slice().is_some()
        };
        let mut last = true;
        let mut border = 0;
        for len in page_size / 2 - 80..page_size / 2 {
            tree.insert(&mut pages, b"key", &vec![7; len]).unwrap();
            let now = inline(&tree, &pages);
            if last && !now {
                border = len;
            }
            assert!(last || !now, "inline values are the shorter ones");
            last = now;
        }
        assert!(border > 0 && !last);
    }
}

#[test]
fn empty_table_answers_and_its_cursor_has_no_row() {
    let pages = ScratchPages::new(512);
    let tree = Tree::new(7);
    assert!(tree.get(&pages, b"").unwrap().is_none());
    assert_eq!(tree.rank(&pages, b"a").unwrap(), 0);
    assert_eq!(all_rows(&tree, &pages).count(), 0);
    let mut cursor = tree.cursor(&pages);
    assert!(!cursor.next().unwrap() && !cursor.previous().unwrap());
    assert!(!cursor.first().unwrap() && !cursor.last().unwrap());
    assert!(!cursor.seek_ge(b"").unwrap() && !cursor.seek_le(b"x").unwrap());
    assert!(!cursor.is_at_row());
    assert_eq!(Tree::decode(&tree.encode()).unwrap(), tree);
}

#[test]
fn rows_before_a_refused_row_are_counted() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(7);
    let good = (0..100u8).map(|i| (vec![i], [i; 20]));
    let long = KEY_BYTES_MAX + 1;
    let rows = good.chain([(vec![200; long], [0; 20])]);
    let error = tree.append(&mut pages, rows).unwrap_err();
    assert!(
        matches!(error, Error::Limit { found, .. } if found == long as u64),
        "{error}"
    );
    assert_eq!(tree.len(), 100);
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
}

#[test]
fn cursor_returns_after_running_off_either_end() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(7);
    tree.append(&mut pages, (0..100u8).map(|i| ([i], [i; 20])))
        .unwrap();
    let mut cursor = tree.cursor(&pages);
    assert!(!cursor.previous().unwrap());
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), [0]);
    assert!(!cursor.seek_gt(&[99]).unwrap() && !cursor.next().unwrap());
    assert!(cursor.previous().unwrap());
    assert_eq!(
        (cursor.key(), cursor.value_slice()),
        (&[99][..], Some(&[99; 20][..]))
    );
    assert!(!cursor.seek_lt(&[0]).unwrap() && !cursor.previous().unwrap());
    assert!(cursor.next().unwrap());
    assert_eq!(cursor.key(), [0]);
    assert!(cursor.seek_le(&[12]).unwrap());
    for key in [12, 11, 10] {
        assert_eq!(cursor.key(), [key]);
        assert!(cursor.previous().unwrap());
    }
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn ascending_rows_fill_their_pages() {
    let rows = 30_000u64;
    let bytes_of_a_row = 8 + 2 + 8 + 2; // bytes of slot, lengths, value and key suffix
    let entries = (0..rows).map(|i| (i.to_be_bytes(), i.to_le_bytes()));
    let leaves = rows * bytes_of_a_row / (4096 - 64);

    let mut appended = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    assert_eq!(tree.append(&mut appended, entries.clone()).unwrap(), rows);
    tree.seal(&mut appended).unwrap();
    check_all(&tree, &appended);
    assert!(
        appended.live_pages() <= leaves + leaves / 20,
        "{} pages, {leaves} full leaves",
        appended.live_pages()
    );

    let mut inserted = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    for (key, value) in entries {
        tree.insert(&mut inserted, &key, &value).unwrap();
    }
    tree.seal(&mut inserted).unwrap();
    check_all(&tree, &inserted);
    // Single inserts choose the common prefix of a leaf after its keys are known; `append` chooses it before.
    let (inserted, appended) = (inserted.live_pages(), appended.live_pages());
    assert!(
        inserted <= appended && appended <= inserted + 2,
        "{inserted} pages row by row, {appended} at once"
    );
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of rows, counted")]
fn get_reads_one_page_per_level() {
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    let entries = (0..100_000u64).map(|i| (i.to_be_bytes(), i.to_le_bytes()));
    tree.append(&mut pages, entries).unwrap();
    tree.seal(&mut pages).unwrap();
    let snapshot = pages.snapshot();
    tree.get(&snapshot, &77_777u64.to_be_bytes())
        .unwrap()
        .unwrap();
    let read = &snapshot.counters().pages_read;
    let read = read.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((read, tree.height()), (3, 3));
}

#[test]
fn full_disk_at_any_step_rolls_back_completely() {
    let printed = super::Seed::of(11, 512);
    let mut rng = Rng::new(11);
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(3);
    for _ in 0..150 {
        let (key, value) = (random_key(&mut rng, 512), random_value(&mut rng, 512));
        tree.insert(&mut pages, &key, &value).unwrap();
    }
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let live = pages.live_ranges();
    let mut failed = 0;
    for calls in 0..few(300) {
        let mut next = tree;
        pages.fail_after(Some(calls % 12));
        for _ in 0..10 {
            let key = random_key(&mut rng, 512);
            let done = if rng.one_in(2) {
                let value = random_value(&mut rng, 512);
                next.insert(&mut pages, &key, &value).map(drop)
            } else {
                next.remove(&mut pages, &key).map(drop)
            };
            if let Err(error) = done {
                assert!(matches!(error, Error::Disk(DiskError::DiskFull { .. })));
                failed += 1;
                break;
            }
        }
        pages.fail_after(None);
        pages.rollback();
        assert_eq!(pages.live_ranges(), live);
        check_all(&tree, &pages);
    }
    assert!(cfg!(miri) || failed > 100);
    printed.passed();
}

#[test]
fn check_refuses_the_pages_of_another_table_and_a_wrong_count() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(3);
    tree.append(&mut pages, (0..100u8).map(|i| ([i], [i; 20])))
        .unwrap();
    tree.seal(&mut pages).unwrap();
    let mut other = tree;
    other.id = 4;
    assert!(matches!(
        other.check(&pages, &mut |_| {}),
        Err(Error::Corrupt(_))
    ));
    let mut other = tree;
    other.rows += 1;
    assert!(matches!(
        other.check(&pages, &mut |_| {}),
        Err(Error::Corrupt(_))
    ));
    let mut other = tree;
    other.height += 1;
    other.root.kind = Kind::KvBranch;
    assert!(other.get(&pages, &[3]).is_err());
}

#[test]
fn tree_decodes_only_its_own_encoding() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new((1 << 48) - 1);
    tree.insert(&mut pages, b"a", b"b").unwrap();
    let bytes = tree.encode();
    assert_eq!(Tree::decode(&bytes).unwrap(), tree);
    assert!(Tree::decode(&bytes[..TREE_BYTES - 1]).is_err());
    for at in 12..TREE_BYTES {
        let mut wrong = bytes;
        wrong[at] ^= 0x80;
        // Any value is valid in the fields checksum, birth, rows, id and sequence.
        let any = (16..46).contains(&at) || at >= 56;
        assert_eq!(Tree::decode(&wrong).is_ok(), any, "byte {at}");
    }
    let mut tall = tree;
    tall.root.kind = Kind::KvBranch;
    tall.height = HEIGHT_MAX;
    assert!(Tree::decode(&tall.encode()).is_ok());
    tall.height += 1;
    assert!(Tree::decode(&tall.encode()).is_err());
}

/// Counts the pages below the root that are less than a quarter full: leaves and branches.
struct Sparse<'p> {
    pages: &'p ScratchPages,
    found: [u64; 2],
}

impl PageVisitor for Sparse<'_> {
    fn enter(&mut self, page: &VisitedPage<'_>) -> Result<bool> {
        let bytes = self.pages.page(&page.ptr)?;
        let (_, live) = edit::fill(&bytes, page.level, page.ptr.addr)?;
        let is_root = page.from.is_empty() && page.to.is_none();
        if !is_root && live * 4 < bytes.len() {
            self.found[usize::from(page.level > 0)] += 1;
        }
        Ok(true)
    }

    fn damaged(&mut self, _: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()> {
        Err(corrupt.into())
    }
}

/// A range delete merges the pages at both of its edges with a neighbour, or rebalances them. Rebalancing examines each
/// level once, from the leaf up. So a few sparse pages stay: a leaf whose branch has no other child, and a branch above
/// two leaves that share their rows.
#[test]
#[cfg_attr(miri, ignore = "thousands of rows, counted")]
fn range_delete_leaves_few_sparse_pages_at_its_edges() {
    let mut pages = ScratchPages::new(512);
    let mut whole = Tree::new(5);
    let rows = (0..4000u64).map(|i| (i.to_be_bytes(), i.to_le_bytes()));
    whole.append(&mut pages, rows).unwrap();
    whole.seal(&mut pages).unwrap();
    pages.commit();
    assert!(whole.height() > 2);
    // The edge of the range that does not move is at the beginning of a leaf or somewhere else.
    let left = (0..200).map(|i| (700 + i, 2301));
    let right = (0..200).map(|i| (701, 2300 + i));
    for (edge, cuts) in [left.collect::<Vec<_>>(), right.collect()]
        .iter()
        .enumerate()
    {
        let (mut leaves, mut branches) = (0, 0);
        for &(from, to) in cuts {
            let (from, to): (u64, u64) = (from, to);
            let mut tree = whole;
            let removed = tree.remove_range(&mut pages, &from.to_be_bytes(), &to.to_be_bytes());
            assert_eq!(removed.unwrap(), to - from);
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
            let mut sparse = Sparse {
                pages: &pages,
                found: [0; 2],
            };
            tree.walk(&pages, &mut sparse).unwrap();
            leaves += sparse.found[0];
            branches += sparse.found[1];
            pages.rollback();
        }
        println!("edge {edge}: {leaves} leaves, {branches} branches");
        assert!(
            leaves <= 10 && branches <= 20,
            "edge {edge}: {leaves} leaves, {branches} branches"
        );
    }
}
