//! Random operations on buffered tables against a `BTreeMap`, with small pages and blocks of few keys.

use crate::{BufferedReader, BufferedWriter, FoundValue};
use std::collections::BTreeMap;
use std::ops::Bound;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn random_key(rng: &mut Rng) -> Vec<u8> {
    let mut key = vec![b'k'; rng.index(3)];
    key.extend_from_slice(&(rng.below(400) as u16).to_be_bytes());
    if rng.one_in(30) {
        key.extend(vec![b'x'; 300]);
    }
    key
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(random_key(rng)),
        _ => Bound::Excluded(random_key(rng)),
    }
}

fn compare<R: PageRead>(table: &BufferedReader<R>, model: &Model, rng: &mut Rng) -> Result<()> {
    assert_eq!(table.count()?, model.len() as u64);
    for _ in 0..20 {
        let key = random_key(rng);
        let found = match table.get(&key)? {
            Some(FoundValue::Row(value)) => Some(value.to_vec()?),
            Some(FoundValue::Run(value)) => Some(value),
            None => None,
        };
        assert_eq!(found.as_ref(), model.get(&key));
    }
    for _ in 0..4 {
        let (start, end) = (bound(rng), bound(rng));
        let inside = |key: &[u8]| {
            let above = match &start {
                Bound::Included(start) => key >= start.as_slice(),
                Bound::Excluded(start) => key > start.as_slice(),
                Bound::Unbounded => true,
            };
            above
                && match &end {
                    Bound::Included(end) => key <= end.as_slice(),
                    Bound::Excluded(end) => key < end.as_slice(),
                    Bound::Unbounded => true,
                }
        };
        let mut expected: Vec<(Vec<u8>, Vec<u8>)> = model
            .iter()
            .filter(|(key, _)| inside(key))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for is_reversed in [false, true] {
            let mut range = table.range(start.clone(), end.clone(), is_reversed)?;
            let mut found = Vec::new();
            while range.step()? {
                found.push((range.key().to_vec(), range.value().unwrap().to_vec()));
            }
            assert!(!range.step()?);
            assert_eq!(found, expected);
            expected.reverse();
        }
    }
    let mut problems = Vec::new();
    table.check(&mut |problem| problems.push(problem))?;
    assert!(problems.is_empty(), "{problems:?}");
    Ok(())
}

fn random_operations(seed: u64) -> Result<()> {
    let rng = &mut Rng::new(seed);
    let mut pages = ScratchPages::new(*rng.pick(&[512, 1024, 4096]));
    let mut root = Tree::new(20);
    let mut table = BufferedWriter::create(&mut root, &mut pages)?;
    let mut model = Model::new();
    let most = *rng.pick(&[3, 30, 200]);
    for _ in 0..40 {
        for _ in 0..1 + rng.below(most) {
            let key = random_key(rng);
            if rng.one_in(4) {
                table.remove(&key)?;
                model.remove(&key);
                assert_eq!(table.buffered(&key), Some(None));
            } else {
                let len = if rng.one_in(40) { 2000 } else { rng.index(40) };
                let value = vec![rng.below(256) as u8; len];
                table.put(&key, &value)?;
                assert_eq!(table.buffered(&key), Some(Some(&value[..])));
                model.insert(key, value);
            }
        }
        table.store(&mut root, &mut pages)?;
        if rng.one_in(10) {
            table.compact(&mut root, &mut pages)?;
            let stat = table.reader(&root, &pages)?.stat()?;
            assert_eq!((stat.rows, stat.runs), (model.len() as u64, 0));
        }
        if rng.one_in(30) {
            table.clear(&mut root, &mut pages)?;
            model.clear();
        }
        if rng.one_in(4) {
            compare(&table.reader(&root, &pages)?, &model, rng)?;
        }
        root.seal(&mut pages)?;
        if rng.one_in(3) {
            pages.commit();
            let snapshot = pages.snapshot();
            compare(&BufferedReader::open(&root, &snapshot)?, &model, rng)?;
            table = BufferedWriter::open(&root, &pages)?;
        }
    }
    compare(&table.reader(&root, &pages)?, &model, rng)?;
    let mut claims = Vec::new();
    root.check(&pages, &mut |used| claims.push((used.addr, used.pages)))?;
    pages.assert_all_claimed(&claims);
    Ok(())
}

#[test]
fn buffered_tables_agree_with_a_map() {
    tidalite_testkit::watch();
    for seed in 0..80 {
        println!("seed {seed}");
        random_operations(seed).unwrap();
    }
}
