//! Whatever the test destroys, salvage brings every row of an intact leaf into the new file.

use crate::common::{Content, assert_clean, content_of, in_memory};
use std::sync::Arc;
use tidalite::maintenance::{Place, Salvage, SalvageReport};
use tidalite::retention::Retention;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{ColumnType, Options, Schema, Steps, Unit};
use tidalite_testkit::rng::Rng;

const PAGE: usize = 1024;
/// Kinds of pages and blocks in their headers, from docs/format.md, section 2.
const BRANCH: u8 = 3;
const NODES: [u8; 3] = [13, 14, 15];
const FREE_SPACE: [u8; 5] = [6, 7, 8, 9, 0];

struct Image {
    bytes: Vec<u8>,
    content: Content,
}

fn options() -> Options {
    Options::new().page_size(PAGE)
}

/// Creates a file with tables of several levels, which have overwritten, deleted and large values; series of several
/// nodes, with rows inserted late and deleted; and rows in the tail page and in runs.
fn image() -> Image {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = options().open_storage(storage.clone()).unwrap();
    let schema = Schema::new(
        Unit::Seconds,
        [("level", ColumnType::F64), ("count", ColumnType::U64)],
    );
    for part in 0..8u64 {
        let mut tx = db.begin_write().unwrap();
        for name in ["config", "notes"] {
            let mut table = tx.table(name).unwrap();
            for i in 0..120u64 {
                let key = format!("{name}-{:05}", i * 8 + part);
                let len = if i % 60 == 0 { 3000 } else { 40 };
                table
                    .put(key.as_bytes(), &vec![(i + part) as u8; len])
                    .unwrap();
                // The value is overwritten in each round.
                let key = format!("{name}-{:05}", i * 7);
                table.put(key.as_bytes(), &part.to_le_bytes()).unwrap();
            }
        }
        for s in 0..3i64 {
            let mut series = tx.series(&format!("wind{{turbine=\"{s}\"}}")).unwrap();
            for i in 0..2500i64 {
                let t = part as i64 * 2500 + i;
                series
                    .insert_point(Steps(t * 10), 0, (t * t % 977) as f64 / 7.0)
                    .unwrap();
            }
        }
        let mut tank = tx.series_with("tank", &schema).unwrap();
        for i in 0..300u64 {
            let t = part as i64 * 300 + i as i64;
            tank.insert_row(Steps(t), &[(i as f64).to_bits(), i * part])
                .unwrap();
        }
        // Many series have few rows, which stay in the delta.
        for s in 0..20 {
            let mut late = tx.series(&format!("late.{s}")).unwrap();
            late.insert_point(Steps(part as i64), 0, f64::from(s))
                .unwrap();
        }
        tx.commit().unwrap();
    }
    let content = content_of(&db.begin_read().unwrap()).unwrap();
    assert_clean(&db);
    drop(db);
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    Image { bytes, content }
}

fn saved(bytes: Vec<u8>) -> (Content, SalvageReport) {
    let db = in_memory(&options());
    let damaged = Arc::new(MemoryStorage::from_image(bytes));
    let report = Salvage::of_storage(damaged).to_database(&db).unwrap();
    assert_clean(&db);
    let content = content_of(&db.begin_read().unwrap()).unwrap();
    (content, report)
}

/// Whether a reported loss covers this entry or row.
fn told(report: &SalvageReport, what: What<'_>) -> bool {
    report.lost.iter().any(|lost| match (&lost.place, what) {
        (Place::Table { name, from, to }, What::Entry(table, key)) => {
            name == table && from.as_slice() <= key && to.as_deref().is_none_or(|to| key < to)
        }
        (Place::Series { name, span, .. }, What::Row(series, time)) => {
            name == series && span.is_some_and(|(from, to)| from <= time && time <= to)
        }
        (Place::Delta { .. }, What::Row(..)) => true,
        // If the catalog entry with the root of a table or series is lost, any of its rows may be lost.
        (Place::Catalog { .. }, _) => true,
        _ => false,
    })
}

#[derive(Clone, Copy)]
enum What<'a> {
    Entry(&'a str, &'a [u8]),
    Row(&'a str, i64),
}

/// Counts the entries and rows of `expected` that did not arrive unchanged: first those not covered by a reported loss,
/// then those covered by one.
fn missing(expected: &Content, found: &Content, report: &SalvageReport) -> (usize, usize) {
    let (mut silent, mut reported) = (0, 0);
    let mut count = |what: What<'_>| {
        if told(report, what) {
            reported += 1;
        } else {
            silent += 1;
        }
    };
    for (name, pairs) in &expected.tables {
        for (key, value) in pairs {
            if found.tables.get(name).and_then(|pairs| pairs.get(key)) != Some(value) {
                count(What::Entry(name, key));
            }
        }
    }
    for (name, rows) in &expected.series {
        for (time, words) in rows {
            if found.series.get(name).and_then(|rows| rows.get(time)) != Some(words) {
                count(What::Row(name, *time));
            }
        }
    }
    (silent, reported)
}

#[test]
fn an_intact_file_arrives_whole() {
    let image = image();
    let (found, report) = saved(image.bytes);
    assert!(found == image.content);
    assert!(report.is_complete(), "{:#?}", report.lost);
    assert!(report.headers > 100 && report.rows() > 60_000, "{report:?}");
}

/// With the superblocks, the meta records or both destroyed, everything is found by the headers of pages.
#[test]
fn without_its_head_everything_arrives_by_headers() {
    let image = image();
    let blocks = |numbers: &[usize]| {
        let mut bytes = image.bytes.clone();
        for &number in numbers {
            bytes[number * 4096..(number + 1) * 4096].fill(0x5a);
        }
        bytes
    };
    for numbers in [&[1, 2, 4, 5][..], &[0, 3], &[0, 1, 2, 3, 4, 5]] {
        let (found, report) = saved(blocks(numbers));
        assert_eq!(
            missing(&image.content, &found, &report),
            (0, 0),
            "{numbers:?} {:#?}",
            report.lost
        );
        assert_eq!(report.txn.is_none(), numbers.contains(&1));
    }
    // One intact block of each pair is enough to read the newest meta record.
    let (found, report) = saved(blocks(&[1, 2]));
    assert!(found == image.content && report.is_complete());
}

/// The test destroys each page in turn. If the page holds no rows, nothing is lost; otherwise the loss is reported.
#[test]
fn every_page_destroyed_by_itself() {
    let image = image();
    let seed = 11;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let (mut branches, mut leaves) = (0, 0);
    let first = 24;
    for page in first..image.bytes.len() / PAGE {
        let at = page * PAGE;
        let kind = image.bytes[at + 8];
        let is_header = image.bytes[at + 16..at + 24] == (at as u64).to_le_bytes();
        let holds_no_rows =
            is_header && (kind == BRANCH || NODES.contains(&kind) || FREE_SPACE.contains(&kind));
        // Destroying a sample of the pages with rows is enough.
        if !holds_no_rows && !rng.one_in(12) {
            continue;
        }
        let mut bytes = image.bytes.clone();
        bytes[at..at + PAGE].fill(0xee);
        let (found, report) = saved(bytes);
        let (silent, reported) = missing(&image.content, &found, &report);
        assert_eq!(silent, 0, "page {page} of kind {kind}: {:#?}", report.lost);
        if holds_no_rows {
            branches += 1;
            assert_eq!(
                reported, 0,
                "page {page} of kind {kind}: {:#?}",
                report.lost
            );
        } else {
            leaves += usize::from(reported > 0);
        }
    }
    assert!(branches > 10 && leaves > 5, "{branches} {leaves}");
}

/// Destroys one page in a hundred, with and without the superblocks and meta records.
#[test]
fn one_page_in_a_hundred() {
    let image = image();
    let tables = image
        .content
        .tables
        .values()
        .map(|pairs| pairs.len() as u64);
    let series = image.content.series.values().map(|rows| rows.len() as u64);
    let expected: u64 = tables.chain(series).sum();
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut bytes = image.bytes.clone();
        for page in 24..bytes.len() / PAGE {
            if rng.one_in(100) {
                bytes[page * PAGE..(page + 1) * PAGE].fill(0);
            }
        }
        let (found, report) = saved(bytes.clone());
        let (silent, _) = missing(&image.content, &found, &report);
        assert_eq!(silent, 0, "{:#?}", report.lost);
        assert!(
            report.rows() * 5 > expected * 4,
            "{} of {expected}",
            report.rows()
        );
        bytes[..6 * 4096].fill(0);
        let (_, report) = saved(bytes);
        assert!(
            report.rows() * 5 > expected * 4,
            "{} of {expected}",
            report.rows()
        );
    }
}

/// Salvage of a file made to attack does not panic, uses bounded memory, and ends.
#[test]
fn hostile_files_are_survived() {
    let image = image();
    for seed in 0..40 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let mut bytes = image.bytes.clone();
        for _ in 0..200 {
            let at = rng.index(bytes.len());
            bytes[at] = rng.below(256) as u8;
        }
        // Writes headers with valid addresses all over some pages.
        let page = 24 + rng.index(bytes.len() / PAGE - 24);
        for slot in (0..PAGE - 32).step_by(8) {
            let at = page * PAGE + slot;
            bytes[at + 8] = *rng.pick(&[4, 5, 10, 11, 12, 15]);
            bytes[at + 16..at + 24].copy_from_slice(&(at as u64).to_le_bytes());
        }
        let db = in_memory(&options());
        let damaged = Arc::new(MemoryStorage::from_image(bytes));
        let _ = Salvage::of_storage(damaged).to_database(&db);
    }
    for bytes in [vec![], vec![0; 10], vec![0xff; 30_000]] {
        let db = in_memory(&options());
        let damaged = Arc::new(MemoryStorage::from_image(bytes));
        assert!(
            Salvage::of_storage(damaged)
                .to_database(&db)
                .map_or(true, |report| report.rows() == 0)
        );
    }
}

#[test]
fn retention_policies_are_saved() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let db = options().open_storage(storage.clone()).unwrap();
    let policy = Retention {
        pattern: "wind*".to_owned(),
        keep: Some(std::time::Duration::from_secs(86_400)),
        cold: Some(std::time::Duration::from_secs(3600)),
        ..Retention::default()
    };
    let mut tx = db.begin_write().unwrap();
    tx.set_retention("a day", &policy).unwrap();
    tx.table("t").unwrap().put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    drop(db);
    let saved = in_memory(&options());
    let report = Salvage::of_storage(storage).to_database(&saved).unwrap();
    assert!(report.is_complete() && report.retentions == 1, "{report:?}");
    let found = saved.begin_read().unwrap().retentions().unwrap();
    assert_eq!(found, [("a day".to_owned(), policy)]);
}
