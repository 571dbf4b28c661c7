//! Calls that are refused, or have nothing to store, change nothing: they create no nested table, no entry, no page.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options, Result, SetTableMut, Steps, TableMut};
use tidalite_kv::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use tidalite_testkit::rng::Rng;

const NONE: [(&[u8], &[u8]); 0] = [];

fn memory(page_size: usize) -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::new().page_size(page_size);
    options.open_storage(storage).unwrap()
}

/// A key that is one byte too long.
fn long() -> Vec<u8> {
    vec![0; KEY_BYTES_MAX + 1]
}

type Call = (&'static str, fn(&mut TableMut<'_>, &[u8]) -> Result<()>);

/// Every call that writes to a table, each with a key or value that is too long, or with nothing to write. Each
/// function returns `Ok` if the call was not refused.
const CALLS: [Call; 30] = [
    ("put", |t, long| t.put(long, b"v").map(drop)),
    ("insert", |t, long| t.insert(long, b"v").map(drop)),
    ("update", |t, long| t.update(long, b"v").map(drop)),
    ("update none", |t, _| t.update(b"none", b"v").map(drop)),
    ("replace", |t, long| t.replace(long, b"v").map(drop)),
    ("take", |t, long| t.take(long).map(drop)),
    ("take none", |t, _| t.take(b"none").map(drop)),
    ("compare_and_set", |t, long| {
        t.compare_and_set(long, None, Some(b"v")).map(drop)
    }),
    ("compare_and_set other", |t, _| {
        t.compare_and_set(b"none", Some(b"u"), Some(b"v")).map(drop)
    }),
    ("compare_and_set none", |t, _| {
        t.compare_and_set(b"none", None, None).map(drop)
    }),
    ("remove_if", |t, long| t.remove_if(long, b"v").map(drop)),
    ("extend nothing", |t, _| t.extend(NONE).map(drop)),
    ("extend", |t, long| t.extend([(long, b"v")]).map(drop)),
    ("append", |t, long| t.append(long, b"v")),
    ("reserve key", |t, long| {
        t.reserve(long, 3, |_| panic!("not filled")).map(drop)
    }),
    ("reserve value", |t, _| {
        let len = usize::try_from(VALUE_BYTES_MAX).unwrap() + 1;
        t.reserve(b"none", len, |_| panic!("not filled")).map(drop)
    }),
    ("remove", |t, long| t.remove(long).map(drop)),
    ("remove none", |t, _| t.remove(b"none").map(drop)),
    ("remove_range", |t, _| {
        t.remove_range(&b"none"[..]..&b"nonf"[..]).map(drop)
    }),
    ("retain", |t, _| t.retain(.., |_, _| true).map(drop)),
    ("take_sequence", |t, _| t.take_sequence(0).map(drop)),
    ("pop_first of none", |t, _| {
        t.nested(b"none").pop_first().map(drop)
    }),
    ("pop_last of none", |t, _| {
        t.nested(b"none").pop_last().map(drop)
    }),
    ("clear of none", |t, _| t.nested(b"none").clear()),
    ("edit put", |t, long| {
        t.cursor_mut().put(long, b"v").map(drop)
    }),
    ("edit remove", |t, _| t.cursor_mut().remove().map(drop)),
    ("nested put", |t, long| {
        t.nested(b"none").put(long, b"v").map(drop)
    }),
    ("put nested under a long key", |t, long| {
        t.nested(long).put(b"k", b"v").map(drop)
    }),
    ("make nested under a long key", |t, long| {
        t.nested_at(&[b"none", long]).make()
    }),
    ("put too deep", |t, _| {
        t.nested_at(&[b"none"; 64]).put(b"k", b"v").map(drop)
    }),
];

/// The contents of a table, with its nested tables.
fn entries(table: &tidalite::Table<'_>) -> Vec<(Vec<u8>, Option<Vec<u8>>, u64)> {
    let mut cursor = table.cursor();
    let mut all = Vec::new();
    while cursor.next().unwrap() {
        let key = cursor.key().to_vec();
        let nested = table.nested(&key);
        match nested {
            Ok(Some(nested)) => all.push((key, None, nested.count())),
            _ => all.push((key, table.get(cursor.key()).unwrap(), 0)),
        }
    }
    all
}

#[test]
fn refused_and_empty_calls_make_no_nested_table() {
    let long = long();
    for page_size in [512, 4096] {
        for seed in 0..4 {
            println!("page size {page_size} seed {seed}");
            let mut rng = Rng::new(seed);
            let db = memory(page_size);
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.table("t").unwrap();
            for key in 0..rng.below(60) as u8 {
                let value = vec![key; rng.index(40)];
                match rng.below(3) {
                    0 => table.nested(&[key]).put(b"k", &value).unwrap(),
                    1 => table
                        .nested_at(&[&[key], &b"in"[..]])
                        .put(b"k", &value)
                        .unwrap(),
                    _ => table.put(&[key], &value).unwrap(),
                };
            }
            // The parent table is absent, small, or large enough for pages of its own. The calls would create nested
            // tables in it.
            for key in 0..rng.below(400) as u32 {
                table
                    .nested(b"parent")
                    .put(&key.to_be_bytes(), b"value")
                    .unwrap();
            }
            tx.commit().unwrap();
            let used = |db: &Database| {
                let stat = db.stat().unwrap();
                stat.pages_total - stat.pages_free - stat.pages_pending
            };
            let (base, pages) = (db.begin_read().unwrap(), used(&db));
            let before = base.table("t").unwrap().unwrap();
            let mut tx = db.begin_write().unwrap();
            let mut table = tx.table("t").unwrap();
            for path in [
                &[&b"new"[..]][..],
                &[b"parent", b"new"],
                &[b"new", b"newer"],
            ] {
                for (what, call) in CALLS {
                    let refused = call(&mut table.nested_at(path), &long);
                    let is_refused =
                        matches!(refused, Err(ref error) if error.kind() == ErrorKind::Limit);
                    assert!(is_refused || refused.is_ok(), "{what}: {refused:?}");
                    let made = table.nested_at(path).try_view().unwrap().is_some();
                    assert!(!made, "{what} at {path:?} made a table");
                    let view = table.view().unwrap();
                    assert_eq!(view.count(), before.count(), "{what} at {path:?}");
                    assert_eq!(entries(&view), entries(&before), "{what} at {path:?}");
                }
            }
            // The same calls to existing tables change no entry.
            for (what, call) in CALLS.iter().filter(|(what, _)| !what.starts_with("pop")) {
                let mut parent = table.nested(b"parent");
                let entries_before = entries(&parent.view().unwrap());
                let _ = call(&mut parent, &long);
                assert_eq!(entries(&parent.view().unwrap()), entries_before, "{what}");
            }
            tx.commit().unwrap();
            // The commit has copied the pages that it touched; the next commits free the old copies.
            db.begin_write().unwrap().commit().unwrap();
            drop(base);
            db.begin_write().unwrap().commit().unwrap();
            assert_eq!(used(&db), pages, "pages in use");
            assert!(db.check().unwrap().is_clean());
        }
    }
}

/// A call that stores some rows and is then refused does create its table; so does `make`.
#[test]
fn rows_stored_before_a_refusal_create_the_table() {
    let (db, long) = (memory(512), long());
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    let pairs = [(&b"a"[..], b"1"), (b"b", b"2"), (&long, b"3")];
    let refused = table.nested_at(&["x", "y"]).extend(pairs);
    assert!(matches!(refused, Err(ref error) if error.kind() == ErrorKind::Limit));
    assert_eq!(table.nested_at(&["x", "y"]).view().unwrap().count(), 2);
    assert_eq!(table.nested(b"seq").take_sequence(3).unwrap(), 0);
    assert_eq!(table.nested(b"seq").take_sequence(0).unwrap(), 3);
    table.nested_at(&["made", "empty"]).make().unwrap();
    assert!(
        table
            .nested(b"full")
            .reserve(b"k", 2, |bytes| bytes.fill(7))
            .unwrap()
    );
    assert!(
        table
            .nested(b"set")
            .compare_and_set(b"k", None, Some(b"v"))
            .unwrap()
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    let keys: Vec<Vec<u8>> = entries(&table).into_iter().map(|entry| entry.0).collect();
    assert_eq!(
        keys,
        ["full", "made", "seq", "set", "x"].map(|key| key.as_bytes().to_vec())
    );
    assert!(
        table
            .nested(b"made")
            .unwrap()
            .unwrap()
            .nested(b"empty")
            .unwrap()
            .is_some()
    );
    assert!(db.check().unwrap().is_clean());
}

type MultiCall = (&'static str, fn(&mut SetTableMut<'_>, &[u8]) -> Result<()>);

#[test]
fn refused_and_empty_calls_store_no_pair() {
    const CALLS: [MultiCall; 22] = [
        ("put key", |t, long| t.put(long, b"v").map(drop)),
        ("put value", |t, long| t.put(b"new", long).map(drop)),
        ("put_many nothing", |t, _| {
            t.put_many::<&[u8]>(b"new", &[]).map(drop)
        }),
        ("put_many key", |t, long| {
            t.put_many(long, &[b"v"]).map(drop)
        }),
        ("put_many value", |t, long| {
            t.put_many(b"new", &[b"v", long]).map(drop)
        }),
        ("extend nothing", |t, _| t.extend(NONE).map(drop)),
        ("extend key", |t, long| t.extend([(long, b"v")]).map(drop)),
        ("extend value", |t, long| {
            t.extend([(b"new", long)]).map(drop)
        }),
        ("append key", |t, long| t.append(long, b"v")),
        ("append value", |t, long| t.append(b"zzz", long)),
        ("append_value value", |t, long| t.append_value(b"new", long)),
        ("append_value key", |t, long| t.append_value(long, b"v")),
        ("insert", |t, long| t.insert(b"new", long).map(drop)),
        ("update", |t, _| t.update(b"new", b"v").map(drop)),
        ("replace", |t, long| t.replace(b"a", b"1", long).map(drop)),
        ("replace none", |t, _| {
            t.replace(b"a", b"none", b"v").map(drop)
        }),
        ("remove", |t, _| t.remove(b"a", b"none").map(drop)),
        ("remove_all", |t, _| t.remove_all(b"new").map(drop)),
        ("take", |t, _| t.take(b"new").map(drop)),
        ("take_sequence", |t, _| t.take_sequence(0).map(drop)),
        ("edit put", |t, long| {
            t.cursor_mut().put(b"new", long).map(drop)
        }),
        ("edit replace", |t, long| {
            let mut edit = t.cursor_mut();
            assert!(edit.first()?);
            edit.replace(long)
        }),
    ];
    let long = long();
    for sets in [1u32, 300] {
        let db = memory(512);
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.set_table("m").unwrap();
        for value in 0..sets {
            table.put(b"a", &value.to_be_bytes()).unwrap();
        }
        table.put_many(b"a", &[b"1"]).unwrap();
        table.put(b"b", b"1").unwrap();
        for (what, call) in CALLS {
            let pairs = |table: &SetTableMut<'_>| {
                let view = table.view().unwrap();
                let all = view.range(..).unwrap();
                all.collect::<Result<Vec<_>>>().unwrap()
            };
            let before = pairs(&table);
            let refused = call(&mut table, &long);
            let is_refused = matches!(refused, Err(ref error) if error.kind() == ErrorKind::Limit);
            assert!(is_refused || refused.is_ok(), "{what}: {refused:?}");
            assert_eq!(pairs(&table), before, "{what}");
            assert_eq!(table.view().unwrap().count_keys(), 2, "{what}");
        }
        tx.commit().unwrap();
        assert!(db.check().unwrap().is_clean());
    }
}

/// A refused call of a typed table creates no table either.
#[test]
fn a_typed_table_is_not_made_by_a_refused_call() {
    let db = memory(512);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    let mut typed = table.nested(b"typed").typed::<String, u64>();
    assert!(typed.put(&"x".repeat(KEY_BYTES_MAX + 1), &1).is_err());
    typed.extend(Vec::<(String, u64)>::new()).unwrap();
    assert_eq!(table.view().unwrap().count(), 0);
}

/// The error for a window width that is too small states the lower bound.
#[test]
fn a_window_without_a_width_has_a_clear_error() {
    let db = memory(4096);
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("s").unwrap();
    series.insert(Steps(1), 1.0).unwrap();
    let view = series.view().unwrap();
    for width in [0, -1, i64::MIN] {
        let error = view.query(..).windows(Steps(width), "value").unwrap_err();
        assert!(
            error.limit().is_some_and(|(found, _)| found == 0),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(
            text.contains("0 is too small") && text.contains("at least 1"),
            "{text}"
        );
    }
}
