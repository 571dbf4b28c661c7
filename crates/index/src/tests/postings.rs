//! Random changes of sets, compared with a `BTreeMap` of `BTreeSet`s, with small pages; and a change of one member of a
//! large set.

use crate::{Changes, apply, check, count, get, get_within, set_cursor};
use roaring::RoaringTreemap;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::{PageRead, Result};
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{ScratchPages, ScratchSnapshot};

type Model = BTreeMap<Vec<u8>, BTreeSet<u64>>;

/// A key that is not the beginning of another one.
fn random_key(rng: &mut Rng) -> Vec<u8> {
    let mut key = vec![b'k'; rng.index(3)];
    key.push(b'a' + rng.below(6) as u8);
    if rng.one_in(20) {
        key.extend(vec![b'x'; 300]);
    }
    key.push(0);
    key
}

/// Numbers in few blocks, some close together and some far apart.
fn random_number(rng: &mut Rng) -> u64 {
    let block = *rng.pick(&[0, 1, 0xffff, 0x1_0000, 0xffff_ffff]);
    let low = match rng.below(4) {
        0 => rng.below(20),
        1 => 65_535 - rng.below(20),
        2 => 1000 + rng.below(3000),
        _ => rng.below(65_536),
    };
    block << 16 | low
}

fn store(tree: &mut Tree, pages: &mut ScratchPages, changes: &mut Changes) -> Result<()> {
    let mut table = TableWriter::of(*tree);
    apply(&mut table, pages, changes)?;
    *tree = *table.tree().expect("a table with pages of its own");
    Ok(())
}

fn compare<R: PageRead>(tree: &Tree, pages: &R, model: &Model, rng: &mut Rng) -> Result<()> {
    let mut walked = Model::new();
    let mut posting = set_cursor(tree, pages, b"")?;
    while let Some(at) = &mut posting {
        let key = at.key().to_vec();
        let mut members = RoaringTreemap::new();
        let more = at.add_to(&mut members)?;
        walked.insert(key, members.iter().collect());
        if !more {
            break;
        }
    }
    assert_eq!(&walked, model);
    let key = random_key(rng);
    let empty = BTreeSet::new();
    let own = model.get(&key).unwrap_or(&empty);
    assert_eq!(
        get(tree, pages, &key)?.iter().collect::<BTreeSet<_>>(),
        *own
    );
    let near: RoaringTreemap = (0..3).map(|_| random_number(rng)).collect();
    let within = get_within(tree, pages, &key, &near)?;
    let expected = own
        .iter()
        .filter(|number| near.iter().any(|near| near >> 16 == *number >> 16));
    assert_eq!(
        within.iter().collect::<Vec<_>>(),
        expected.copied().collect::<Vec<_>>()
    );
    assert_eq!(count(tree, pages, &key)?, own.len() as u64);
    let found = set_cursor(tree, pages, &key)?.map(|posting| posting.key().to_vec());
    assert_eq!(
        found.as_ref(),
        model.range(key.clone()..).next().map(|(key, _)| key)
    );
    if let Some(mut posting) = set_cursor(tree, pages, &key)? {
        let mut counted = 0;
        posting.count_to(&mut counted)?;
        let expected = model.range(key..).next().map_or(0, |(_, set)| set.len());
        assert_eq!(counted, expected as u64);
    }
    Ok(())
}

fn random_changes(seed: u64, page_size: usize) -> Result<()> {
    let mut rng = Rng::new(seed);
    let mut pages = ScratchPages::new(page_size);
    let mut tree = Tree::new(1);
    let mut model = Model::new();
    let mut old: Vec<(ScratchSnapshot, Tree, Model)> = Vec::new();
    for round in 0..30 {
        let mut changes = Changes::default();
        let removals = [10, 40, 70][round % 3];
        for _ in 0..rng.index(400) {
            let key = random_key(&mut rng);
            // Runs of consecutive numbers, as series have that are created one after the other.
            let first = random_number(&mut rng);
            let most = if rng.one_in(10) { 2000 } else { 3 };
            let last = first | rng.below(most);
            let remove = rng.below(100) < removals;
            for number in first..=last {
                let set = model.entry(key.clone()).or_default();
                if remove {
                    changes.remove(&key, number);
                    set.remove(&number);
                } else {
                    changes.add(&key, number);
                    set.insert(number);
                }
            }
        }
        store(&mut tree, &mut pages, &mut changes)?;
        assert!(changes.is_empty());
        model.retain(|_, set| !set.is_empty());
        compare(&tree, &pages, &model, &mut rng)?;
        tree.seal(&mut pages)?;
        pages.commit();
        let mut members = 0;
        check(&tree, &pages, &mut |key, block, set| {
            let own = &model[key];
            let at = |low: u32| u64::from(block >> 16) << 32 | u64::from(low);
            assert!(set.iter().all(|low| own.contains(&at(low))), "{block}");
            members += set.len();
            Ok(())
        })?;
        assert_eq!(
            members,
            model.values().map(|set| set.len() as u64).sum::<u64>()
        );
        if rng.one_in(8) {
            old.push((pages.snapshot(), tree, model.clone()));
        }
    }
    for (pages, tree, model) in &old {
        compare(tree, pages, model, &mut rng)?;
    }
    Ok(())
}

#[test]
fn random_changes_agree_with_a_model() {
    tidalite_testkit::watch();
    for seed in 0..6 {
        for page_size in [512, 4096] {
            println!("seed {seed}, pages of {page_size}");
            random_changes(seed, page_size).unwrap();
        }
    }
}

#[test]
fn a_change_in_a_large_set_writes_few_pages() {
    tidalite_testkit::watch();
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    let mut changes = Changes::default();
    let mut rng = Rng::new(5);
    for number in 0..3_000_000 {
        if rng.one_in(3) {
            changes.add(b"k\0", number);
        }
    }
    store(&mut tree, &mut pages, &mut changes).unwrap();
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let before = pages.bytes_written();
    changes.add(b"k\0", 1_234_567);
    changes.remove(b"k\0", 1_234_568);
    store(&mut tree, &mut pages, &mut changes).unwrap();
    tree.seal(&mut pages).unwrap();
    pages.commit();
    let written = pages.bytes_written() - before;
    assert!(written <= 6 * 4096, "{written} bytes for one container");
}

#[test]
fn a_wrong_container_is_found() {
    tidalite_testkit::watch();
    let mut pages = ScratchPages::new(4096);
    let mut tree = Tree::new(1);
    let mut changes = Changes::default();
    (0..20).for_each(|number| changes.add(b"k\0", number));
    store(&mut tree, &mut pages, &mut changes).unwrap();
    assert!(check(&tree, &pages, &mut |_, _, _| Ok(())).is_ok());
    // Nine members as plain numbers would need 18 bytes; eight members as a bitmap are a non-canonical form of the same
    // set.
    let set: roaring::RoaringBitmap = (0..8).collect();
    let mut bytes = Vec::new();
    set.serialize_into(&mut bytes).unwrap();
    let mut row = b"k\0".to_vec();
    row.extend([0; 4]);
    tree.insert(&mut pages, &row, &bytes).unwrap();
    assert_eq!(get(&tree, &pages, b"k\0").unwrap().len(), 8);
    assert!(check(&tree, &pages, &mut |_, _, _| Ok(())).is_err());
    tree.insert(&mut pages, &row[..3], &bytes).unwrap();
    assert!(
        set_cursor(&tree, &pages, b"").is_err(),
        "a key without its block"
    );
}
