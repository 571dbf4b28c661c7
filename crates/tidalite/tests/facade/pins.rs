//! Pins: old versions stay readable, and changes since then can be listed.

use crate::common::{Content, Folder, assert_clean, content_of, in_memory};
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite::maintenance::Change;
use tidalite::{Database, ErrorKind, Options, ReadTxn, Steps, Timestamp, Tuning};
use tidalite_testkit::rng::Rng;

/// Commits a random transaction over three tables and six series.
fn change(db: &Database, rng: &mut Rng, step: i64) {
    let mut tx = db.begin_write().unwrap();
    for _ in 0..rng.index(4) {
        let name = *rng.pick(&["a", "b", "c"]);
        let mut table = tx.table(name).unwrap();
        if rng.one_in(20) {
            table.clear().unwrap();
        }
        for _ in 0..rng.index(60) {
            let key = format!("k{:04}", rng.below(600));
            match rng.below(4) {
                0 => drop(table.remove(key.as_bytes()).unwrap()),
                1 => {
                    let len = 2000 + rng.index(9000);
                    table.put(key.as_bytes(), &vec![step as u8; len]).unwrap();
                }
                _ => drop(table.put(key.as_bytes(), &step.to_le_bytes()).unwrap()),
            }
        }
    }
    for _ in 0..rng.index(4) {
        let name = format!("s{}", rng.below(6));
        let mut series = tx.series(&name).unwrap();
        let from = rng.below(4000) as i64;
        match rng.below(6) {
            0 => drop(series.delete(Steps(from)..Steps(from + 500)).unwrap()),
            1 => {
                for i in 0..1500 {
                    series
                        .insert_point(Steps(from + i), 0, step as f64)
                        .unwrap();
                }
            }
            _ => {
                for _ in 0..rng.index(30) {
                    let t = rng.below(6000) as i64;
                    series.insert_point(Steps(t), 1, step as f64 + 0.5).unwrap();
                }
            }
        }
    }
    tx.commit().unwrap();
}

/// Applies every change of the diff to the content of the base, and returns the result.
fn patched(base: &Content, new: &ReadTxn, at: &ReadTxn) -> Content {
    let mut content = base.clone();
    let fresh = content_of(new).unwrap();
    let mut last: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    new.diff(at, &mut |change| {
        match change {
            Change::TableCreated(name) => {
                content.tables.insert(name.into(), BTreeMap::new());
            }
            Change::TableDropped(name) => {
                content.tables.remove(name);
            }
            Change::Inserted { table, key, .. } | Change::Changed { table, key, .. } => {
                let value = fresh.tables[table][key].clone();
                let pairs = content.tables.get_mut(table).unwrap();
                let old = pairs.insert(key.to_vec(), value.clone());
                assert_eq!(old.is_some(), matches!(change, Change::Changed { .. }));
                assert!(old != Some(value), "the value did not change");
                let before = last.insert(table.into(), key.to_vec());
                assert!(
                    before.is_none_or(|before| before.as_slice() < key),
                    "keys ascend"
                );
            }
            Change::Removed { table, key, .. } => {
                let old = content.tables.get_mut(table).unwrap().remove(key);
                assert!(old.is_some() && !fresh.tables[table].contains_key(key));
            }
            Change::SeriesCreated(info) => {
                content.series.insert(info.label(), BTreeMap::new());
            }
            Change::Rows { series, from, to } => {
                let rows = content.series.get_mut(&series.label()).unwrap();
                let theirs = &fresh.series[&series.label()];
                let old: Vec<i64> = rows.range(from..=to).map(|(t, _)| *t).collect();
                for t in old {
                    let gone = rows.remove(&t);
                    assert!(theirs.get(&t) != gone.as_ref(), "{t} did not change");
                }
                rows.extend(
                    theirs
                        .range(from..=to)
                        .map(|(t, words)| (*t, words.clone())),
                );
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    })
    .unwrap();
    content
}

#[test]
fn pinned_versions_stay_and_diffs_lead_from_one_to_the_next() {
    for seed in 0..3 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let folder = Folder::new("pins");
        let path = folder.file("a.tdl");
        let options = Options::new().page_size(1024);
        let mut db = options.open(&path).unwrap();
        let mut pinned: BTreeMap<String, Content> = BTreeMap::new();
        for step in 0..60 {
            change(&db, &mut rng, step);
            if rng.one_in(6) {
                let name = format!("p{}", rng.below(8));
                db.pin(&name).unwrap();
                let content = content_of(&db.begin_read().unwrap()).unwrap();
                pinned.insert(name, content);
            }
            if rng.one_in(10) {
                let name = format!("p{}", rng.below(8));
                assert_eq!(db.unpin(&name).unwrap(), pinned.remove(&name).is_some());
            }
            if rng.one_in(12) {
                drop(db);
                db = options.open(&path).unwrap();
            }
        }
        let names: Vec<String> = db.pins().unwrap().into_iter().map(|pin| pin.name).collect();
        assert_eq!(names.len(), pinned.len());
        let newest = db.begin_read().unwrap();
        let content = content_of(&newest).unwrap();
        for (name, expected) in &pinned {
            let then = db.begin_read_at(name).unwrap();
            assert!(content_of(&then).unwrap() == *expected, "{name}");
            assert!(patched(expected, &newest, &then) == content, "{name}");
        }
        drop(newest);
        assert_clean(&db);
        let report = db.check().unwrap();
        assert_eq!(report.pins, pinned.len() as u64);
        // Once the pins are removed, all pages that they retained become free.
        for name in &names {
            assert!(db.unpin(name).unwrap());
        }
        for step in 0..6 {
            change(&db, &mut rng, step);
        }
        assert_clean(&db);
        let stat = db.stat().unwrap();
        assert!(stat.pages_pending < 400, "{stat:?}");
    }
}

#[test]
fn a_read_of_a_pin_outlives_the_pin() {
    let db = in_memory(&Options::new());
    let put = |value: &[u8]| {
        let mut tx = db.begin_write().unwrap();
        tx.table("t").unwrap().put(b"key", value).unwrap();
        tx.commit().unwrap();
    };
    put(b"one");
    let pinned = db.pin("then").unwrap();
    put(b"two");
    let then = db.begin_read_at("then").unwrap();
    assert_eq!(then.txn(), pinned);
    assert!(db.unpin("then").unwrap() && !db.unpin("then").unwrap());
    for i in 0..50u8 {
        put(&[i; 3000]);
    }
    let table = then.table("t").unwrap().unwrap();
    assert_eq!(table.get(b"key").unwrap().unwrap(), b"one");
    let gone = db.begin_read_at("then").map(|_| ());
    assert!(
        matches!(gone, Err(ref error) if error.kind() == ErrorKind::NotFound),
        "{gone:?}"
    );
    assert_clean(&db);
}

/// The diff of a small change beside many unchanged rows reads only what has changed.
#[test]
fn a_diff_reads_only_what_changed() {
    let db = in_memory(&Options::new());
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for i in 0..40_000u32 {
        table.put(&i.to_be_bytes(), &[7; 40]).unwrap();
    }
    for s in 0..20 {
        let mut series = tx.series(&format!("s{s}")).unwrap();
        for t in 0..20_000 {
            series
                .insert_point(Steps(t), 0, (t % 977) as f64 * 1.1)
                .unwrap();
        }
    }
    tx.commit().unwrap();
    db.pin("base").unwrap();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    table.put(&7_000u32.to_be_bytes(), b"new").unwrap();
    let mut series = tx.series("s7").unwrap();
    series.insert_point(Steps(30_000), 0, 1.0).unwrap();
    tx.series("s8")
        .unwrap()
        .delete(Steps(100)..Steps(200))
        .unwrap();
    tx.commit().unwrap();
    let (new, base) = (db.begin_read().unwrap(), db.begin_read_at("base").unwrap());
    let mut told = Vec::new();
    new.diff(&base, &mut |change| {
        told.push(format!("{change:?}"));
        Ok(())
    })
    .unwrap();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert!(told[0].starts_with("Changed { table: \"t\""), "{told:#?}");
    assert!(told[1].contains("from: 30000, to: 30000"), "{told:#?}");
    assert!(told[2].contains("from: 100, to: 199"), "{told:#?}");
    let read = |txn: &ReadTxn| {
        let counters = txn.counters();
        let load =
            |count: &std::sync::atomic::AtomicU64| count.load(std::sync::atomic::Ordering::Relaxed);
        (load(&counters.pages_read), load(&counters.blocks_read))
    };
    let (pages, blocks) = read(&new);
    let (old_pages, old_blocks) = read(&base);
    println!("{pages} and {old_pages} pages, {blocks} and {old_blocks} blocks");
    assert!(pages + old_pages < 120, "{pages} and {old_pages} pages");
    assert!(blocks + old_blocks < 60, "{blocks} and {old_blocks} blocks");
}

#[test]
fn txn_at_finds_the_newest_commit_of_an_instant() {
    let folder = Folder::new("clock");
    let path = folder.file("a.tdl");
    let options = Options::new().tuning(Tuning::new().clock_step(Duration::from_millis(1)));
    let db = options.open(&path).unwrap();
    let mut commits = Vec::new();
    let before = Timestamp::now();
    for i in 0..30u8 {
        std::thread::sleep(Duration::from_millis(3));
        let mut tx = db.begin_write().unwrap();
        tx.table("t").unwrap().put(&[i], b"x").unwrap();
        let txn = tx.commit().unwrap().txn;
        commits.push((Timestamp::now(), txn));
    }
    drop(db);
    let db = options.read_only(true).open(&path).unwrap();
    for (time, txn) in &commits {
        let (found, when) = db.txn_at(*time).unwrap().unwrap();
        assert_eq!(found, *txn);
        assert!(when <= *time);
    }
    let early = db.txn_at(Timestamp(before.0 - 1)).unwrap();
    assert!(early.is_none_or(|(txn, _)| txn < commits[0].1), "{early:?}");
    assert_clean(&db);
}

#[test]
fn bounds_of_pins() {
    let db = in_memory(&Options::new());
    for name in ["", &"n".repeat(256)] {
        assert!(db.pin(name).is_err());
    }
    let mut tx = db.begin_write().unwrap();
    for i in 0..128 {
        tx.pin(&format!("{i:0>255}")).unwrap();
    }
    assert!(tx.pin("one too many").is_err());
    tx.commit().unwrap();
    assert_eq!(db.pins().unwrap().len(), 128);
    assert!(db.pin("one too many").is_err());
    // An existing pin may move to the newest version although the maximum number is reached.
    db.pin(&format!("{:0>255}", 7)).unwrap();
    assert_clean(&db);
}
