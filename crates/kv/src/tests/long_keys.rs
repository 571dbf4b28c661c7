//! Tests keys that are too long for a page: against a model in which every separator must be long, and whether their
//! extents are freed.

use super::{check_all, claims, few, long_key};
use crate::page::edit::{self, Placed};
use crate::page::key::Key;
use crate::page::layout::Payload;
use crate::page::overflow::Reference;
use crate::table::tree::HAS_REFERENCES;
use crate::{Error, MissingTable, PageVisitor, Relocation, Result, Tree, VisitedPage};
use std::collections::{BTreeMap, BTreeSet};
use tidalite_base::Corrupt;
use tidalite_pager::{Extent, PageRead, PageWrite};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A key that shares its first bytes, more than a page of them, with all other keys, so that separators need extents,
/// too.
fn alike(rng: &mut Rng, page_size: usize) -> Vec<u8> {
    let mut key = vec![b'a'; page_size + 3];
    key.extend((rng.below(600) as u16).to_be_bytes());
    key.resize(key.len() + rng.index(4), b'z');
    key
}

fn assert_same<R: PageRead>(tree: &Tree, pages: &R, model: &Model) {
    assert_eq!(tree.len(), model.len() as u64);
    let mut cursor = tree.cursor(pages);
    for (key, value) in model {
        assert!(cursor.next().unwrap());
        assert!(cursor.key() == key, "{} bytes", key.len());
        assert_eq!(&cursor.value().unwrap().to_vec().unwrap(), value);
    }
    assert!(!cursor.next().unwrap());
    for key in model.keys().rev() {
        assert!(cursor.previous().unwrap() && cursor.key() == key);
    }
}

fn look(rng: &mut Rng, tree: &Tree, pages: &ScratchPages, model: &Model, key: &[u8]) {
    let got = tree.get(pages, key).unwrap();
    let got = got.map(|value| value.to_vec().unwrap());
    assert_eq!(got.as_ref(), model.get(key));
    let rank = model.range(..key.to_vec()).count();
    assert_eq!(tree.rank(pages, key).unwrap(), rank as u64);
    let mut cursor = tree.cursor(pages);
    let above = model.range(key.to_vec()..).next();
    assert_eq!(cursor.seek_ge(key).unwrap(), above.is_some());
    assert!(above.is_none_or(|(key, _)| cursor.key() == key));
    let below = model.range(..key.to_vec()).next_back();
    assert_eq!(cursor.seek_lt(key).unwrap(), below.is_some());
    assert!(below.is_none_or(|(key, _)| cursor.key() == key));
    let rank = rng.index(model.len() + 1);
    assert_eq!(cursor.select(rank as u64).unwrap(), rank < model.len());
    if let Some(key) = model.keys().nth(rank) {
        assert!(cursor.key() == key);
    }
}

/// The extents of long keys that a walk reports.
#[derive(Default)]
struct LongKeys(BTreeSet<u64>);

impl PageVisitor for LongKeys {
    fn enter(&mut self, _: &VisitedPage<'_>) -> Result<bool> {
        Ok(true)
    }

    fn long_key(&mut self, extent: &Extent) -> Result<()> {
        assert!(self.0.insert(extent.addr), "each extent has one owner");
        Ok(())
    }

    fn damaged(&mut self, _: &VisitedPage<'_>, corrupt: Corrupt) -> Result<()> {
        panic!("{corrupt}")
    }
}

fn against_model(seed: u64, page_size: usize, make: fn(&mut Rng, usize) -> Vec<u8>) -> usize {
    let printed = super::Seed::of(seed, page_size);
    let mut rng = Rng::new(seed);
    let mut pages = ScratchPages::new(page_size);
    let mut tree = Tree::new(5);
    let mut model = Model::new();
    let mut separators_most = 0;
    for transaction in 0..if cfg!(miri) { 2 } else { 10 } {
        let growth = if transaction % 8 < 5 { 85 } else { 10 };
        for _ in 0..rng.index(if cfg!(miri) { 40 } else { 120 }) {
            let mut key = make(&mut rng, page_size);
            if rng.one_in(3)
                && let Some((there, _)) = model.range(key.clone()..).next()
            {
                key.clone_from(there);
            }
            match rng.below(100) {
                0 => {
                    let (mut a, mut b) = (key, make(&mut rng, page_size));
                    if a > b {
                        std::mem::swap(&mut a, &mut b);
                    }
                    let before = model.len();
                    if rng.one_in(2) {
                        model.retain(|key, _| !(a <= *key && *key < b));
                        let removed = tree.remove_range(&mut pages, &a, &b).unwrap();
                        assert_eq!(removed, (before - model.len()) as u64);
                    }
                }
                1 => {
                    let mut rows = Model::new();
                    for _ in 0..rng.index(20) {
                        rows.insert(make(&mut rng, page_size), vec![3; rng.index(9)]);
                    }
                    let new = rows.keys().filter(|key| !model.contains_key(*key)).count();
                    assert_eq!(tree.append(&mut pages, &rows).unwrap(), new as u64);
                    model.append(&mut rows);
                }
                choice if choice < growth => {
                    let most = if rng.one_in(9) { 2 * page_size } else { 30 };
                    let value = vec![seed as u8; rng.index(most)];
                    let was = tree.insert(&mut pages, &key, &value).unwrap();
                    assert_eq!(was, model.insert(key, value).is_some());
                }
                _ => {
                    let was = tree.remove(&mut pages, &key).unwrap();
                    assert_eq!(was, model.remove(&key).is_some());
                }
            }
            if rng.one_in(5) {
                let key = make(&mut rng, page_size);
                look(&mut rng, &tree, &pages, &model, &key);
            }
        }
        tree.seal(&mut pages).unwrap();
        check_all(&tree, &pages);
        assert_same(&tree, &pages, &model);
        let mut found = LongKeys::default();
        tree.walk(&pages, &mut found).unwrap();
        let most = crate::key_bytes_max(page_size);
        let keys = model.keys().filter(|key| key.len() > most).count();
        separators_most = separators_most.max(found.0.len() - keys);
        pages.commit();
    }
    // All pages move to lower addresses, including the extents of long keys and separators.
    let boundary = page_size as u64 * 4;
    let ends = |tree: &Tree, pages: &ScratchPages| claims(tree, pages).len();
    let before = ends(&tree, &pages);
    let mut from = Vec::new();
    loop {
        let mut step = Relocation {
            boundary,
            second_boundary: u64::MAX,
            pages: 50,
            reads: 1000,
        };
        match tree.relocate(&mut pages, &mut step, &from).unwrap() {
            Some(key) => from = key,
            None => break,
        }
    }
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    assert_eq!(ends(&tree, &pages), before);
    assert_same(&tree, &pages, &model);
    tree.clear(&mut pages).unwrap();
    assert_eq!(pages.live_pages(), 0, "everything was freed");
    printed.passed();
    separators_most
}

#[test]
fn long_keys_agree_with_a_btreemap() {
    for seed in 0..few(3) {
        against_model(seed, [512, 512, 4096][seed as usize % 3], long_key);
    }
}

#[test]
fn keys_that_differ_only_beyond_a_page_agree_with_a_btreemap() {
    for seed in 10..10 + few(3) {
        let separators = against_model(seed, [512, 512, 4096][seed as usize % 3], alike);
        assert!(
            cfg!(miri) || separators > 2,
            "{separators} separators had to be long"
        );
    }
}

/// Long keys that differ early need no long separators.
#[test]
fn separators_of_long_keys_are_as_short_as_possible() {
    let mut rng = Rng::new(3);
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(5);
    for _ in 0..few(2000) {
        let mut key = vec![0; 2000];
        rng.fill(&mut key[..6]);
        tree.insert(&mut pages, &key, b"v").unwrap();
    }
    tree.seal(&mut pages).unwrap();
    let mut found = LongKeys::default();
    tree.walk(&pages, &mut found).unwrap();
    assert_eq!(found.0.len() as u64, tree.len());
    check_all(&tree, &pages);
}

/// A set of values of any length, and nested tables under long keys.
#[test]
fn long_values_of_sets_and_long_keys_of_nested_tables() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new_multi(5);
    let most = crate::key_bytes_max(512);
    let longest = if cfg!(miri) { 5000 } else { 70_000 };
    let lens = [0, 1, most - 1, most, most + 1, 3000, longest];
    for key_len in lens {
        for value_len in lens {
            let (key, value) = (vec![1; key_len], vec![2; value_len]);
            assert!(tree.pairs().insert(&mut pages, &key, &value).unwrap());
            assert!(!tree.pairs().insert(&mut pages, &key, &value).unwrap());
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
        }
    }
    assert_eq!((tree.len(), tree.keys()), (49, 7));
    let mut cursor = tree.pair_cursor(&pages);
    for key_len in lens {
        for value_len in lens {
            assert!(cursor.next().unwrap());
            assert_eq!(
                (cursor.key().len(), cursor.value().len()),
                (key_len, value_len)
            );
        }
    }
    for key_len in lens {
        for value_len in lens {
            let (key, value) = (vec![1; key_len], vec![2; value_len]);
            assert!(tree.pairs().remove(&mut pages, &key, &value).unwrap());
            tree.seal(&mut pages).unwrap();
            check_all(&tree, &pages);
        }
    }
    assert_eq!((tree.len(), pages.live_pages()), (0, 0));

    let mut work = crate::TableWriter::of(Tree::new(5));
    let path = [vec![1; 3000], vec![2; 5], vec![3; longest]];
    for key_len in lens {
        let key = vec![4; key_len];
        let put = work.at(
            &mut pages,
            &path,
            MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, &key, b"value"),
        );
        assert_eq!(put.unwrap(), Some(false));
    }
    let mut tree = *work.tree().unwrap();
    tree.seal(&mut pages).unwrap();
    check_all(&tree, &pages);
    let mut sub = crate::TableReader::of(tree);
    for key in &path {
        sub = sub.nested(&pages, key).unwrap().unwrap();
    }
    assert_eq!(sub.len(), 7);
    for key_len in lens {
        assert!(sub.get(&pages, &vec![4; key_len]).unwrap().is_some());
    }
    tree.clear(&mut pages).unwrap();
    assert_eq!(pages.live_pages(), 0);
}

/// A damaged page stores a short key in the form of a long one; replacing the key's value must report the damage.
#[test]
fn replacing_a_short_key_that_is_spilled_reports_damage() {
    let mut pages = ScratchPages::new(512);
    let mut tree = Tree::new(5);
    tree.insert(&mut pages, b"a", b"value").unwrap();
    let rest = Reference::write(&mut pages, 5, b"0123456789")
        .unwrap()
        .encode();
    let (root, key) = (
        tree.root,
        Key {
            inline: b"bcde",
            rest: &rest,
        },
    );
    let page = pages.page_mut(&root).unwrap();
    let placed = edit::try_insert(page, 0, root.addr, 1, key, Payload::inline(b"x"));
    assert_eq!(placed.unwrap(), Placed::Yes);
    tree.flags |= HAS_REFERENCES;
    let whole = b"bcde0123456789";
    assert!(tree.contains(&pages, whole).unwrap());
    let replaced = tree.insert(&mut pages, whole, b"longer value");
    assert!(matches!(replaced, Err(Error::Corrupt(_))));
}
