//! Creates valid files that together contain every kind of block.

use super::base_file::{file, file_with_log, small};
use super::containers_base::containers;
use super::errors::broken;
use super::files::{Files, Stored};
use super::messages_base::messages;
use super::mutate::Base;
use super::relations::relations;
use crate::flips::{Contents, sound_file};
use crate::model::{Model, TOPICS};
use crate::workload::Shape;
use crate::workload::script::Script;
use std::sync::Arc;
use std::time::Duration;
use tidalite::hash_table::{HashTableOptions, History, KeyForm};
use tidalite::retention::Retention;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, Result, Steps};
use tidalite_testkit::rng::Rng;

/// Number of random transactions in a file.
const TRANSACTIONS: u64 = 60;
/// Length in bytes of a value that takes three chunks.
const LONG_VALUE_BYTES: usize = 140 << 10;
/// Number of rows of a series that has enough leaves for tree nodes.
const TREE_ROWS: i64 = 60_000;
/// Size in bytes of the redo log, in the file that has a redo log.
const LOG_BYTES: u64 = 64 << 10;

/// Creates all valid files.
///
/// # Errors
/// Returns an error of the database while it creates a file.
pub fn all() -> std::result::Result<Vec<Base>, String> {
    let text = |error: tidalite::Error| error.to_string();
    let mut bases = Vec::new();
    for contents in [Contents::Mixed, Contents::Merge { deletes: true }] {
        let (bytes, _) = sound_file(contents, 1)?;
        bases.push(Base::new(&format!("{contents:?}"), Files::one(bytes)));
    }
    for page_size in [512, 4096] {
        let bytes = file(page_size, worked).map_err(text)?;
        bases.push(Base::new(&format!("workload, pages of {page_size}"), bytes));
    }
    bases.push(Base::new("values", file(512, values).map_err(text)?));
    bases.push(Base::new("tree", file(512, tree).map_err(text)?));
    bases.push(Base::new("scattered", file(512, scattered).map_err(text)?));
    bases.push(Base::new("below", file(512, below).map_err(text)?));
    bases.push(Base::new("pinned", file(512, pinned).map_err(text)?));
    bases.push(Base::new("sets", file(512, sets).map_err(text)?));
    bases.push(Base::new("hashes", file(512, hashes).map_err(text)?));
    bases.push(Base::new("buffered", file(512, buffered).map_err(text)?));
    bases.push(Base::new("messages", messages().map_err(text)?));
    bases.push(Base::new("containers", containers().map_err(text)?));
    bases.push(Base::new("relations", relations().map_err(text)?));
    let bytes = file_with_log(512, LOG_BYTES, logged).map_err(text)?;
    bases.push(Base::new("logged", bytes));
    for page_size in [512, 4096] {
        let files = two_files(page_size).map_err(text)?;
        bases.push(Base::new(
            &format!("two files, pages of {page_size}"),
            files,
        ));
    }
    Ok(bases)
}

/// Creates a database with large values in a second file.
fn two_files(page_size: usize) -> Result<Files> {
    let stored = Stored {
        first: Arc::new(MemoryStorage::new()),
        second: Some(Arc::new(MemoryStorage::new())),
    };
    let db = stored.open_by(small(page_size, 0))?;
    worked_through(&db, (7, 30), TRANSACTIONS / 3, |_| Durability::Durable)?;
    db.pin("before")?;
    values(&db)?;
    // Creates holes in the second file; some stay pending because the pin still sees their pages.
    let mut tx = db.begin_write()?;
    let mut table = tx.table("holes")?;
    for key in 0..24_u8 {
        table.put(&[key], &vec![key; 3_000 + usize::from(key) * 500])?;
    }
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let mut table = tx.table("holes")?;
    for key in (0..24_u8).step_by(3) {
        table.remove(&[key])?;
    }
    tx.commit()?;
    drop(db);
    stored.files().map_err(broken)
}

fn worked(db: &Database) -> Result<()> {
    worked_through(db, (5, 30), TRANSACTIONS, |_| Durability::Durable)
}

/// Makes commits that stay in the redo log, because the log is not emptied.
fn logged(db: &Database) -> Result<()> {
    let both = [Durability::OneFlush, Durability::Durable];
    worked_through(db, (6, 0), 9, |number| both[number as usize % 2])
}

fn worked_through(
    db: &Database,
    (seed, bulk_one_in): (u64, u64),
    transactions: u64,
    how: impl Fn(u64) -> Durability,
) -> Result<()> {
    let shape = Shape {
        bulk_one_in,
        ..Shape::default()
    };
    let (script, mut model) = (Script { seed, shape }, Model::default());
    for number in 1..=transactions {
        model = script.step(db, number, &model, how(number), || ())?;
    }
    Ok(())
}

/// Creates a table with three levels, and values of several chunks.
fn values(db: &Database) -> Result<()> {
    let mut rng = Rng::new(3);
    let mut tx = db.begin_write()?;
    for i in 0..250_u64 {
        let mut value = vec![0; 30 + rng.index(30)];
        rng.fill(&mut value);
        tx.table("pairs")?
            .put(format!("k{:03}", i * 3).as_bytes(), &value)?;
    }
    let mut long = vec![0; LONG_VALUE_BYTES];
    rng.fill(&mut long);
    tx.table("long")?.put(b"k long", &long)?;
    tx.table("long")?.put(b"k short", &[1; 900])?;
    tx.commit()?;
    Ok(())
}

/// Creates nested tables and sets of values, both small ones and ones with pages of their own.
fn below(db: &Database) -> Result<()> {
    let mut rng = Rng::new(4);
    let mut tx = db.begin_write()?;
    for i in 0..400_u64 {
        let path: Vec<[u8; 1]> = (0..rng.index(4))
            .map(|_| [b'a' + rng.below(3) as u8])
            .collect();
        let mut value = vec![0; if i % 97 == 0 { 2000 } else { rng.index(20) }];
        rng.fill(&mut value);
        let mut topics = tx.table("topics")?;
        topics
            .nested_at(&path)
            .put(format!("k{:03}", i * 3).as_bytes(), &value)?;
        let key = format!("k{:03}", i % 21 * 7);
        tx.set_table("pairs")?
            .put(key.as_bytes(), &(i * i).to_be_bytes())?;
    }
    tx.commit()?;
    Ok(())
}

/// Creates series with tree nodes above their leaves; one series has several columns.
fn tree(db: &Database) -> Result<()> {
    for part in 0..12 {
        let mut tx = db.begin_write()?;
        let mut series = tx.series("long")?;
        let rows = TREE_ROWS / 12;
        for i in part * rows..(part + 1) * rows {
            series.insert_point(Steps(i), 0, f64::from((i % 100) as u32) / 4.0)?;
        }
        tx.commit()?;
    }
    let mut tx = db.begin_write()?;
    tx.series("long")?.delete(Steps(10_000)..Steps(13_000))?;
    tx.series("late")?.insert_point(Steps(1), 0, 1.0)?;
    // Appends times and values that become smaller in cold form.
    let mut rng = Rng::new(5);
    let mut series = tx.series("cold")?;
    for i in 0..2_000 {
        let time = i * 1000 + i64::from(rng.u64().leading_zeros());
        series.insert_point(Steps(time), 0, f64::from(rng.u64().leading_zeros()))?;
    }
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let cold = tx.series("cold")?.rewrite_cold(i64::MAX, u64::MAX)?;
    assert!(cold.bytes_after < cold.bytes_before, "{cold:?}");
    tx.commit()?;
    Ok(())
}

/// Creates free space so fragmented that it needs pages of its own in the file, and pending ranges.
fn scattered(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    for i in 0..400_u64 {
        tx.table("t")?
            .put(format!("k{i:03}").as_bytes(), &[i as u8; 400])?;
    }
    tx.commit()?;
    for part in 0..4 {
        let mut tx = db.begin_write()?;
        for i in (part..400).step_by(5) {
            tx.table("t")?.remove(format!("k{i:03}").as_bytes())?;
        }
        tx.commit()?;
    }
    Ok(())
}

/// Creates pinned versions, and pages that only these versions still reference.
fn pinned(db: &Database) -> Result<()> {
    for version in 0..4_u8 {
        let mut tx = db.begin_write()?;
        for i in 0..120_u64 {
            tx.table("t")?
                .put(format!("k{i:03}").as_bytes(), &[version; 100])?;
        }
        tx.commit()?;
        db.pin(&format!("version {version}"))?;
    }
    Ok(())
}

/// Creates sets of values (inline, packed and with pages of their own), small and large nested tables, and policies.
fn sets(db: &Database) -> Result<()> {
    let mut tx = db.begin_write()?;
    for key in 0..4_u8 {
        let count = [1, 5, 60, 400][usize::from(key)];
        for value in 0..count as u32 {
            let mut bytes = [0; 9];
            bytes[..4].copy_from_slice(&value.to_be_bytes());
            tx.set_table("m0")?.put(&[b'm', key], &bytes)?;
        }
    }
    tx.commit()?;
    let mut tx = db.begin_write()?;
    for topic in 0..6_u8 {
        let mut topics = tx.table(TOPICS)?;
        let mut table = topics.nested(&[b'a' + topic]);
        for key in 0..(topic + 1) * (topic + 1) * 4 {
            table.put(&[b'k', key], &[key; 30])?;
        }
        table.put(b"long", &[topic; 2_000])?;
    }
    for name in ["r0", "r1"] {
        let policy = Retention {
            pattern: name.to_owned(),
            keep: Some(Duration::from_secs(60)),
            bytes: Some(1 << 20),
            cold: Some(Duration::from_secs(30)),
            ..Retention::default()
        };
        tx.set_retention(name, &policy)?;
    }
    tx.pin("sets")?;
    tx.commit()?;
    Ok(())
}

/// Creates hash tables of all kinds, with sets of records, older versions, dead records, and runs; some of the runs are
/// partly merged.
fn hashes(db: &Database) -> Result<()> {
    let tables = [
        HashTableOptions::new().seed(1),
        HashTableOptions::new().seed(2).duplicates(true),
        HashTableOptions::new()
            .seed(3)
            .key_form(KeyForm::Hashed)
            .fold_case(true)
            .history(History::Last(2)),
        HashTableOptions::new()
            .seed(4)
            .key_form(KeyForm::Compact)
            .duplicates(true),
    ];
    for round in 0..9_u64 {
        let mut tx = db.begin_write()?;
        for (number, options) in tables.iter().enumerate() {
            let name = format!("hash {number}");
            let mut table = tx.hash_table_with::<[u8], [u8]>(&name, options)?;
            for i in 0..30 {
                let key = format!("k{:03}", (i * round * 7) % 40 * 7);
                table.set(key.as_bytes(), &[round as u8; 12])?;
            }
            table.remove(b"k014")?;
            table.set(b"k long", &[7; 3_000])?;
            if round == 3 {
                table.compact()?;
            }
        }
        tx.commit()?;
    }
    Ok(())
}

/// Creates buffered tables: one with runs, some of them partly merged, and one whose parts are in its root.
fn buffered(db: &Database) -> Result<()> {
    for round in 0..9_u64 {
        let mut tx = db.begin_write()?;
        let mut table = tx.buffered_table::<[u8], [u8]>("buffered")?;
        for i in 0..60 {
            let key = format!("k{:03}", (i * (round + 3)) % 90 * 7);
            table.put(key.as_bytes(), &[round as u8; 12])?;
        }
        table.remove(b"k014")?;
        table.put(b"k long", &[7; 3_000])?;
        if round == 3 {
            table.compact()?;
        }
        if round < 2 {
            let mut table = tx.buffered_table::<[u8], [u8]>("small")?;
            table.put(b"k014", &[round as u8; 4])?;
            if round == 0 {
                table.compact()?;
            }
        }
        tx.commit()?;
    }
    Ok(())
}
