//! Edge cases of tables: a nested table in place of a value, small nested tables, lengths beyond the limits, moves to
//! missing keys, pairs removed in ranges, cursors that are reused.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::table::CachedGet;
use tidalite::{Database, ErrorKind, Options, Result};
use tidalite_testkit::rng::Rng;

type Pair = (Vec<u8>, Vec<u8>);

fn small_pages() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

/// Checks that the error names the table and the key.
#[track_caller]
fn is_table<T: std::fmt::Debug>(answer: Result<T>, expected: &str) {
    let facts = answer
        .as_ref()
        .map_err(|error| (error.table(), error.key()));
    let expected = (Some("t"), Some(expected.as_bytes()));
    assert_eq!(facts.err(), Some(expected), "{answer:?}");
}

/// Asking for a value where there is a nested table is an error of its own, not damage. This holds in a table with
/// pages of its own and in a small nested table.
#[test]
fn a_nested_table_is_not_a_damaged_value() {
    for (rows, depth) in [(0, 0), (0, 1), (2, 1), (300, 0), (300, 1)] {
        let db = small_pages();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["in"][..depth]);
        for row in 0..rows {
            table.put(format!("k{row:04}").as_bytes(), b"v").unwrap();
        }
        for name in [b"a", b"z"] {
            table.nested(name).put(b"x", b"y").unwrap();
        }
        is_table(table.get(b"a"), "a");
        is_table(table.take(b"a"), "a");
        is_table(table.replace(b"a", b"new"), "a");
        is_table(table.compare_and_set(b"a", None, Some(b"new")), "a");
        is_table(table.remove_if(b"a", b"y"), "a");
        is_table(table.pop_first(), "a");
        is_table(table.pop_last(), "z");
        let mut edit = table.cursor_mut();
        assert!(edit.first().unwrap());
        is_table(edit.value(), "a");
        let view = table.view().unwrap();
        is_table(view.get(b"z"), "z");
        is_table(view.get_ref(b"z").map(drop), "z");
        is_table(view.read_value(b"z").map(drop), "z");
        is_table(view.get_many(&["none", "z"]).map(drop), "z");
        is_table(view.for_each(|_, _| ()), "a");
        let range = view.range("a"..).unwrap();
        is_table(range.map(|entry| entry.map(drop)).next().unwrap(), "a");
        let range = view.range("a"..).unwrap();
        is_table(range.map(|entry| entry.map(drop)).next_back().unwrap(), "z");
        let mut cursor = view.cursor();
        assert!(cursor.seek(b"z").unwrap() && cursor.is_nested());
        is_table(cursor.value(), "z");
        assert_eq!(cursor.value_ref(), None);
        assert!(view.contains(b"z").unwrap());
        assert_eq!(view.get(b"none").unwrap(), None);
        assert_eq!(view.count(), rows + 2);
    }
}

/// A write that would replace a nested table with a value is refused. The nested table and earlier writes remain, and
/// the extent of the refused long value is freed.
#[test]
fn a_nested_table_is_not_written_over() {
    for (rows, depth) in [(0, 0), (0, 1), (2, 1), (300, 0), (300, 1)] {
        let db = small_pages();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["in"][..depth]);
        let filler = (0..rows).map(|row| (format!("k{row:04}"), "v"));
        table.extend(filler).unwrap();
        table.nested(b"small").put(b"x", b"y").unwrap();
        let many = (0..200u32).map(|row| (row.to_be_bytes(), [7; 20]));
        table.nested(b"large").extend(many).unwrap();
        tx.commit().unwrap();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["in"][..depth]);
        let long = [1; 3000];
        for name in ["small", "large"] {
            let key = name.as_bytes();
            for value in [&b""[..], b"short", &[2; 60], &long] {
                is_table(table.put(key, value), name);
                is_table(table.update(key, value), name);
                is_table(table.replace(key, value), name);
                is_table(table.cursor_mut().put(key, value), name);
                is_table(table.reserve(key, value.len(), |_| ()), name);
                assert!(!table.insert(key, value).unwrap());
            }
            let before = format!("before {name}");
            let pairs = [(&before[..], &long[..]), (name, &long[..]), ("never", &[])];
            is_table(table.extend(pairs), name);
            assert_eq!(table.get(before.as_bytes()).unwrap().unwrap(), long);
            assert_eq!(table.get(b"never").unwrap(), None);
        }
        let mut typed = table.typed::<u64, u64>();
        typed.bytes().nested(&7u64.to_be_bytes()).make().unwrap();
        let refused = typed.put(&7, &8);
        assert!(
            matches!(refused, Err(ref error) if error.kind() == ErrorKind::WrongType),
            "{refused:?}"
        );
        // The transaction can continue.
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["in"][..depth]);
        assert_eq!(table.view().unwrap().count(), rows + 5);
        assert_eq!(table.nested(b"small").get(b"x").unwrap().unwrap(), b"y");
        assert_eq!(table.nested(b"large").view().unwrap().count(), 200);
        tx.commit().unwrap();
        let report = db.check().unwrap();
        assert!(report.is_clean(), "{report:?}");
        // The nested table must be removed explicitly before a value can take its place.
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut table = table.nested_at(&["in"][..depth]);
        for name in [b"small", b"large"] {
            assert!(table.remove(name).unwrap() && table.put(name, &long).unwrap());
        }
        tx.commit().unwrap();
        assert!(db.check().unwrap().is_clean());
    }
}

/// Errors of reads name the table, too, whether it was looked up in the catalog or taken from the cache.
#[test]
fn errors_of_reading_name_the_table() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    tx.table("t")
        .unwrap()
        .nested(b"n")
        .nested(b"k")
        .make()
        .unwrap();
    tx.table("t").unwrap().put(b"v", b"").unwrap();
    let uncommitted = tx.reader().unwrap();
    is_table(uncommitted.table("t").unwrap().unwrap().get(b"n"), "n");
    let view = tx.view_table("t").unwrap().unwrap();
    is_table(view.nested(b"n").unwrap().unwrap().get(b"k"), "k");
    tx.commit().unwrap();
    let tx = db.begin_write().unwrap();
    let view = tx.view_table("t").unwrap().unwrap();
    is_table(view.get(b"n"), "n");
    let evictable = db.begin_read_evictable().unwrap();
    is_table(evictable.table("t").unwrap().unwrap().get(b"n"), "n");
    // The first snapshot of a commit looks up the table; the others have it cached.
    for _ in 0..2 {
        let snap = db.begin_read().unwrap();
        let table = snap.table("t").unwrap().unwrap();
        is_table(CachedGet::new(b"n").get(&table), "n");
        is_table(table.get_many(&["v", "n"]).map(drop), "n");
        let mut cursor = table.cursor();
        assert!(cursor.first().unwrap());
        let nested = cursor.nested().unwrap().unwrap();
        is_table(nested.for_each(|_, _| ()), "k");
        cursor.renew(&nested);
        assert!(cursor.next().unwrap());
        is_table(cursor.value(), "k");
    }
}

#[test]
fn small_nested_tables_are_cut_into_parts_and_appended_to() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for rows in [0u32, 1, 10, 500] {
        let name = rows.to_be_bytes();
        let mut nested = table.nested(&name);
        for row in 0..rows {
            nested.append(&row.to_be_bytes(), b"v").unwrap();
            let again = nested.append(&row.to_be_bytes(), b"w");
            assert!(
                matches!(again, Err(ref error) if error.kind() == ErrorKind::OutOfOrder),
                "{again:?}"
            );
        }
        let Some(view) = nested.try_view().unwrap() else {
            assert_eq!(rows, 0);
            continue;
        };
        assert_eq!(view.count(), u64::from(rows));
        for parts in [1, 2, 3, usize::MAX] {
            let cuts = view.split(.., parts).unwrap();
            assert_eq!(cuts.len(), parts.min(rows as usize) - 1);
            let mut begin = Bound::Unbounded;
            let mut sizes = Vec::new();
            for cut in &cuts {
                let part = (begin, Bound::Excluded(cut.clone()));
                sizes.push(view.count_range(part).unwrap());
                begin = Bound::Included(cut.clone());
            }
            sizes.push(view.count_range((begin, Bound::Unbounded)).unwrap());
            assert_eq!(sizes.iter().sum::<u64>(), u64::from(rows));
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(most - least <= 1, "{sizes:?}");
        }
    }
}

#[test]
fn a_count_costs_a_descent_for_each_bound() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    let rows = (0..2000u32).map(|row| (row.to_be_bytes(), [7; 20]));
    table.extend(rows).unwrap();
    let levels = u64::from(table.view().unwrap().shape().unwrap().depth);
    tx.commit().unwrap();
    assert!(levels > 2);
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    let reads = || {
        let read = &snap.counters().pages_read;
        read.load(std::sync::atomic::Ordering::Relaxed)
    };
    let (from, to) = (100u32.to_be_bytes(), 1900u32.to_be_bytes());
    for (ends, bounds, count) in [
        ((Bound::Unbounded, Bound::Unbounded), 0, 2000),
        ((Bound::Included(from), Bound::Unbounded), 1, 1900),
        ((Bound::Included(from), Bound::Excluded(to)), 2, 1800),
        ((Bound::Excluded(from), Bound::Included(to)), 2, 1800),
        ((Bound::Excluded(from), Bound::Excluded(to)), 2, 1799),
        ((Bound::Excluded(to), Bound::Excluded(from)), 2, 0),
    ] {
        let before = reads();
        assert_eq!(table.count_range(ends).unwrap(), count);
        assert_eq!(reads() - before, bounds * levels, "{ends:?}");
    }
}

#[test]
fn lengths_beyond_the_limits_are_refused_before_memory_is_taken() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for most in [usize::MAX, (4 << 30) + 1] {
        let fill = |_: &mut [u8]| panic!("nothing to fill");
        let refused = table.reserve(b"k", most, fill);
        assert!(
            matches!(refused, Err(ref error) if error.kind() == ErrorKind::Limit),
            "{refused:?}"
        );
        let refused = table.nested(b"n").reserve(b"k", most, fill);
        assert!(
            matches!(refused, Err(ref error) if error.kind() == ErrorKind::Limit),
            "{refused:?}"
        );
    }
    assert_eq!(table.view().unwrap().count(), 0);
    assert!(table.reserve(b"k", 0, |bytes| bytes.fill(1)).unwrap());
    assert_eq!(table.get(b"k").unwrap(), Some(Vec::new()));
}

#[test]
fn ranges_of_pairs_are_removed_as_from_a_set() {
    let mut rng = Rng::new(61);
    for round in 0..60 {
        let db = small_pages();
        let mut model = BTreeSet::<Pair>::new();
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.set_table("m").unwrap();
        let pair = |rng: &mut Rng| {
            let key = vec![b'k'; rng.index(3)];
            (
                key,
                (rng.below(300) as u16).to_be_bytes()[rng.index(2)..].to_vec(),
            )
        };
        for _ in 0..rng.index(600) {
            let (key, value) = pair(&mut rng);
            table.put(&key, &value).unwrap();
            model.insert((key, value));
        }
        let mut bound = || match rng.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(pair(&mut rng)),
            _ => Bound::Excluded(pair(&mut rng)),
        };
        let range = (bound(), bound());
        let keys = (
            range.0.as_ref().map(|pair| pair.0.clone()),
            range.1.as_ref().map(|pair| pair.0.clone()),
        );
        let before = model.len();
        let removed = if round % 2 == 0 {
            model.retain(|pair| !std::ops::RangeBounds::contains(&range, pair));
            table.remove_range_of_pairs(range.clone())
        } else {
            model.retain(|pair| !std::ops::RangeBounds::contains(&keys, &pair.0));
            table.remove_range(keys)
        };
        assert_eq!(removed.unwrap(), (before - model.len()) as u64, "{range:?}");
        assert!(model.is_empty() || table.is_dirty(b"k").unwrap());
        let distinct: BTreeSet<_> = model.iter().map(|pair| &pair.0).collect();
        assert_eq!(table.view().unwrap().count_keys(), distinct.len() as u64);
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.set_table("m").unwrap().unwrap();
        let found: Vec<Pair> = table.range(..).unwrap().map(Result::unwrap).collect();
        assert!(found.iter().eq(&model));
        let problems = db.check().unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn seeks_to_missing_keys_skip_no_entry() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("m").unwrap();
    for (key, values) in [
        (b"a", &["1", "3", "5"][..]),
        (b"c", &["2"]),
        (b"e", &["1", "9"]),
    ] {
        table.put_many(key, values).unwrap();
    }
    let view = table.view().unwrap();
    let mut cursor = view.cursor();
    macro_rules! is {
        ($move:ident($($arg:expr),*), $found:expr, $at:expr) => {
            assert_eq!(cursor.$move($($arg),*).unwrap(), $found);
            let at = cursor.is_at_entry().then(|| [cursor.key(), cursor.value()].concat());
            assert_eq!(at.as_deref(), $at.map(str::as_bytes));
        };
    }
    is!(seek(b"a", b"2"), false, Some("a3"));
    is!(next(), true, Some("a5"));
    is!(seek(b"a", b"9"), false, Some("c2"));
    is!(previous(), true, Some("a5"));
    is!(seek_key(b"b"), false, Some("c2"));
    is!(seek_key(b"f"), false, None::<&str>);
    is!(previous(), true, Some("e9"));
    is!(seek_key_gt(b"a"), true, Some("c2"));
    is!(seek_key_le(b"b"), true, Some("a5"));
    is!(seek_key_le(b"a"), true, Some("a5"));
    is!(seek_key_lt(b"a"), false, None::<&str>);
    is!(next(), true, Some("a1"));
    is!(seek_value_ge(b"a", b"6"), false, Some("c2"));
    is!(seek_value_gt(b"a", b"3"), true, Some("a5"));
    is!(seek_value_gt(b"a", b"5"), false, Some("c2"));
    is!(seek_value_le(b"e", b"8"), true, Some("e1"));
    is!(seek_value_le(b"e", b"0"), false, Some("c2"));
    is!(seek_value_lt(b"e", b"1"), false, Some("c2"));
    is!(seek_value_lt(b"d", b"1"), false, Some("c2"));
    is!(select_value(b"a", 3), false, Some("c2"));
    is!(select_value(b"e", 1), true, Some("e9"));
    is!(next(), false, None::<&str>);
    assert!(cursor.eof());
}

#[test]
fn cursors_go_on_in_other_tables_and_snapshots() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"a", b"old").unwrap();
    tx.table("t")
        .unwrap()
        .nested(b"n")
        .put(b"in", b"x")
        .unwrap();
    tx.set_table("m").unwrap().put(b"k", b"1").unwrap();
    tx.commit().unwrap();
    let (before, mut tx) = (db.begin_read().unwrap(), db.begin_write().unwrap());
    tx.table("t").unwrap().put(b"a", b"new").unwrap();
    tx.set_table("m").unwrap().put(b"k", b"0").unwrap();
    tx.commit().unwrap();
    let after = db.begin_read().unwrap();
    let tables = [&before, &after].map(|snap| snap.table("t").unwrap().unwrap());
    let nested = tables[0].nested(b"n").unwrap().unwrap();
    let mut cursor = tables[0].cursor();
    assert!(cursor.last().unwrap() && cursor.is_nested());
    for (table, key, value) in [
        (&nested, "in", "x"),
        (&tables[1], "a", "new"),
        (&tables[0], "a", "old"),
    ] {
        cursor.renew(table);
        assert!(!cursor.is_at_entry() && cursor.next().unwrap());
        assert_eq!(cursor.key(), key.as_bytes());
        assert_eq!(cursor.value().unwrap(), value.as_bytes());
    }
    let pairs = [&before, &after].map(|snap| snap.set_table("m").unwrap().unwrap());
    let mut cursor = pairs[0].cursor();
    assert!(cursor.last().unwrap());
    cursor.renew(&pairs[1]);
    assert!(!cursor.is_at_entry() && cursor.next().unwrap() && cursor.value() == b"0");
}

#[test]
fn values_before_the_one_here_come_in_batches_too() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.set_table("m").unwrap();
    let values: Vec<[u8; 2]> = (0..300u16).map(u16::to_be_bytes).collect();
    table.put_many(b"k", &values).unwrap();
    table.put(b"a", b"before").unwrap();
    let view = table.view().unwrap();
    let mut cursor = view.cursor();
    assert!(cursor.last().unwrap());
    let mut taken = Vec::new();
    loop {
        let batch = cursor.previous_values(7).unwrap();
        if batch.is_empty() {
            break;
        }
        assert_eq!(cursor.value(), batch[0]);
        taken.splice(0..0, batch);
    }
    assert!(taken.iter().eq(&values[..299]));
    assert!(cursor.on_first_value() && cursor.key() == b"k");
    assert!(cursor.previous_values(0).unwrap().is_empty());
}

#[test]
fn typed_tables_are_changed_as_others_are() {
    let db = small_pages();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.typed_table::<f64, (u64, String)>("t").unwrap();
    let value = |n: u64| (n, format!("v{n}"));
    assert!(!table.update(&0.5, &value(1)).unwrap());
    assert!(table.insert(&0.5, &value(1)).unwrap());
    assert!(!table.insert(&0.5, &value(2)).unwrap());
    assert!(table.update(&0.5, &value(u64::MAX)).unwrap());
    assert_eq!(
        table.replace(&0.5, &value(3)).unwrap(),
        Some(value(u64::MAX))
    );
    for key in [f64::NEG_INFINITY, -0.0, 0.0, f64::INFINITY, f64::NAN] {
        assert_eq!(table.replace(&key, &value(4)).unwrap(), None);
    }
    let view = table.view().unwrap();
    assert_eq!((view.count(), view.contains(&0.25).unwrap()), (6, false));
    assert_eq!(view.first().unwrap(), Some((f64::NEG_INFINITY, value(4))));
    assert!(view.last().unwrap().unwrap().0.is_nan());
    assert_eq!(table.remove_range(-0.0..=0.5).unwrap(), 3);
    assert_eq!(table.take(&f64::INFINITY).unwrap(), Some(value(4)));
    assert_eq!(table.take(&f64::INFINITY).unwrap(), None);
    assert_eq!(table.view().unwrap().count(), 2);
    table.bytes().put(b"no float", b"").unwrap();
    assert!(table.view().unwrap().iter().any(|entry| entry.is_err()));
}
