//! Random operations on hash tables of all kinds, compared with maps in memory, with small pages and small blocks.

use crate::{Buffered, HashOptions, HashReader, HashWriter, History, KeyForm};
use std::collections::{BTreeMap, BTreeSet};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// The expected content of a hash table.
#[derive(Clone, Debug, Default)]
struct Model {
    /// Every record that was written: key and value, or `None` for a removal.
    records: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Records of each key that exists.
    live: BTreeMap<Vec<u8>, BTreeSet<u64>>,
    /// Versions of each key, in a table without duplicates.
    versions: BTreeMap<Vec<u8>, Vec<u64>>,
}

fn options(rng: &mut Rng) -> HashOptions {
    let key = *rng.pick(&[
        KeyForm::Whole { bytes_max: 400 },
        KeyForm::Hashed,
        KeyForm::Compact,
    ]);
    let duplicates = rng.one_in(2);
    let history = match rng.below(3) {
        0 if !duplicates => History::All,
        1 if !duplicates => History::Last(1 + rng.below(3) as u32),
        _ => History::None,
    };
    HashOptions {
        key,
        duplicates,
        fold_case: rng.one_in(3),
        history,
        seed: rng.u64(),
    }
}

/// Keys that are often repeated.
fn random_key(rng: &mut Rng, shape: u64) -> Vec<u8> {
    let number = rng.below(300);
    match shape {
        0 => number
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .to_be_bytes()
            .to_vec(),
        1 => format!("Key{number}").into_bytes(),
        2 => vec![b'x'; number as usize],
        _ => {
            let mut key = format!("{}", number % 40).into_bytes();
            key.extend(vec![b'a' + (number % 3) as u8; (number % 5) as usize]);
            key
        }
    }
}

impl Model {
    fn key(options: &HashOptions, key: &[u8]) -> Vec<u8> {
        match options.fold_case {
            true => String::from_utf8_lossy(key).to_lowercase().into_bytes(),
            false => key.to_vec(),
        }
    }

    fn set(&mut self, options: &HashOptions, key: &[u8], value: &[u8]) -> u64 {
        let number = self.records.len() as u64;
        self.records.push((key.to_vec(), Some(value.to_vec())));
        let folded = Self::key(options, key);
        let live = self.live.entry(folded.clone()).or_default();
        if !options.duplicates {
            live.clear();
        }
        live.insert(number);
        self.versions.entry(folded).or_default().push(number);
        number
    }

    fn remove(&mut self, options: &HashOptions, key: &[u8]) -> u64 {
        let number = self.records.len() as u64;
        self.records.push((key.to_vec(), None));
        let folded = Self::key(options, key);
        self.live.remove(&folded);
        self.versions.entry(folded).or_default().push(number);
        number
    }

    fn remove_record(&mut self, options: &HashOptions, key: &[u8], record: u64) -> u64 {
        let number = self.records.len() as u64;
        self.records.push((key.to_vec(), None));
        let folded = Self::key(options, key);
        if let Some(live) = self.live.get_mut(&folded) {
            live.remove(&record);
            if live.is_empty() {
                self.live.remove(&folded);
            }
        }
        number
    }
}

fn compare<R: PageRead>(
    table: &HashReader<R>,
    model: &Model,
    rng: &mut Rng,
    shape: u64,
) -> Result<()> {
    let options = *table.options();
    assert_eq!(table.count_keys()?, model.live.len() as u64);
    let all: usize = model.live.values().map(BTreeSet::len).sum();
    assert_eq!(table.count_records()?, all as u64);
    for _ in 0..20 {
        let key = random_key(rng, shape);
        let folded = Model::key(&options, &key);
        let live = model.live.get(&folded).cloned().unwrap_or_default();
        let found = table.duplicates(&key)?;
        assert_eq!(found.iter().collect::<BTreeSet<_>>(), live);
        let newest = table.get(&key)?;
        assert_eq!(
            newest.as_ref().map(|record| record.number()),
            live.last().copied()
        );
        if let Some(record) = newest {
            let (own, value) = &model.records[record.number() as usize];
            assert_eq!((record.key(), record.value()), (&own[..], value.as_deref()));
        }
        let history: Vec<u64> = table.history(&key)?.iter().map(|r| r.number()).collect();
        if options.duplicates {
            assert_eq!(history, live.iter().rev().copied().collect::<Vec<_>>());
        } else {
            let mut versions = model.versions.get(&folded).cloned().unwrap_or_default();
            versions.reverse();
            match options.history {
                History::All => {}
                History::Last(most) => versions.truncate(most as usize + 1),
                History::None => versions = live.iter().copied().collect(),
            }
            assert_eq!(history, versions);
        }
    }
    for _ in 0..50 {
        let key = random_key(rng, shape);
        let live = model.live.get(&Model::key(&options, &key));
        let found = table.get(&key)?.map(|record| record.number());
        assert_eq!(found, live.and_then(|live| live.last().copied()));
        assert_eq!(table.contains(&key)?, live.is_some());
    }
    let mut walked = BTreeMap::new();
    let mut walk = table.walk(b"")?;
    let mut last: Option<Vec<u8>> = None;
    while walk.step()? {
        assert!(last.as_deref().is_none_or(|last| last < walk.key()));
        last = Some(walk.key().to_vec());
        for number in walk.records() {
            let (key, _) = &model.records[number as usize];
            walked
                .entry(Model::key(&options, key))
                .or_insert_with(BTreeSet::new)
                .insert(number);
        }
    }
    assert_eq!(walked, model.live);
    let mut problems = Vec::new();
    table.check(&mut |problem| problems.push(problem))?;
    assert!(problems.is_empty(), "{problems:?}");
    Ok(())
}

fn random_operations(seed: u64, steps: u64) -> Result<()> {
    let rng = &mut Rng::new(seed);
    let options = options(rng);
    // Keys of shape 0 are not text.
    let shape = if options.fold_case {
        1 + rng.below(3)
    } else {
        rng.below(4)
    };
    let mut pages = ScratchPages::new(*rng.pick(&[512, 1024, 4096]));
    let mut root = Tree::new(20);
    let mut table = HashWriter::create(&mut root, &mut pages, options)?;
    let mut model = Model::default();
    let most = *rng.pick(&[3, 30, 300]);
    for _ in 0..steps {
        for _ in 0..1 + rng.below(most) {
            let key = random_key(rng, shape);
            let value = vec![rng.below(256) as u8; rng.index(60)];
            let one = match model.live.get(&Model::key(&options, &key)) {
                Some(live) if rng.one_in(8) && options.duplicates => {
                    let live: Vec<u64> = live.iter().copied().collect();
                    Some(*rng.pick(&live))
                }
                _ => None,
            };
            let (found, expected) = match (one, rng.below(20)) {
                (Some(record), _) => (
                    table.remove_record(&key, record)?,
                    model.remove_record(&options, &key, record),
                ),
                (None, 0..3) => (table.remove(&key)?, model.remove(&options, &key)),
                _ => (table.set(&key, &value)?, model.set(&options, &key, &value)),
            };
            assert_eq!(found, expected);
            // The results combine the records in memory and the stored ones.
            let live = model.live.get(&Model::key(&options, &key));
            let newest = live.and_then(|live| live.last().copied());
            match table.buffered(&key)? {
                Buffered::Record(number) => {
                    assert_eq!(Some(number), newest);
                    let record = table.buffered_record(number)?.expect("it is in memory");
                    assert_eq!(record.value(), model.records[number as usize].1.as_deref());
                }
                Buffered::Removed => assert_eq!(newest, None),
                Buffered::Stored(removed) if options.duplicates => {
                    let reader = table.reader(&root, &pages)?;
                    assert_eq!(reader.newest_but(&key, removed)?, newest);
                }
                Buffered::Stored(_) => unreachable!("it is in memory"),
            }
            if options.duplicates && rng.one_in(20) {
                let key = random_key(rng, shape);
                let record = rng.below(model.records.len() as u64 + 3);
                let live = model.live.get(&Model::key(&options, &key));
                let expected = live.is_some_and(|live| live.contains(&record));
                assert_eq!(table.has_record(&root, &pages, &key, record)?, expected);
            }
        }
        table.store(&mut root, &mut pages)?;
        if rng.one_in(10) {
            table.compact(&mut root, &mut pages)?;
            assert_eq!(table.reader(&root, &pages)?.stat()?.run_entries, 0);
            assert_eq!(table.reader(&root, &pages)?.stat()?.dead, 0);
        }
        if rng.one_in(15) {
            table.rebuild(&mut root, &mut pages)?;
        }
        if rng.one_in(4) {
            compare(&table.reader(&root, &pages)?, &model, rng, shape)?;
        }
        root.seal(&mut pages)?;
        if rng.one_in(3) {
            pages.commit();
            let snapshot = pages.snapshot();
            let reader = HashReader::open(&root, &snapshot)?;
            compare(&reader, &model, rng, shape)?;
            assert_eq!(reader.options(), &options);
            table = HashWriter::open(&root, &pages)?;
        }
    }
    compare(&table.reader(&root, &pages)?, &model, rng, shape)?;
    let mut claims = Vec::new();
    root.check(&pages, &mut |used| claims.push((used.addr, used.pages)))?;
    pages.assert_all_claimed(&claims);
    Ok(())
}

#[test]
fn hash_tables_agree_with_maps() {
    tidalite_testkit::watch();
    for seed in 0..60 {
        println!("seed {seed}");
        random_operations(seed, 40).unwrap();
    }
}
