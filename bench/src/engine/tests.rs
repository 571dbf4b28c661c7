//! Every engine must give the same answers to the same transactions, also after a compaction and after the database was
//! closed and reopened.

use super::data::{Data, Random, Shape};
use super::*;
use crate::os::TempDir;
use crate::syncs;
use std::collections::BTreeMap;

const SHAPE: Shape = Shape {
    key_bytes: 16,
    value_bytes: 20,
};

fn kinds() -> impl Iterator<Item = Kind> {
    [
        TIDALITE,
        TIDALITE_ONE_FLUSH,
        TIDALITE_HASH,
        TIDALITE_BUFFERED,
    ]
    .into_iter()
    .chain(PEERS.iter().copied())
}

#[test]
fn every_engine_agrees_with_a_map() {
    for kind in kinds() {
        for promise in [Promise::Synced, Promise::Lazy, Promise::Unsynced] {
            agrees(kind, promise).unwrap_or_else(|e| panic!("{} {promise:?}: {e}", kind.name));
        }
    }
}

/// Every durable commit waits for the disk, and this wait must be counted; otherwise the suites would report too few
/// waits.
#[test]
fn the_waits_of_durable_commits_are_counted() {
    for kind in kinds() {
        let dir = TempDir::new(kind.name).unwrap();
        let engine = (kind.open)(dir.path(), &Setup::new(Promise::Synced, 1 << 20)).unwrap();
        let commit = |n: u8| engine.write(&mut |txn| txn.put(&[n; 16], &[n; 16]));
        (0..20).try_for_each(commit).unwrap();
        engine.silent_syncs(0);
        let before = syncs::count();
        (20..120).try_for_each(commit).unwrap();
        let waits = syncs::count() - before + engine.silent_syncs(100);
        // Other tests of this process sync at the same time, so the counter may show more waits.
        assert!(waits >= 100, "{}: {waits}", kind.name);
    }
}

fn agrees(kind: Kind, promise: Promise) -> Result<()> {
    let dir = TempDir::new(kind.name)?;
    let data = Data::new(SHAPE);
    let setup = Setup::new(promise, 1 << 20);
    let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut random = Random::new(5);
    let mut engine = (kind.open)(dir.path(), &setup)?;
    engine.load(data.load(300))?;
    model.extend(
        data.load(300)
            .map(|(k, v)| (k.as_ref().to_vec(), v.to_vec())),
    );
    for txn in 0..20 {
        engine.write(&mut |writer| {
            for _ in 0..50 {
                let n = random.below(200);
                let (key, value) = (data.scattered(n), data.value(n, txn));
                if random.below(4) == 0 {
                    let was = model.remove(key.as_ref()).is_some();
                    let told = writer.delete(key.as_ref())?;
                    assert!(told == was || kind.name == "fjall" || kind.name == "rocksdb");
                } else {
                    writer.put(key.as_ref(), value)?;
                    model.insert(key.as_ref().to_vec(), value.to_vec());
                }
                let n = random.below(200);
                let key = data.scattered(n);
                let expected = model.get(key.as_ref()).map(|value| touch(value));
                assert_eq!(writer.get(key.as_ref())?, expected);
            }
            Ok(())
        })?;
    }
    same(&*engine, &data, &model)?;
    engine.flush()?;
    drop(engine);
    engine = (kind.open)(dir.path(), &setup)?;
    same(&*engine, &data, &model)?;
    assert!(engine.compact()?);
    drop(engine);
    engine = (kind.open)(dir.path(), &setup)?;
    same(&*engine, &data, &model)
}

fn same(engine: &dyn Engine, data: &Data, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Result<()> {
    engine.begin_read()?;
    engine.read(&mut |reader| {
        assert_eq!(reader.count()?, model.len() as u64);
        let keys: Vec<_> = (0..220).map(|n| data.scattered(n)).collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let mut one_by_one = vec![None; keys.len()];
        for (at, key) in keys.iter().enumerate() {
            let there = reader.value(key, &mut |value| one_by_one[at] = Some(value.to_vec()))?;
            assert_eq!(there, one_by_one[at].is_some());
            assert_eq!(one_by_one[at].as_ref(), model.get(*key));
        }
        let mut together = vec![None; keys.len()];
        if reader.values(&keys, &mut |at, value| together[at] = Some(value.to_vec()))? {
            assert_eq!(together, one_by_one);
        }
        let mut all = Digest::default();
        model.iter().for_each(|(key, value)| all.add(key, value));
        assert_eq!(reader.scan(&[], u64::MAX >> 1)?, all);
        for n in 0..220 {
            let key = data.scattered(n);
            let expected = model.get(key.as_ref()).map(|value| touch(value));
            assert_eq!(reader.get(key.as_ref())?, expected);
            let mut ten = Digest::default();
            let from = model.range(key.as_ref().to_vec()..).take(10);
            from.for_each(|(key, value)| ten.add(key, value));
            assert_eq!(reader.scan(key.as_ref(), 10)?, ten);
        }
        Ok(())
    })
}

#[test]
fn series_take_points_by_the_same_calls() {
    let dir = TempDir::new("points").unwrap();
    let engine = (TIDALITE_SERIES.open)(dir.path(), &Setup::new(Promise::Synced, 1 << 20)).unwrap();
    engine
        .write(&mut |writer| {
            for n in 0..10u64 {
                let key = data::Key::of_point(n % 3, n as i64);
                writer.put(key.as_ref(), &(n as f64).to_le_bytes())?;
            }
            Ok(())
        })
        .unwrap();
    drop(engine);
    let db = ::tidalite::Database::open(dir.path().join("bench.tdl")).unwrap();
    let snapshot = db.begin_read().unwrap();
    let sum = |name: &str| {
        let series = snapshot.series(name).unwrap().unwrap();
        let all = series.query(..).aggregate(1).unwrap();
        (all.count(), all.sum())
    };
    assert_eq!(
        [sum("s0"), sum("s1"), sum("s2")],
        [(4, 18.0), (3, 12.0), (3, 15.0)]
    );
}

#[test]
fn every_engine_with_multi_values_agrees_with_a_set() {
    use std::collections::BTreeSet;
    let mut took_part = Vec::new();
    for kind in kinds() {
        let dir = TempDir::new(kind.name).unwrap();
        let setup = Setup::new(Promise::Synced, 1 << 20);
        let Some(sets) = sets::open(kind, dir.path(), &setup).unwrap() else {
            continue;
        };
        took_part.push(kind.name);
        let mut random = Random::new(7);
        let pair = |n: u64| ((n / 10).to_be_bytes(), n.to_be_bytes());
        let mut model: BTreeSet<_> = (0..3000).map(pair).collect();
        sets.load(&mut (0..3000).map(pair)).unwrap();
        for _ in 0..4 {
            let mut some = || {
                (
                    random.below(400).to_be_bytes(),
                    random.below(1 << 12).to_be_bytes(),
                )
            };
            let pairs: Vec<_> = (0..500).map(|_| some()).collect();
            sets.put(&mut pairs.iter().copied()).unwrap();
            model.extend(pairs);
        }
        drop(sets);
        let sets = sets::open(kind, dir.path(), &setup).unwrap().unwrap();
        let read = sets.read(&mut |reader| {
            let mut all = Digest::default();
            model.iter().for_each(|(key, value)| all.add(key, value));
            assert_eq!(reader.scan()?, all, "{}", kind.name);
            for key in 0..410u64 {
                let key = key.to_be_bytes();
                let mut values = Digest::default();
                let of_key = model.range((key, [0; 8])..=(key, [255; 8]));
                of_key.for_each(|(key, value)| values.add(key, value));
                assert_eq!(reader.values(&key)?, values, "{}", kind.name);
            }
            Ok(())
        });
        read.unwrap();
    }
    assert_eq!(took_part, ["tidalite", "lmdb", "libmdbx", "redb"]);
}
