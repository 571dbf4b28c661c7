//! Checks of a database: they run concurrently with writers, report progress, can be stopped, and name the data that
//! each damage affects.

use crate::common::{Folder, assert_clean, in_memory};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidalite::maintenance::{CheckReport, Finding, HitSeries, Place, Stat, Watch};
use tidalite::storage::{LockMemory, MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{ColumnType, Database, Durability, Options, Schema, Steps, Tuning, Unit};
use tidalite_testkit::rng::Rng;

/// A random text for a row: either one that many rows share, or one of its own.
fn text(n: i64) -> String {
    match n % 5 {
        0 => "stands".to_owned(),
        _ => format!("row {n} says {}", "much ".repeat(8)),
    }
}

/// Fills two tables, and series with leaves, texts, annotations and rows in the delta.
fn fill(db: &Database) {
    let texts = Schema::new(Unit::Seconds, [("state", ColumnType::String)]);
    for part in 0..6u64 {
        let mut tx = db.begin_write().unwrap();
        for name in ["config", "notes"] {
            let mut table = tx.table(name).unwrap();
            for i in 0..150u64 {
                let key = format!("{name}-{:05}", i * 6 + part);
                let len = if i % 50 == 0 { 9000 } else { 60 };
                table.put(key.as_bytes(), &vec![i as u8; len]).unwrap();
            }
        }
        for name in ["wind", "power"] {
            let mut series = tx.series(name).unwrap();
            for i in 0..2000i64 {
                let t = (part as i64) * 2000 + i;
                series
                    .insert_point(Steps(t * 1_000_000_000), 0, (t * t) as f64 / 7.0)
                    .unwrap();
            }
        }
        let mut log = tx.series_with("log", &texts).unwrap();
        for n in 0..300i64 {
            let n = (part as i64) * 300 + n;
            log.insert_values(Steps(n), &[text(n).into()]).unwrap();
        }
        for n in 0..20 {
            let key = format!("{part} {n}");
            log.annotate(&key, &text(n)).unwrap();
        }
        let mut late = tx.series("late").unwrap();
        late.insert_point(Steps(part as i64), 0, 1.5).unwrap();
        tx.commit().unwrap();
    }
}

/// The bytes of a database file with the content that `fill` writes.
fn image() -> Vec<u8> {
    let folder = Folder::new("integrity-image");
    let path = folder.file("a.tdl");
    let db = Database::open(&path).unwrap();
    fill(&db);
    drop(db);
    std::fs::read(path).unwrap()
}

fn check_of(image: &[u8]) -> CheckReport {
    let storage = Arc::new(MemoryStorage::from_image(image.to_vec()));
    let db = Options::new()
        .read_only(true)
        .open_storage(storage)
        .unwrap();
    db.check().unwrap()
}

/// Internal tables for which a finding about a damaged page lists the affected series.
const NAMING: [&str; 3] = ["catalog of series", "names of series", "GUIDs of series"];

/// Damage in any page is reported, and every table entry or row that cannot be read lies within the keys or times of a
/// finding.
#[test]
fn damage_is_named_by_table_and_keys_or_series_and_times() {
    let sound = image();
    let seed = 7;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (mut tables, mut series, mut columns) = (0, 0, 0);
    let (mut texts, mut annotations) = (0, 0);
    for page in (6..sound.len() / 4096).step_by(2) {
        let mut damaged = sound.clone();
        let at = page * 4096 + rng.index(4096);
        damaged[at] ^= 1 << rng.below(8);
        let storage = Arc::new(MemoryStorage::from_image(damaged));
        let options = Options::new().read_only(true);
        let db = options.open_storage(storage).unwrap();
        let report = db.check().unwrap();
        let in_table = |name: &str, key: &[u8]| {
            report.findings.iter().any(|finding| match &finding.place {
                Place::Table {
                    name: hit,
                    from,
                    to,
                } => {
                    hit == name && from.as_slice() <= key && to.as_deref().is_none_or(|to| key < to)
                }
                Place::Catalog { name, .. } => name == "table of tables",
                _ => false,
            })
        };
        // If the newest rows of a series are damaged, the series cannot be opened. Then a finding about any of its
        // times is acceptable.
        let in_series = |name: &str, time: Option<i64>| {
            let within = |from: i64, to: i64| time.is_none_or(|time| from <= time && time <= to);
            report.findings.iter().any(|finding| match &finding.place {
                Place::Series {
                    name: hit, span, ..
                } => hit == name && span.is_some_and(|(from, to)| within(from, to)),
                Place::Catalog { name, .. } => NAMING.contains(&&**name),
                Place::Delta { from, series, .. } => {
                    let hits = |hit: &HitSeries| hit.name == name && within(hit.span.0, hit.span.1);
                    from.is_none() || series.iter().any(hits)
                }
                _ => false,
            })
        };
        for finding in &report.findings {
            match &finding.place {
                Place::Table { .. } => tables += 1,
                Place::Series { column, .. } => {
                    series += 1;
                    columns += usize::from(column.is_some());
                }
                _ => {}
            }
        }
        let Ok(snap) = db.begin_read() else {
            assert!(!report.is_clean());
            continue;
        };
        for name in ["config", "notes"] {
            for i in (0..900).step_by(7) {
                let key = format!("{name}-{i:05}");
                let found = snap
                    .table(name)
                    .and_then(|table| table.map_or(Ok(None), |table| table.get(key.as_bytes())));
                let lost = !matches!(found, Ok(Some(_)));
                assert!(
                    !lost || in_table(name, key.as_bytes()),
                    "byte {at}: {:#?}",
                    report.problems
                );
            }
        }
        for name in ["wind", "power"] {
            let Ok(Some(series)) = snap.series(name) else {
                assert!(in_series(name, None), "byte {at}: {:#?}", report.problems);
                continue;
            };
            for t in (0..12_000i64).step_by(511) {
                let time = t * 1_000_000_000;
                let mut rows = 0;
                let read = series
                    .query(Steps(time)..=Steps(time))
                    .for_each(|_, _| rows += 1);
                let lost = read.is_err() || rows == 0;
                assert!(
                    !lost || in_series(name, Some(time)),
                    "byte {at}, {t}: {:#?}",
                    report.problems
                );
            }
        }
        let Ok(Some(log)) = snap.series("log") else {
            assert!(in_series("log", None), "byte {at}: {:#?}", report.problems);
            continue;
        };
        for n in (0..1800i64).step_by(37) {
            let row = log
                .at(Steps(n))
                .and_then(|row| row.map_or(Ok(None), |row| log.values(&row).map(Some)));
            let lost = !matches!(row, Ok(Some(values)) if values == [text(n).into()]);
            assert!(
                !lost || in_series("log", Some(n)),
                "byte {at}, {n}: {:#?}",
                report.problems
            );
            texts += usize::from(lost);
        }
        if log.annotations().is_err() {
            let told = |finding: &Finding| {
                let of_log = matches!(&finding.place, Place::Series { name, .. } if name == "log");
                of_log && finding.problem.contains("annotations")
            };
            let told = report.findings.iter().any(told);
            assert!(told, "byte {at}: {:#?}", report.problems);
            annotations += 1;
        }
    }
    println!("{texts} texts, {annotations} times annotations");
    assert!(texts > 10 && annotations > 0);
    assert!(
        tables > 10 && series > 10 && columns > 10,
        "{tables} {series} {columns}"
    );
}

#[test]
fn a_finding_reads_well() {
    let sound = image();
    let mut said = String::new();
    for page in 6..sound.len() / 4096 {
        let mut damaged = sound.clone();
        damaged[page * 4096 + 2000] ^= 1;
        for problem in check_of(&damaged).problems {
            said += &problem;
            said += "\n";
        }
    }
    for part in [
        "table config, keys from \"config-",
        "table notes, key \"notes-",
        "series wind, column value, 1970-01-01T",
        "damaged KvLeaf at byte ",
    ] {
        assert!(said.contains(part), "{part} is missing in\n{said}");
    }
}

/// Commits do not wait for a slow check that runs at the same time, and the check finds no problem.
#[test]
fn a_check_runs_beside_writers() {
    let folder = Folder::new("online-check");
    let db = Database::open(folder.file("a.tdl")).unwrap();
    fill(&db);
    let writer = db.clone();
    let (mut commits, mut slowest, mut calls) = (0u64, Duration::ZERO, 0);
    let report = db
        .check_with(Watch::new().on_progress(|progress| {
            assert!(progress.done_bytes <= progress.total_bytes);
            calls += 1;
            for _ in 0..5 {
                let began = Instant::now();
                let mut tx = writer.begin_write().unwrap();
                let mut table = tx.table("config").unwrap();
                for i in 0..20 {
                    table
                        .put(format!("config-{:05}", i * 40).as_bytes(), &[9; 300])
                        .unwrap();
                }
                tx.series("wind")
                    .unwrap()
                    .insert_point(Steps(commits as i64 * 77), 1, 0.25)
                    .unwrap();
                tx.commit().unwrap();
                commits += 1;
                slowest = slowest.max(began.elapsed());
            }
            ControlFlow::Continue(())
        }))
        .unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert!(calls >= 3 && commits >= 15, "{calls} calls");
    println!("{commits} commits beside the check, the slowest {slowest:?}");
    assert_clean(&db);
}

/// Statistics as text, to be compared. Pending pages count as free, because they become free when the next transaction
/// begins.
fn figures(stat: &Stat) -> String {
    let mut stat = stat.clone();
    stat.pages_free += std::mem::take(&mut stat.pages_pending);
    stat.longest_free_pages = 0;
    format!("{stat:?}")
}

/// Status calls do not wait for an open write transaction, neither in its own thread nor in another process. They show
/// the newest commit that all processes see.
#[test]
fn status_calls_do_not_wait_for_writers() {
    tidalite_testkit::watch();
    let (told, done) = std::sync::mpsc::channel();
    let looks = std::thread::spawn(move || {
        for durability in [Durability::Durable, Durability::Lazy, Durability::None] {
            let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let memory = LockMemory::new();
            let open = || {
                let storage = Arc::clone(&storage);
                Options::new().open_storage_with(storage, &memory).unwrap()
            };
            let (db, other) = (open(), open());
            fill(&db);
            let seen_by_all = db.stat().unwrap();
            let mut tx = db.begin_write().unwrap();
            tx.table("config")
                .unwrap()
                .put(b"last", &[7; 20_000])
                .unwrap();
            tx.commit_with(durability).unwrap();
            let committed = db.stat().unwrap();
            assert!(committed.txn > seen_by_all.txn);
            let expected = match durability {
                // Other processes do not see a commit of `Durability::None`.
                Durability::None => seen_by_all.txn,
                _ => committed.txn,
            };
            let clean = db.check().unwrap();
            let mut held = db.begin_write().unwrap();
            held.table("config").unwrap().clear().unwrap();
            for db in [&db, &other] {
                let stat = db.stat().unwrap();
                assert_eq!(stat.txn, expected, "{durability:?}");
                if expected == committed.txn {
                    assert_eq!(figures(&stat), figures(&committed));
                }
                let checked = db.check().unwrap();
                assert!(checked.is_clean(), "{:?}", checked.problems);
                assert_eq!(checked.pages_free, stat.pages_free);
                assert_eq!(checked.pages_pending, stat.pages_pending);
                if expected == committed.txn {
                    assert_eq!(checked.pages_used, clean.pages_used);
                }
                let mut pages = 0;
                db.pages(&mut |range| pages += range.pages).unwrap();
                let weights = db.weights().unwrap();
                let weight: u64 = weights.iter().map(|weight| weight.pages).sum();
                assert_eq!(pages, weight);
            }
            drop(held);
            assert_clean(&db);
            assert_eq!(db.stat().unwrap().txn, committed.txn);
        }
        told.send(()).unwrap();
    });
    if done.recv_timeout(Duration::from_secs(120)).is_err() && !looks.is_finished() {
        panic!("somebody waits for a writer");
    }
    looks.join().unwrap();
}

/// A check sees complete versions only, even if commits follow each other without a pause meanwhile.
#[test]
fn checks_during_many_commits_see_whole_states() {
    let db = in_memory(&Options::new());
    fill(&db);
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            let mut rng = Rng::new(3);
            while !stop.load(Ordering::Relaxed) {
                let mut tx = db.begin_write().unwrap();
                for _ in 0..10 {
                    let key = format!("config-{:05}", rng.below(900));
                    let value = vec![1; rng.index(300)];
                    let mut table = tx.table("config").unwrap();
                    table.put(key.as_bytes(), &value).unwrap();
                }
                let durability = match rng.below(8) {
                    0 => Durability::Durable,
                    1 => Durability::None,
                    _ => Durability::Lazy,
                };
                tx.commit_with(durability).unwrap();
            }
        });
        let begun = Instant::now();
        let mut before = db.stat().unwrap().txn;
        for round in 0..200 {
            let stat = db.stat().unwrap();
            let sum = stat.pages_free + stat.pages_pending;
            assert!(sum < stat.pages_total, "{stat:?}");
            before = before.max(stat.txn);
            if round % 20 == 0 {
                let checked = db.check().unwrap();
                assert!(checked.is_clean(), "{:?}", checked.problems);
            }
            if begun.elapsed() > Duration::from_secs(20) {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_clean(&db);
}

#[test]
fn a_check_can_be_stopped_and_slowed() {
    let db = in_memory(&Options::new());
    fill(&db);
    let report = db
        .check_with(Watch::new().on_progress(|_| ControlFlow::Break(())))
        .unwrap();
    assert!(report.cancelled && !report.is_clean());
    // The stopped check leaves nothing locked: later checks work.
    let began = Instant::now();
    assert_clean(&db);
    let free = began.elapsed();
    let bytes = db.check().unwrap().pages_used * 4096;
    let began = Instant::now();
    let report = db
        .check_with(Watch::new().bytes_per_second(bytes * 2))
        .unwrap();
    assert!(report.is_clean());
    assert!(
        began.elapsed() > Duration::from_millis(250),
        "{:?} against {free:?}",
        began.elapsed()
    );
}

/// For a sound file, every mode of verification gives the same content, through a memory map and through `pread`.
/// Damage is a typed error in both cases. If nothing is verified, damage may go unnoticed but must not cause a panic.
#[test]
fn all_ways_of_verifying_agree_over_map_and_pread() {
    let folder = Folder::new("verify");
    let path = folder.file("a.tdl");
    let db = Database::open(&path).unwrap();
    fill(&db);
    let expected = crate::common::content_of(&db.begin_read().unwrap()).unwrap();
    drop(db);
    let sound = std::fs::read(&path).unwrap();
    for verify in [Verify::OnFirstTouch, Verify::Always, Verify::Never] {
        for map in [true, false] {
            let options = Options::new()
                .read_only(true)
                .tuning(Tuning::new().verify(verify).map(map));
            std::fs::write(&path, &sound).unwrap();
            let db = options.open(&path).unwrap();
            let snap = db.begin_read().unwrap();
            assert_eq!(crate::common::content_of(&snap).unwrap(), expected);
            assert_eq!(crate::common::content_of(&snap).unwrap(), expected);
            assert_clean(&db);
            drop((snap, db));
            let mut errors = 0;
            for page in (6..sound.len() / 4096).step_by(11) {
                let mut damaged = sound.clone();
                damaged[page * 4096 + 1000] ^= 0x10;
                std::fs::write(&path, &damaged).unwrap();
                let db = options.open(&path).unwrap();
                let found = db
                    .begin_read()
                    .and_then(|snap| crate::common::content_of(&snap));
                match found {
                    Ok(content) if verify != Verify::Never => assert_eq!(content, expected),
                    Ok(_) => {}
                    Err(error) if error.corrupt().is_some() => errors += 1,
                    Err(error) => assert!(verify == Verify::Never, "{error}"),
                }
            }
            assert!(
                verify == Verify::Never || errors > 10,
                "{verify:?} {map} {errors}"
            );
        }
    }
}

/// A page is verified once and then trusted; only with `Verify::Always` it is verified at each read.
#[test]
fn verify_always_looks_at_every_touch() {
    let folder = Folder::new("verify-always");
    let path = folder.file("a.tdl");
    let db = Database::open(&path).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"key", b"value").unwrap();
    tx.commit().unwrap();
    drop(db);
    for map in [true, false] {
        for (verify, sees) in [(Verify::OnFirstTouch, false), (Verify::Always, true)] {
            let sound = std::fs::read(&path).unwrap();
            let db = Options::new()
                .read_only(true)
                .tuning(Tuning::new().verify(verify).map(map))
                .open(&path)
                .unwrap();
            let snap = db.begin_read().unwrap();
            let table = snap.table("t").unwrap().unwrap();
            assert_eq!(table.get(b"key").unwrap().unwrap(), b"value");
            // Changes the bytes of the value in the open file.
            let at = sound
                .windows(5)
                .rposition(|bytes| bytes == b"value")
                .unwrap();
            let mut damaged = sound.clone();
            damaged[at] = b'V';
            write_over(&path, &damaged);
            let found = table.get(b"key");
            assert_eq!(found.is_err(), sees, "{verify:?}, map {map}: {found:?}");
            write_over(&path, &sound);
        }
    }
}

/// Overwrites a file in place; truncating the file would break memory maps of it.
fn write_over(path: &std::path::Path, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
}

/// A check of a file opened read-only reports problems but does not heal them. A damaged superblock is a problem. One
/// damaged meta block of a pair looks like a crash, so it is a note.
#[test]
fn a_read_only_check_changes_nothing() {
    let folder = Folder::new("read-only-check");
    let path = folder.file("a.tdl");
    fill(&Database::open(&path).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[12_288 + 60] ^= 1;
    bytes[4096 + 300] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let db = Options::new().read_only(true).open(&path).unwrap();
    let report = db.check().unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.problems);
    assert_eq!(report.findings[0].place, Place::File);
    assert_eq!((report.problems_healable, report.notes.len()), (1, 1));
    assert!(report.notes[0].contains("byte 4096"), "{:?}", report.notes);
    drop(db);
    assert!(std::fs::read(&path).unwrap() == bytes);
    // Opening the file for writing repairs the damaged copies.
    assert_clean(&Database::open(&path).unwrap());
}

/// The page walk and the weights cover exactly the used pages, and each page has a kind.
#[test]
fn pages_are_walked_and_weighed() {
    let db = in_memory(&Options::new());
    fill(&db);
    db.pin("then").unwrap();
    let used = db.check().unwrap().pages_used - 6;
    let (mut walked, mut leaves) = (0, Vec::new());
    db.pages(&mut |range| {
        walked += range.pages;
        if range.what == "table config: table leaf" {
            leaves.push(range.first);
        }
    })
    .unwrap();
    assert_eq!(walked, used);
    let weights = db.weights().unwrap();
    assert_eq!(weights.iter().map(|weight| weight.pages).sum::<u64>(), used);
    assert!(
        weights
            .iter()
            .any(|weight| weight.what == "packed leaves" && weight.pages > 10)
    );
    assert!(weights.is_sorted_by_key(|weight| std::cmp::Reverse(weight.pages)));
    let page = db.page(leaves[0]).unwrap().unwrap();
    assert_eq!((page.kind.as_deref(), page.sound), (Some("KvLeaf"), true));
    assert_eq!(page.address, leaves[0] * 4096);
    assert!(db.page(1 << 60).unwrap().is_none() && db.page(1 << 30).unwrap().is_none());
}

/// The event callback receives the events of the file.
#[test]
fn the_logger_hears_of_opening_growing_and_healing() {
    let folder = Folder::new("logger");
    let path = folder.file("a.tdl");
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let open = || {
        let heard = Arc::clone(&heard);
        let options =
            Options::new().on_event(move |event| heard.lock().unwrap().push(event.to_string()));
        options.open(&path).unwrap()
    };
    fill(&open());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    drop(open());
    let heard = heard.lock().unwrap().join("\n");
    for part in [
        "opened at commit 1",
        "grew from ",
        "the block at byte 0 was rewritten",
    ] {
        assert!(heard.contains(part), "{part} is missing in\n{heard}");
    }
}
