//! Caps for the whole file: the cap applies to the bytes in use, no more rows than necessary are removed, and the
//! reasons why the file is longer are reported.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tidalite::retention::{Budget, CapState, Holder, Maintained, Retention};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options, Steps, Tuning};
use tidalite_testkit::Monitor;
use tidalite_testkit::rng::Rng;

const PAGE: u64 = 4096;
const SECOND: i64 = 1_000_000_000;

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .tuning(Tuning::new().log_bytes(0))
        .open_storage(Monitor::new(Arc::new(MemoryStorage::new())))
        .expect("a fresh file")
}

fn used(db: &Database) -> u64 {
    let stat = db.stat().expect("figures");
    (stat.pages_total - stat.pages_free - stat.pages_pending) * PAGE
}

fn cap(db: &Database, pattern: &str, bytes: u64) {
    let mut tx = db.begin_write().expect("a transaction");
    let policy = Retention {
        pattern: pattern.to_owned(),
        bytes: Some(bytes),
        ..Retention::default()
    };
    tx.set_retention("cap", &policy).expect("a policy");
    tx.commit().expect("a commit");
}

fn budget() -> Budget {
    Budget {
        time: Duration::from_secs(600),
        ..Budget::default()
    }
}

/// The times of all rows, by the name of their series.
fn content(db: &Database) -> BTreeMap<String, Vec<i64>> {
    let snap = db.begin_read().expect("a snapshot");
    let mut content = BTreeMap::new();
    for info in snap.list("").expect("a list") {
        let series = snap.series_by_id(info.id).unwrap().unwrap();
        let mut times = Vec::new();
        series
            .query(..)
            .for_each(|time, _| times.push(time))
            .unwrap();
        content.insert(info.label(), times);
    }
    content
}

/// Writes one series after the other in a single transaction, as an import does. An extent then holds leaves of one or
/// two series over all times, so removing old rows frees only parts of many extents.
fn import(db: &Database, series: usize, rows: i64, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut tx = db.begin_write().unwrap();
    for n in 0..series {
        let mut writer = tx.series(&format!("power{{turbine=\"T{n:02}\"}}")).unwrap();
        for row in 0..rows {
            writer.insert(Steps(row * 10 * SECOND), rng.f64()).unwrap();
        }
    }
    tx.commit().unwrap();
}

/// Checks that each series has lost only its oldest rows and keeps at least one. Returns the number of rows lost.
fn only_the_oldest_are_gone(before: &BTreeMap<String, Vec<i64>>, db: &Database) -> u64 {
    let mut gone = 0;
    for (name, times) in content(db) {
        let all = &before[&name];
        assert!(all.is_empty() || !times.is_empty(), "{name} is empty");
        assert!(all.ends_with(&times), "{name} lost others than its oldest");
        gone += (all.len() - times.len()) as u64;
    }
    gone
}

fn state(done: &Maintained) -> &CapState {
    done.cap.as_ref().expect("how the cap stands")
}

#[test]
fn a_cap_above_what_is_in_use_removes_nothing_of_a_longer_file() {
    let db = memory();
    import(&db, 12, 40_000, 1);
    let (file, in_use) = (db.stat().unwrap().file_bytes, used(&db));
    assert!(in_use + PAGE < file, "{in_use} of {file}");
    let before = content(&db);
    cap(&db, "", in_use + (file - in_use) / 2);
    let preview = db.preview_maintenance(&budget()).unwrap();
    assert_eq!((preview.rows, preview.removals.len()), (0, 0));
    let done = db.maintain(&budget()).unwrap();
    assert_eq!((done.rows, done.series), (0, 0));
    assert_eq!(content(&db), before);
}

#[test]
fn a_cap_removes_what_is_too_much_of_an_import_and_no_more() {
    let db = memory();
    import(&db, 12, 60_000, 2);
    let before = content(&db);
    let in_use = used(&db);
    let bytes = in_use / 10 * 7;
    cap(&db, "", bytes);
    let preview = db.preview_maintenance(&budget()).unwrap();
    assert_eq!(content(&db), before, "a preview changes nothing");
    let done = db.maintain(&budget()).unwrap();
    let gone = only_the_oldest_are_gone(&before, &db);
    println!(
        "{in_use} in use, cap {bytes}: {done:?}, {} in the preview",
        preview.rows
    );
    assert_eq!(done.rows, gone);
    assert_eq!(done.series, 12, "each series counts once");
    assert!(
        used(&db) <= bytes && used(&db) + 300_000 > bytes,
        "{}",
        used(&db)
    );
    assert_eq!(state(&done).used_bytes, used(&db));
    assert!(state(&done).used_before > bytes);
    // Compaction removes the freed space inside the file, but not the reserve and the space grown in advance.
    assert!(state(&done).file_bytes <= bytes + (5 << 19), "{done:?}");
    // A preview may be wrong by a few leaves, which have at most 16,384 rows each.
    assert!(preview.rows.abs_diff(done.rows) <= 3 * 16_384);
    assert_eq!(preview.removals.len(), 12);
    // The rows of all series are cut at about the same time.
    let firsts: Vec<i64> = content(&db).values().map(|times| times[0]).collect();
    let spread = firsts.iter().max().unwrap() - firsts.iter().min().unwrap();
    assert!(spread <= 2 * 16_384 * 10 * SECOND, "{firsts:?}");
    assert!(db.check().unwrap().is_clean());
    // A second call finds that the cap is met, and removes nothing.
    assert_eq!(db.maintain(&budget()).unwrap().rows, 0);
}

#[test]
fn dead_space_is_reclaimed_before_rows_are_removed() {
    let db = memory();
    import(&db, 6, 60_000, 3);
    let mut tx = db.begin_write().unwrap();
    for n in 0..6 {
        let name = format!("power{{turbine=\"T{n:02}\"}}");
        tx.series(&name)
            .unwrap()
            .delete(..Steps(300_000 * SECOND))
            .unwrap();
    }
    tx.commit().unwrap();
    let before = content(&db);
    let live = db.stat().unwrap().leaf_bytes;
    let bytes = live + live / 10 + (1 << 18);
    assert!(used(&db) > bytes, "{} of {bytes}", used(&db));
    cap(&db, "", bytes);
    let done = db.maintain(&budget()).unwrap();
    assert_eq!((done.rows, content(&db)), (0, before));
    assert!(used(&db) <= bytes, "{} of {bytes}", used(&db));
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn pins_and_readers_that_keep_the_file_long_are_named() {
    let db = memory();
    import(&db, 4, 60_000, 4);
    db.pin("monday").unwrap();
    let reader = db.begin_read().unwrap();
    let bytes = used(&db) / 2;
    cap(&db, "", bytes);
    let done = db.maintain(&budget()).unwrap();
    let held = state(&done);
    assert!(
        held.used_bytes <= bytes && held.file_bytes > bytes,
        "{held:?}"
    );
    assert!(held.retained_bytes > 0);
    let named = |wanted: &dyn Fn(&Holder) -> bool| held.holders.iter().any(wanted);
    assert!(named(
        &|holder| matches!(holder, Holder::Pin { name, .. } if name == "monday")
    ));
    assert!(named(
        &|holder| matches!(holder, Holder::Reader { txn, .. } if *txn == reader.txn())
    ));
    drop(reader);
    db.unpin("monday").unwrap();
    let done = db.maintain(&budget()).unwrap();
    assert_eq!(done.rows, 0, "what is in use has not changed");
    assert!(done.cap.is_none_or(|held| held.holders.is_empty()));
}

/// With series of all sizes and shapes, dead space and pins, either the cap holds or nothing more can be removed, and
/// no more than necessary is removed.
#[test]
fn random_files_are_cut_by_no_more_than_a_leaf_too_much() {
    for seed in 0..24u64 {
        let mut rng = Rng::new(seed);
        println!("seed {seed}");
        let db = memory();
        let commits = 1 + rng.below(5) as i64;
        let series = 1 + rng.below(14);
        let rows: Vec<i64> = (0..series)
            .map(|_| [3, 700, 5_000, 40_000][rng.below(4) as usize])
            .collect();
        for commit in 0..commits {
            let mut tx = db.begin_write().unwrap();
            for (n, &rows) in rows.iter().enumerate() {
                let mut writer = tx.series(&format!("s{n}")).unwrap();
                for row in 0..rows {
                    let time = (commit * rows + row) * 100_000 / rows;
                    writer
                        .insert(Steps(time * SECOND + row), rng.f64())
                        .unwrap();
                }
            }
            tx.commit().unwrap();
        }
        if rng.below(3) == 0 {
            let mut tx = db.begin_write().unwrap();
            tx.series("s0")
                .unwrap()
                .delete(Steps(1000)..Steps(50_000 * SECOND))
                .unwrap();
            tx.commit().unwrap();
        }
        if rng.below(3) == 0 {
            db.pin("p").unwrap();
        }
        let bytes = (used(&db) as f64 * (0.1 + rng.f64())) as u64;
        let before = content(&db);
        let used_before = used(&db);
        cap(&db, "", bytes);
        let leaves_before = leaves(&db);
        let done = match db.maintain(&budget()) {
            Err(error) => {
                let (least_bytes, _) = error.limit().expect("a cap that is too small");
                assert_eq!(content(&db), before, "nothing is removed");
                expect_least(&db, least_bytes);
                continue;
            }
            done => done.unwrap(),
        };
        let gone = only_the_oldest_are_gone(&before, &db);
        assert_eq!(done.rows, gone);
        let cut = content(&db)
            .iter()
            .filter(|(name, times)| before[*name].len() > times.len())
            .count();
        assert_eq!(done.series, cut as u64);
        let left = used(&db);
        println!("{used_before} in use, cap {bytes}, {left} left, {gone} rows gone");
        if gone > 0 {
            // At most the last leaf removed of each series was too much, plus two pages per series for other
            // structures.
            let mut last = 0;
            for (name, all) in &leaves_before {
                let begin = content(&db)[name][0];
                let mut removed = all.iter().filter(|(from, _)| *from < begin);
                last += removed.next_back().map_or(0, |(_, bytes)| bytes + 2 * PAGE);
            }
            assert!(
                left + last + 8 * PAGE > bytes,
                "{left} + {last} under {bytes}"
            );
        }
        assert!(left <= bytes, "{left} of {bytes}");
        assert!(db.check().unwrap().is_clean());
        assert_eq!(db.maintain(&budget()).unwrap().rows, 0, "it holds");
    }
}

/// Checks that the reported minimum, the size without removable rows, is about right. Deleting rows of the delta one
/// after the other leaves sparse pages, so the file is compacted first.
fn expect_least(db: &Database, least: u64) {
    let ends: Vec<(String, i64)> = content(db)
        .into_iter()
        .filter_map(|(name, times)| Some((name, *times.last()?)))
        .collect();
    let mut tx = db.begin_write().unwrap();
    for (name, end) in ends {
        tx.series(&name).unwrap().delete(..Steps(end)).unwrap();
    }
    tx.commit().unwrap();
    while !db.compact(1 << 20).unwrap().done {}
    let left = used(db);
    assert!(
        least <= left + left / 3 + 4 * PAGE && left <= least + least / 4 + 24 * PAGE,
        "{least} were said to be left, {left} are"
    );
}

/// For a cap that a file can only just meet, most rows are removed, but no more than necessary, although each removed
/// byte of rows frees several bytes.
#[test]
fn near_the_smallest_size_no_more_goes_than_has_to() {
    for (series, rows) in [(1, 200_000i64), (12, 20_000), (40, 600), (300, 40)] {
        for share in [2u64, 10, 30, 60] {
            let db = memory();
            let mut rng = Rng::new(5);
            let mut tx = db.begin_write().unwrap();
            for n in 0..series {
                let mut writer = tx.series(&format!("s{n}")).unwrap();
                for row in 0..rows {
                    writer
                        .insert(Steps(row * 10 * SECOND + n), rng.f64())
                        .unwrap();
                }
            }
            tx.commit().unwrap();
            let before = content(&db);
            let in_use = used(&db);
            cap(&db, "", 1);
            let refused = db.maintain(&budget()).unwrap_err();
            let (least_bytes, _) = refused.limit().unwrap();
            let bytes = least_bytes + (in_use - least_bytes) * share / 100 + 2 * PAGE;
            cap(&db, "", bytes);
            let done = db.maintain(&budget()).unwrap();
            only_the_oldest_are_gone(&before, &db);
            let left = used(&db);
            println!(
                "{series} series of {rows} rows: {in_use} in use, cap {bytes} of at least {least_bytes}: {left} left, {} commits",
                done.commits
            );
            // At most the last leaf removed of each series was too much, plus some other pages.
            let leaf = (rows as u64).min(16_384) * 8;
            let more = (series as u64 * leaf).min(in_use / 8) + 8 * PAGE;
            assert!(left <= bytes, "{left} of {bytes}");
            assert!(left + more >= bytes, "{left} of {bytes}, {done:?}");
            assert!(done.commits <= 64, "{done:?}");
            assert!(db.check().unwrap().is_clean());
            expect_least(&db, least_bytes);
        }
    }
}

/// If data other than rows exceeds the cap, this is reported and nothing is removed.
#[test]
fn a_cap_below_the_fixed_cost_is_refused() {
    let db = memory();
    import(&db, 3, 20_000, 7);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("config").unwrap();
    for key in 0..2_000u64 {
        table.put(&key.to_be_bytes(), &[7; 200]).unwrap();
    }
    tx.commit().unwrap();
    let before = content(&db);
    for bytes in [1, 40_000, 400_000] {
        cap(&db, "", bytes);
        let txn = db.stat().unwrap().txn;
        let error = db.maintain(&budget()).unwrap_err();
        let (least_bytes, cap_bytes) = error.limit().unwrap();
        assert_eq!(cap_bytes, bytes);
        assert!(least_bytes > 400_000 && least_bytes < 600_000, "{error}");
        let told = error.to_string();
        for part in [
            &bytes.to_string(),
            &least_bytes.to_string(),
            "raise the cap",
        ] {
            assert!(told.contains(part), "`{told}` does not say `{part}`");
        }
        let preview = db.preview_maintenance(&budget()).unwrap_err();
        assert!(preview.kind() == ErrorKind::InvalidInput, "{preview}");
        assert_eq!(
            (db.stat().unwrap().txn, content(&db)),
            (txn, before.clone())
        );
    }
    assert!(db.check().unwrap().is_clean());
    // With a cap that is possible, maintenance works again.
    let refused = db.maintain(&budget()).unwrap_err();
    let (least_bytes, _) = refused.limit().unwrap();
    cap(&db, "", least_bytes + 2 * PAGE);
    assert!(db.maintain(&budget()).unwrap().rows > 0);
    assert!(used(&db) <= least_bytes + 2 * PAGE);
}

/// First time and bytes of each leaf of each series, estimated from the number of rows.
fn leaves(db: &Database) -> BTreeMap<String, Vec<(i64, u64)>> {
    let snap = db.begin_read().unwrap();
    let mut leaves = BTreeMap::new();
    for info in snap.list("").unwrap() {
        let series = snap.series_by_id(info.id).unwrap().unwrap();
        // Leaves of random values have 16,384 rows at most, of about 8 bytes.
        let rows = series.count().unwrap();
        let each =
            series.stored_bytes().max(8 * series.waiting_rows()) / rows.div_ceil(16_384).max(1);
        let mut times = Vec::new();
        series
            .query(..)
            .for_each(|time, _| times.push(time))
            .unwrap();
        let firsts = times.chunks(16_384).map(|chunk| (chunk[0], each));
        leaves.insert(info.label(), firsts.collect());
    }
    leaves
}
