//! Tables of sets: many keys at once, ranks of pairs, parts for parallel scans, and changes of existing pairs.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Error, ErrorKind, Options, SetTable, SetTableMut};
use tidalite_testkit::rng::Rng;

type Pair = (Vec<u8>, Vec<u8>);

fn small_pages() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// Creates a table with many keys of one or a few values, and two keys of thousands of values.
fn filled() -> (Database, BTreeSet<Pair>) {
    let db = small_pages();
    let mut rng = Rng::new(3);
    let mut model = BTreeSet::new();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("m").unwrap();
    for key in 0..200u32 {
        let count = match key {
            50 | 51 => 3000,
            _ if rng.one_in(3) => rng.index(20),
            _ => 1,
        };
        let values: Vec<[u8; 4]> = (0..count)
            .map(|_| (rng.below(100_000) as u32).to_be_bytes())
            .collect();
        table.put_many(&key.to_be_bytes(), &values).unwrap();
        let key = key.to_be_bytes().to_vec();
        model.extend(values.iter().map(|value| (key.clone(), value.to_vec())));
    }
    tx.commit().unwrap();
    (db, model)
}

fn pairs(table: &SetTable<'_>, range: (Bound<Pair>, Bound<Pair>)) -> Vec<Pair> {
    let range = table.range_of_pairs(range).unwrap();
    let left = range.left();
    let pairs: Vec<Pair> = range.map(Result::unwrap).collect();
    assert_eq!(left, pairs.len() as u64);
    pairs
}

#[test]
fn parts_of_a_table_hold_each_pair_once_and_are_as_large() {
    let (db, model) = filled();
    let snap = db.begin_read().unwrap();
    let table = snap.set_table("m").unwrap().unwrap();
    for parts in [1, 2, 3, 8, 100] {
        let from = 7u32.to_be_bytes();
        let cuts = table.split(&from[..].., parts).unwrap();
        assert_eq!(cuts.len(), parts - 1);
        let least = Bound::Included((from.to_vec(), Vec::new()));
        let begins = [least]
            .into_iter()
            .chain(cuts.iter().cloned().map(Bound::Included));
        let ends = cuts
            .iter()
            .cloned()
            .map(Bound::Excluded)
            .chain([Bound::Unbounded]);
        let found: Vec<Vec<Pair>> = std::thread::scope(|threads| {
            let each: Vec<_> = begins
                .zip(ends)
                .map(|part| {
                    let table = &table;
                    threads.spawn(move || pairs(table, part))
                })
                .collect();
            each.into_iter().map(|part| part.join().unwrap()).collect()
        });
        let expected: Vec<Pair> = model
            .iter()
            .filter(|pair| pair.0[..] >= from[..])
            .cloned()
            .collect();
        let size = expected.len() / parts;
        for part in &found {
            assert!(
                (size..=size + 1).contains(&part.len()),
                "{} of {size}",
                part.len()
            );
        }
        assert_eq!(found.concat(), expected);
    }
}

#[test]
fn get_many_equals_single_gets() {
    let (db, model) = filled();
    let snap = db.begin_read().unwrap();
    let table = snap.set_table("m").unwrap().unwrap();
    let keys: Vec<[u8; 4]> = [50, 3, 51, 7, 1_000_000, 0, 3]
        .into_iter()
        .chain(100..220u32)
        .map(u32::to_be_bytes)
        .collect();
    let found = table.get_many(&keys).unwrap();
    let one_by_one: Vec<_> = keys.iter().map(|key| table.get(key).unwrap()).collect();
    assert_eq!(found, one_by_one);
    let mut all = Vec::new();
    table
        .each_value_of(&keys, |place, value| all.push((place, value.to_vec())))
        .unwrap();
    let mut expected = Vec::new();
    for (place, key) in keys.iter().enumerate() {
        let own = model.iter().filter(|pair| pair.0 == key);
        expected.extend(own.map(|pair| (place, pair.1.clone())));
    }
    assert_eq!(all, expected);
}

#[test]
fn places_of_pairs_lead_there_and_back() {
    let (db, model) = filled();
    let all: Vec<Pair> = model.into_iter().collect();
    let snap = db.begin_read().unwrap();
    let table = snap.set_table("m").unwrap().unwrap();
    let mut cursor = table.cursor();
    let mut rng = Rng::new(5);
    for _ in 0..2000 {
        let place = rng.index(all.len());
        let (key, value) = &all[place];
        assert_eq!(table.rank_pair(key, value).unwrap(), place as u64);
        assert!(cursor.select(place as u64).unwrap());
        assert_eq!((cursor.key(), cursor.value()), (&key[..], &value[..]));
        let first = table.rank(key).unwrap();
        assert!(cursor.select_key(place as u64).unwrap() && cursor.on_first_value());
        assert_eq!(cursor.key(), key);
        assert!(cursor.select_value(key, place as u64 - first).unwrap());
        assert_eq!(cursor.value(), value);
        // The ranges of pairs have every kind of bound.
        let other = rng.index(all.len());
        let end = |place: usize, kind: u64| match kind {
            0 => Bound::Included(all[place].clone()),
            1 => Bound::Excluded(all[place].clone()),
            _ => Bound::Unbounded,
        };
        let (begin, end) = (end(place, rng.below(3)), end(other, rng.below(3)));
        let from = match &begin {
            Bound::Included(_) => place,
            Bound::Excluded(_) => place + 1,
            Bound::Unbounded => 0,
        };
        let to = match &end {
            Bound::Included(_) => other + 1,
            Bound::Excluded(_) => other,
            Bound::Unbounded => all.len(),
        };
        let range = table.range_of_pairs((begin, end)).unwrap();
        assert_eq!(range.left(), to.saturating_sub(from) as u64);
        if from < to {
            let few = 5.min(to - from);
            let mut range = range;
            let delta: Vec<Pair> = range.by_ref().take(few).map(Result::unwrap).collect();
            assert_eq!(delta, all[from..from + few]);
            assert_eq!(range.left(), (to - from - few) as u64);
            let back = range.next_back().map(Result::unwrap);
            assert_eq!(back.as_ref(), all[from + few..to].last());
        }
    }
    assert!(!cursor.select(all.len() as u64).unwrap() && cursor.eof());
    let last = all.last().unwrap();
    assert!(
        !cursor
            .select_value(&last.0, table.count_of(&last.0).unwrap())
            .unwrap()
    );
    assert!(!cursor.select_value(b"none", 0).unwrap());
}

#[test]
fn update_changes_only_existing_pairs() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("m").unwrap();
    assert!(!table.update(b"k", b"1").unwrap(), "nothing is there");
    assert_eq!(table.view().unwrap().count(), 0);
    assert!(!table.replace(b"k", b"1", b"2").unwrap());
    assert_eq!(table.view().unwrap().count(), 0);
    assert!(table.insert(b"k", b"1").unwrap() && !table.insert(b"k", b"2").unwrap());
    assert!(table.update(b"k", b"3").unwrap());
    assert_eq!(
        table.view().unwrap().get(b"k").unwrap(),
        Some((b"3".to_vec(), 1))
    );
    assert!(table.update(b"k", b"3").unwrap(), "the same once more");
    // A value that is too long is refused, and the old value stays.
    let long = vec![7; (16 << 20) + 1];
    let refused = table.update(b"k", &long);
    assert!(
        matches!(&refused, Err(error) if error.kind() == ErrorKind::Limit),
        "{refused:?}"
    );
    assert_eq!(
        table.view().unwrap().get(b"k").unwrap(),
        Some((b"3".to_vec(), 1))
    );
    table.put(b"k", b"4").unwrap();
    let refused = table.update(b"k", b"5");
    let error = refused.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("2 values"), "{error}");
    assert_eq!(table.view().unwrap().count(), 2);
}

/// Typed tables of sets agree with a set of the same types in every change and in ranges read from both ends.
#[test]
fn typed_pairs_agree_with_a_set() {
    let db = small_pages();
    let mut rng = Rng::new(11);
    let mut model: BTreeSet<(i32, (u64, String))> = BTreeSet::new();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("t").unwrap().typed::<i32, (u64, String)>();
    let value = |rng: &mut Rng| {
        let n = rng.below(300);
        (n, format!("v{}", n % 7))
    };
    for round in 0..4000 {
        let key = rng.below(9) as i32 - 4;
        let (first, second) = (value(&mut rng), value(&mut rng));
        let of_key = |model: &BTreeSet<(i32, (u64, String))>| {
            let all = model.range((key, (0, String::new()))..);
            all.take_while(|pair| pair.0 == key)
                .cloned()
                .collect::<Vec<_>>()
        };
        let there = of_key(&model);
        match rng.below(12) {
            0 => {
                assert_eq!(table.insert(&key, &first).unwrap(), there.is_empty());
                if there.is_empty() {
                    model.insert((key, first));
                }
            }
            1 => {
                let was = table.replace(&key, &first, &second).unwrap();
                assert_eq!(was, model.remove(&(key, first)));
                if was {
                    model.insert((key, second));
                }
            }
            2 => assert_eq!(
                table.remove(&key, &first).unwrap(),
                model.remove(&(key, first))
            ),
            3 => match &there[..] {
                [_, _, ..] => {
                    assert!(
                        matches!(table.take(&key), Err(ref error) if error.kind() == ErrorKind::InvalidInput)
                    );
                    let refused = table.update(&key, &first).unwrap_err();
                    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
                }
                [one] => {
                    assert!(table.update(&key, &first).unwrap());
                    assert_eq!(table.take(&key).unwrap(), Some(first));
                    model.remove(one);
                }
                [] => assert_eq!(table.take(&key).unwrap(), None),
            },
            4 => {
                let removed = table.remove_values_in(&key, &first..&second);
                let gone = there
                    .iter()
                    .filter(|pair| (&first..&second).contains(&&pair.1));
                assert_eq!(removed.unwrap(), gone.clone().count() as u64);
                gone.for_each(|pair| assert!(model.remove(pair)));
            }
            5 if rng.one_in(8) => {
                let to = key + 2;
                let before = model.len();
                model.retain(|pair| !(key..to).contains(&pair.0));
                let removed = table.remove_range(key..to).unwrap();
                assert_eq!(removed, (before - model.len()) as u64);
            }
            6 if rng.one_in(8) => {
                assert_eq!(table.remove_all(&key).unwrap(), there.len() as u64);
                there.iter().for_each(|pair| assert!(model.remove(pair)));
            }
            _ => {
                let values = [first, second];
                let new = values
                    .iter()
                    .filter(|value| model.insert((key, (*value).clone())));
                let new = new.count() as u64;
                match round % 2 {
                    0 => assert_eq!(table.put_many(&key, &values).unwrap(), new),
                    _ => {
                        let one = |value| u64::from(table.put(&key, value).unwrap());
                        assert_eq!(values.iter().map(one).sum::<u64>(), new);
                    }
                }
            }
        }
        if round % 50 > 0 {
            continue;
        }
        let (view, there) = (table.view().unwrap(), of_key(&model));
        assert_eq!(view.count(), model.len() as u64);
        assert_eq!(view.count_of(&key).unwrap(), there.len() as u64);
        let least = there
            .first()
            .map(|pair| (pair.1.clone(), there.len() as u64));
        assert_eq!(view.get(&key).unwrap(), least);
        assert_eq!(view.first().unwrap().as_ref(), model.first());
        assert_eq!(view.last().unwrap().as_ref(), model.last());
        let backwards: Result<Vec<_>, _> = view.values(&key).unwrap().rev().collect();
        let expected: Vec<_> = there.iter().rev().map(|pair| pair.1.clone()).collect();
        assert_eq!(backwards.unwrap(), expected);
        let middle = (50, String::new());
        for ends in [
            (Bound::Excluded(middle.clone()), Bound::Unbounded),
            (Bound::Unbounded, Bound::Included(middle.clone())),
        ] {
            let found: Result<Vec<_>, _> = view.values_in(&key, ends.clone()).unwrap().collect();
            let expected = there.iter().map(|pair| pair.1.clone());
            let expected: Vec<_> = expected.filter(|value| ends.contains(value)).collect();
            assert_eq!(found.unwrap(), expected);
        }
        let found: Result<BTreeSet<_>, _> = view.range(..=key).unwrap().collect();
        let expected: BTreeSet<_> = model
            .range(..(key + 1, (0, String::new())))
            .cloned()
            .collect();
        assert_eq!(view.count_range(..=key).unwrap(), expected.len() as u64);
        assert_eq!(found.unwrap(), expected);
        let from = (key, middle);
        let found: Result<Vec<_>, _> = view.range_of_pairs(from.clone()..).unwrap().collect();
        assert!(found.unwrap().iter().eq(model.range(from..)));
        let keys: BTreeSet<_> = model.iter().map(|pair| pair.0).collect();
        assert_eq!(view.count_keys(), keys.len() as u64);
    }
    assert!(model.len() > 200);
    table.bytes().put(b"no number", b"").unwrap();
    assert!(
        table
            .view()
            .unwrap()
            .range(..)
            .unwrap()
            .any(|pair| pair.is_err())
    );
}

/// Stores pairs, mostly after all others, in one of the possible ways; returns whether the table agrees with the set.
fn put_behind(table: &mut SetTableMut<'_>, model: &mut BTreeSet<Pair>, rng: &mut Rng) {
    let from = model.last().map_or(0, |(key, _)| key[0]);
    let from = if rng.one_in(3) {
        rng.below(250) as u8
    } else {
        from
    };
    let each = *rng.pick(&[1, 8, 200]);
    let mut pairs: Vec<Pair> = Vec::new();
    for key in from..from.saturating_add(3) {
        let values = (0..rng.below(each)).map(|n| vec![n as u8, key % 7]);
        pairs.extend(values.map(|value| (vec![key], value)));
    }
    if rng.one_in(2) {
        let new = table.extend(pairs.iter().map(|(key, value)| (key, value)));
        let new_here = pairs.into_iter().filter(|pair| model.insert(pair.clone()));
        assert_eq!(new.unwrap(), new_here.count() as u64);
        return;
    }
    for pair in pairs {
        let (key, value) = (&pair.0[..], &pair.1[..]);
        let last_of_key = model.iter().rfind(|other| other.0 == key);
        let behind_key = last_of_key.is_none_or(|last| last.1 < pair.1);
        let (behind, done) = match rng.below(3) {
            0 => (behind_key, table.append_value(key, value)),
            1 => (
                model.last().is_none_or(|last| *last < pair),
                table.append(key, value),
            ),
            _ => {
                let new = table.put(key, value).unwrap();
                assert_eq!(new, model.insert(pair));
                continue;
            }
        };
        match done {
            Ok(()) => assert!(behind && model.insert(pair)),
            Err(error) => assert!(!behind && error.kind() == ErrorKind::OutOfOrder),
        }
    }
}

/// Appended pairs equal a set even with rollbacks in between: the table's append cursor must not refer to undone rows.
#[test]
fn appended_pairs_equal_a_set() {
    for seed in 0..12 {
        let db = small_pages();
        let (mut rng, mut model) = (Rng::new(seed), BTreeSet::new());
        for _ in 0..6 {
            let mut tx = db.begin_write().unwrap();
            for _ in 0..rng.below(20) {
                put_behind(&mut tx.set_table("m").unwrap(), &mut model, &mut rng);
                if rng.one_in(4) {
                    let undone: Result<(), Error> = tx.nested(|tx| {
                        put_behind(&mut tx.set_table("m")?, &mut model.clone(), &mut rng);
                        Err(Error::from(std::io::Error::other("undone")))
                    });
                    assert!(undone.is_err());
                }
                if rng.one_in(6)
                    && let Some((key, value)) = model.pop_last()
                {
                    let mut table = tx.set_table("m").unwrap();
                    assert!(table.remove(&key, &value).unwrap());
                }
            }
            tx.set_table("m").unwrap();
            tx.commit().unwrap();
            let snap = db.begin_read().unwrap();
            lent(&snap.set_table("m").unwrap().unwrap(), &model, &mut rng);
            let report = db.check().unwrap();
            assert!(report.problems.is_empty(), "seed {seed}: {report:?}");
        }
    }
}

/// Reads borrowed values: all pairs, the values of a key, and some values from a position on.
fn lent(table: &SetTable<'_>, model: &BTreeSet<Pair>, rng: &mut Rng) {
    let mut all = Vec::new();
    table
        .for_each(|key, value| all.push((key.to_vec(), value.to_vec())))
        .unwrap();
    assert!(all.iter().eq(model), "the pairs of the table");
    for key in 0..=u8::MAX {
        let mut values = Vec::new();
        let told = table.for_each_value(&[key], |value| values.push(value.to_vec()));
        let expected: Vec<Vec<u8>> = model
            .iter()
            .filter(|pair| pair.0 == [key])
            .map(|pair| pair.1.clone())
            .collect();
        assert_eq!((told.unwrap(), &values), (values.len() as u64, &expected));
        let mut cursor = table.cursor();
        let at = rng.index(expected.len() + 1);
        if !cursor.select_value(&[key], at as u64).unwrap() {
            assert_eq!(at, expected.len());
            continue;
        }
        let most = rng.index(9);
        let mut some = Vec::new();
        let given = cursor.for_each_value(most, |value| some.push(value.to_vec()));
        assert_eq!(given.unwrap(), some.len());
        assert!(some.iter().eq(expected[at..].iter().take(most)));
    }
}

/// A copy packs sets as tightly as `extend` does, however sparse the pages of the original are.
#[test]
fn a_copy_of_multi_values_is_packed() {
    tidalite_testkit::watch();
    let dir = std::env::temp_dir().join(format!("tidalite-packed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let pair = |n: u64| {
        // Most keys have about ten values, and one has a quarter of all.
        let key = if n.is_multiple_of(4) { 7 } else { n / 13 };
        (key.to_be_bytes(), (n << 16).to_be_bytes())
    };
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut scattered = tx.set_table("scattered").unwrap();
    for n in 0..20_000u64 {
        let (key, value) = pair(n * 7919 % 20_000);
        scattered.put(&key, &value).unwrap();
    }
    let mut pairs: Vec<_> = (0..20_000).map(pair).collect();
    pairs.sort_unstable();
    let mut dense = tx.set_table("dense").unwrap();
    assert_eq!(dense.extend(pairs.iter().copied()).unwrap(), 20_000);
    tx.commit().unwrap();

    db.copy().to(dir.join("copy.tdl")).unwrap();
    let copy = Database::open(dir.join("copy.tdl")).unwrap();
    let [before, after] = [&db, &copy].map(|db| {
        let snap = db.begin_read().unwrap();
        ["scattered", "dense"].map(|name| {
            let table = snap.set_table(name).unwrap().unwrap();
            let mut found = Vec::new();
            let put = |key: &[u8], value: &[u8]| found.push((key.to_vec(), value.to_vec()));
            table.for_each(put).unwrap();
            assert!(
                found
                    .iter()
                    .map(|(k, v)| (&k[..], &v[..]))
                    .eq(pairs.iter().map(|(k, v)| (&k[..], &v[..])))
            );
            table.shape().unwrap()
        })
    });
    assert_eq!(after[0], before[1], "as put in in order");
    assert_eq!(after[1], before[1]);
    assert!(before[0].pages() * 10 > after[0].pages() * 11, "{before:?}");
    assert!(copy.check().unwrap().problems.is_empty());
    drop(copy);
    std::fs::remove_dir_all(dir).unwrap();
}
