//! Ranges, write cursors and the other calls of tables, compared with maps; and the same operations under every option,
//! which must give the same results.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::tuning::Verify;
use tidalite::{Database, Durability, Options, Tuning, WriteTxn};
use tidalite_testkit::rng::Rng;

fn memory(options: &Options) -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    options.open_storage(storage).unwrap()
}

fn key(rng: &mut Rng) -> Vec<u8> {
    match rng.below(12) {
        0 => vec![b'x'; 1200 + rng.index(3)],
        1 => vec![0xff; rng.index(4)],
        _ => (0..rng.index(4))
            .map(|_| b'a' + rng.below(4) as u8)
            .collect(),
    }
}

fn bound(rng: &mut Rng) -> Bound<Vec<u8>> {
    match rng.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(key(rng)),
        _ => Bound::Excluded(key(rng)),
    }
}

fn inside(ends: &(Bound<Vec<u8>>, Bound<Vec<u8>>), key: &Vec<u8>) -> bool {
    let above = match &ends.0 {
        Bound::Unbounded => true,
        Bound::Included(from) => key >= from,
        Bound::Excluded(from) => key > from,
    };
    above
        && match &ends.1 {
            Bound::Unbounded => true,
            Bound::Included(to) => key <= to,
            Bound::Excluded(to) => key < to,
        }
}

#[test]
fn ranges_agree_with_maps_from_both_ends() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = memory(&Options::new().page_size(512));
        let mut tx = db.begin_write().unwrap();
        let (mut plain, mut pairs) = (BTreeMap::new(), BTreeSet::new());
        for _ in 0..400 {
            let (key, value) = (key(&mut rng), vec![rng.below(9) as u8; rng.index(300)]);
            tx.table("t").unwrap().put(&key, &value).unwrap();
            plain.insert(key.clone(), value.clone());
            tx.set_table("m").unwrap().put(&key, &value).unwrap();
            pairs.insert((key, value));
        }
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.table("t").unwrap().unwrap();
        let multi = snap.set_table("m").unwrap().unwrap();
        for _ in 0..200 {
            let ends = (bound(&mut rng), bound(&mut rng));
            let mut expected: Vec<_> = plain.iter().filter(|row| inside(&ends, row.0)).collect();
            let mut range = table.range(ends.clone()).unwrap();
            assert_eq!(range.left(), expected.len() as u64);
            while !expected.is_empty() {
                let (found, row) = if rng.one_in(2) {
                    (range.next(), expected.remove(0))
                } else {
                    (range.next_back(), expected.pop().unwrap())
                };
                let (key, value) = found.unwrap().unwrap();
                assert!((&key, &value[..]) == (row.0, &row.1[..]));
            }
            assert!(range.next().is_none() && range.next_back().is_none());

            let mut expected: Vec<_> = pairs.iter().filter(|pair| inside(&ends, &pair.0)).collect();
            let mut range = multi.range(ends).unwrap();
            assert_eq!(range.left(), expected.len() as u64);
            while !expected.is_empty() {
                let (found, pair) = if rng.one_in(2) {
                    (range.next(), expected.remove(0))
                } else {
                    (range.next_back(), expected.pop().unwrap())
                };
                assert!(found.unwrap().unwrap() == *pair);
            }
            assert!(range.next().is_none() && range.next_back().is_none());

            let prefix = key(&mut rng);
            let expected = plain.keys().filter(|key| key.starts_with(&prefix));
            let found = table.prefix(&prefix).unwrap();
            assert!(found.map(|row| row.unwrap().0).eq(expected.cloned()));
            let expected = pairs.iter().filter(|pair| pair.0 == prefix).rev();
            let found = multi.values(&prefix).unwrap().rev();
            assert!(
                found
                    .map(Result::unwrap)
                    .eq(expected.map(|pair| pair.1.clone()))
            );
            let expected = pairs.iter().filter(|pair| pair.0.starts_with(&prefix));
            let found = multi.prefix(&prefix).unwrap();
            assert_eq!(found.count(), expected.count());
        }
    }
}

#[test]
fn cursors_that_write_agree_with_maps() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(100 + seed);
        let db = memory(&Options::new().page_size(512));
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        // Half of the runs use a nested table, the others the table itself.
        let mut table = if seed.is_multiple_of(2) {
            table.nested(b"below")
        } else {
            table.nested_at::<&[u8]>(&[])
        };
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        let mut edit = table.cursor_mut();
        let mut at: Option<Vec<u8>> = None;
        for step in 0..4000u32 {
            let (to, value) = (key(&mut rng), step.to_le_bytes());
            let found = match rng.below(12) {
                0 => (edit.first().unwrap(), model.keys().next().cloned()),
                1 => (edit.last().unwrap(), model.keys().next_back().cloned()),
                2 => (
                    edit.seek_ge(&to).unwrap(),
                    model.range(to..).next().map(|row| row.0.clone()),
                ),
                3 => (
                    edit.seek_lt(&to).unwrap(),
                    model.range(..to).next_back().map(|row| row.0.clone()),
                ),
                4 => {
                    let there = model.contains_key(&to).then(|| to.clone());
                    (edit.seek(&to).unwrap(), there)
                }
                5..8 => {
                    assert_eq!(
                        edit.put(&to, &value).unwrap(),
                        model.insert(to.clone(), value.to_vec()).is_none()
                    );
                    (true, Some(to))
                }
                8 if at.is_some() => {
                    let key = at.clone().unwrap();
                    let old = model.insert(key.clone(), value.to_vec());
                    assert_eq!(edit.replace(&value).unwrap(), old);
                    (true, Some(key))
                }
                9..11 if at.is_some() => {
                    let key = at.clone().unwrap();
                    assert!(edit.key() == key && edit.remove().unwrap());
                    model.remove(&key);
                    assert!(!edit.is_at_entry() && !edit.remove().unwrap());
                    if rng.one_in(2) {
                        let next = model.range(key..).next().map(|row| row.0.clone());
                        (edit.next().unwrap(), next)
                    } else {
                        let before = model.range(..key).next_back().map(|row| row.0.clone());
                        (edit.previous().unwrap(), before)
                    }
                }
                _ if at.is_some() => {
                    let from = (Bound::Excluded(at.clone().unwrap()), Bound::Unbounded);
                    let next = model.range(from).next().map(|row| row.0.clone());
                    (edit.next().unwrap(), next)
                }
                _ => continue,
            };
            assert_eq!(found.0, found.1.is_some(), "step {step}");
            at = found.1;
            if let Some(key) = &at {
                assert!(edit.key() == key && edit.value().unwrap() == model[key]);
            }
        }
        while let Some((key, value)) = model.pop_first() {
            assert!(table.pop_first().unwrap() == Some((key, value)));
            if let Some((key, value)) = model.pop_last() {
                assert!(table.pop_last().unwrap() == Some((key, value)));
            }
        }
        assert_eq!(table.pop_first().unwrap(), None);
        assert_eq!(table.pop_last().unwrap(), None);
    }
}

#[test]
fn cursors_that_write_pairs_agree_with_a_set() {
    let mut rng = Rng::new(7);
    let db = memory(&Options::new().page_size(512));
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("m").unwrap();
    let mut model = BTreeSet::new();
    let pair = |rng: &mut Rng| {
        (
            vec![rng.below(5) as u8],
            rng.below(90).to_be_bytes().to_vec(),
        )
    };
    let mut edit = table.cursor_mut();
    for _ in 0..3000 {
        let to = pair(&mut rng);
        match rng.below(6) {
            0..3 => assert_eq!(edit.put(&to.0, &to.1).unwrap(), model.insert(to.clone())),
            3 => {
                let next = model.range(to.clone()..).next().cloned();
                assert_eq!(edit.seek_ge(&to.0, &to.1).unwrap(), next.is_some());
                if let Some(there) = next {
                    let (_, value) = pair(&mut rng);
                    edit.replace(&value).unwrap();
                    assert_eq!(edit.value(), value);
                    model.remove(&there);
                    model.insert((there.0, value));
                }
            }
            4 => {
                let last = model.range(..to.clone()).next_back().cloned();
                assert_eq!(edit.seek_lt(&to.0, &to.1).unwrap(), last.is_some());
                if let Some(there) = last {
                    assert!(edit.remove().unwrap() && model.remove(&there));
                    let next = model.range(there..).next().cloned();
                    assert_eq!(edit.next().unwrap(), next.is_some());
                    let here = edit
                        .is_at_entry()
                        .then(|| (edit.key().to_vec(), edit.value().to_vec()));
                    assert_eq!(here, next);
                }
            }
            _ if rng.one_in(10) && edit.seek_key(&to.0).unwrap() => {
                let before = model.len();
                model.retain(|pair| pair.0 != to.0);
                assert_eq!(edit.remove_all().unwrap(), (before - model.len()) as u64);
                let before = model.range(..to).next_back().cloned();
                assert_eq!(edit.previous().unwrap(), before.is_some());
            }
            _ => {}
        }
    }
    let values: Vec<[u8; 8]> = (0..200u64).map(u64::to_be_bytes).collect();
    let new = values
        .iter()
        .filter(|value| model.insert((vec![3], value.to_vec())))
        .count();
    assert_eq!(table.put_many(&[3], &values).unwrap(), new as u64);
    assert_eq!(table.put_many(&[3], &values).unwrap(), 0);
    let view = table.view().unwrap();
    assert!(view.range(..).unwrap().map(Result::unwrap).eq(model));
}

#[test]
fn typed_tables_have_ranges() {
    let db = memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.typed_table::<i64, String>("t").unwrap();
    for i in -50..50 {
        table.put(&i, &i.to_string()).unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.typed_table::<i64, String>("t").unwrap().unwrap();
    let found: Vec<_> = table
        .range(-3..2)
        .unwrap()
        .rev()
        .map(Result::unwrap)
        .collect();
    let expected: Vec<_> = (-3..2).rev().map(|i: i64| (i, i.to_string())).collect();
    assert_eq!(found, expected);
}

/// Results of all operations and the final content, encoded as bytes that can be compared.
#[derive(Default)]
struct Answers(Vec<u8>);

impl Answers {
    fn add(&mut self, answer: impl std::fmt::Debug) {
        use std::io::Write;
        writeln!(self.0, "{answer:?}").unwrap();
    }
}

fn words(rng: &mut Rng) -> Vec<Vec<u8>> {
    (0..rng.index(3))
        .map(|_| vec![b'p', rng.below(3) as u8])
        .collect()
}

/// Makes one random operation and records its result.
fn operation(tx: &mut WriteTxn, rng: &mut Rng, answers: &mut Answers) -> tidalite::Result<()> {
    let (k, other, path) = (key(rng), key(rng), words(rng));
    let value = vec![rng.below(256) as u8; rng.index(700)];
    let mut outer = tx.table("t")?;
    let mut t = outer.nested_at(&path);
    match rng.below(34) {
        0 => answers.add(t.put(&k, &value)?),
        1 => answers.add(t.insert(&k, &value)?),
        2 => answers.add(t.update(&k, &value)?),
        3 => answers.add(t.replace(&k, &value)?),
        4 => answers.add(t.take(&k)?),
        5 => answers.add(t.compare_and_set(&k, None, Some(&value))?),
        6 => {
            let now = t.get(&k)?;
            answers.add(t.compare_and_set(&k, now.as_deref(), Some(&other))?);
        }
        7 => answers.add(t.remove_if(&k, &value)?),
        8 => {
            let pairs: BTreeMap<_, _> = (0..rng.index(30))
                .map(|i| (key(rng), vec![i as u8]))
                .collect();
            answers.add(t.extend(pairs)?);
        }
        9 => answers.add(t.append(&k, &value).is_ok()),
        10 => answers.add(t.reserve(&k, value.len(), |bytes| bytes.fill(9))?),
        11 => answers.add(t.remove(&k)?),
        12 => answers.add(t.remove_range(k.clone().min(other.clone())..k.max(other))?),
        13 if rng.one_in(10) => t.clear()?,
        14 => answers.add(t.take_sequence(1 + rng.below(9))?),
        15 => answers.add((t.pop_first()?, t.pop_last()?)),
        16 => {
            let view = t.view().unwrap();
            let mut cursor = view.cursor();
            answers.add((view.count(), view.rank(&k)?, view.contains(&k)?));
            answers.add((
                cursor.seek_ge(&k)?,
                cursor.is_at_entry().then(|| cursor.key().to_vec()),
            ));
            answers.add((cursor.seek_lt(&k)?, cursor.on_first(), cursor.on_last()));
            answers.add((cursor.select(rng.below(40))?, cursor.eof()));
        }
        17 => {
            let view = t.view().unwrap();
            let ends = (bound(rng), bound(rng));
            answers.add(view.count_range(ends.clone())?);
            let keys = view.split(ends, 1 + rng.index(5))?;
            if path.is_empty() {
                answers.add(keys);
            }
        }
        18 => {
            let keys: Vec<_> = (0..20).map(|_| key(rng)).collect();
            let view = t.view().unwrap();
            let found = view.get_many(&keys)?;
            answers.add(
                found
                    .iter()
                    .map(|value| value.as_deref().map(<[u8]>::to_vec))
                    .collect::<Vec<_>>(),
            );
        }
        19 => {
            let point = tx.savepoint()?;
            tx.table("t")?.put(&k, b"gone again")?;
            tx.rollback_to(&point)?;
        }
        20 => {
            let done = tx.nested(|tx| {
                tx.set_table("m")?.put(&k, &value)?;
                tx.table("t")?.put(&k, &value)
            });
            answers.add(done?);
        }
        21 => {
            tx.drop_table("u")?;
            answers.add(tx.rename_table("t", "u")?);
            answers.add(tx.tables()?);
        }
        choice => {
            let k = vec![b'm', rng.below(5) as u8];
            let v = if rng.one_in(9) {
                other
            } else {
                rng.below(400).to_be_bytes().to_vec()
            };
            let mut m = tx.set_table("m")?;
            match choice {
                22..26 => answers.add(m.put(&k, &v)?),
                26 => answers.add(m.remove(&k, &v)?),
                27 => answers.add(m.update(&k, &v).map_err(|error| error.to_string())),
                28 => answers.add(m.replace(&k, &v, &value)?),
                29 => answers.add(m.take(&k).map_err(|error| error.to_string())),
                30 if rng.one_in(5) => answers.add(m.remove_all(&k)?),
                31 => answers.add(m.append_value(&k, &v).is_ok()),
                32 => answers.add(m.put_many(&k, &[&v, &value])?),
                _ => {
                    let view = m.view().unwrap();
                    answers.add((
                        view.get(&k)?,
                        view.count_of(&k)?,
                        view.rank(&k)?,
                        view.count_keys(),
                    ));
                    let mut c = view.cursor();
                    answers.add((
                        c.seek_ge(&k, &v)?,
                        c.is_at_entry().then(|| c.value().to_vec()),
                    ));
                    answers.add((c.next_key()?, c.previous_value()?, c.count()));
                }
            }
        }
    }
    Ok(())
}

fn all(db: &Database, answers: &mut Answers) {
    fn rows(table: &tidalite::Table<'_>, depth: usize, answers: &mut Answers) {
        let mut cursor = table.cursor();
        while cursor.next().unwrap() {
            answers.add((depth, cursor.key().to_vec()));
            match table.nested(cursor.key()) {
                Ok(Some(below)) => rows(&below, depth + 1, answers),
                _ => answers.add(cursor.value().unwrap()),
            }
        }
    }
    let snap = db.begin_read().unwrap();
    for name in snap.tables().unwrap() {
        answers.add(&name);
        match snap.is_set_table(&name).unwrap() {
            Some(true) => {
                let table = snap.set_table(&name).unwrap().unwrap();
                for pair in table.range(..).unwrap() {
                    answers.add(pair.unwrap());
                }
            }
            _ => {
                let table = snap.table(&name).unwrap().unwrap();
                answers.add(table.sequence());
                rows(&table, 0, answers);
            }
        }
    }
}

/// The same operations with different page sizes, memory limits, durability and ways of reading give the same results
/// and the same content.
#[test]
fn no_option_changes_an_answer() {
    tidalite_testkit::watch();
    let options = [
        (Options::new().page_size(512), Durability::Durable),
        (Options::new().page_size(4096), Durability::None),
        (Options::new().page_size(65_536), Durability::Lazy),
        (
            Options::new()
                .page_size(512)
                .tuning(Tuning::new().dirty_bytes(16 << 10)),
            Durability::None,
        ),
        (
            Options::new().page_size(1024).tuning(
                Tuning::new()
                    .verify(Verify::Always)
                    .growth_bytes(16 << 10, 16 << 10),
            ),
            Durability::OneFlush,
        ),
    ];
    for seed in 0..3 {
        println!("seed {seed}");
        let mut first: Option<Vec<u8>> = None;
        for (number, (options, durability)) in options.iter().enumerate() {
            let storage = Arc::new(MemoryStorage::new());
            let mut db = options.open_storage(storage.clone()).unwrap();
            let mut rng = Rng::new(40 + seed);
            let mut answers = Answers::default();
            for commit in 0..8 {
                let mut tx = db.begin_write().unwrap();
                for _ in 0..rng.index(150) {
                    match operation(&mut tx, &mut rng, &mut answers) {
                        Ok(()) => {}
                        Err(error) => {
                            // The operation found a value in place of a table, or the reverse.
                            answers.add(error.kind());
                        }
                    }
                }
                if commit % 3 == 2 {
                    drop(tx);
                } else {
                    tx.commit_with(*durability).unwrap();
                }
                // Half of the runs reopen the file, which must not change anything.
                if commit == 4 && number % 2 == 0 {
                    db.sync().unwrap();
                    drop(db);
                    db = options.open_storage(storage.clone()).unwrap();
                }
                all(&db, &mut answers);
            }
            assert!(db.check().unwrap().is_clean());
            match &first {
                None => first = Some(answers.0),
                Some(first) => {
                    let differ = first.iter().zip(&answers.0).position(|(a, b)| a != b);
                    let around = |bytes: &[u8], at: usize| {
                        let from = at.saturating_sub(300);
                        String::from_utf8_lossy(&bytes[from..bytes.len().min(at + 200)])
                            .into_owned()
                    };
                    if let Some(at) = differ {
                        panic!(
                            "options {number}:\n{}\n--- but:\n{}",
                            around(first, at),
                            around(&answers.0, at)
                        );
                    }
                    assert_eq!(first.len(), answers.0.len());
                }
            }
        }
    }
}
