//! Operations on a whole file: listing pages by owner, differences from pins, backups and increments, copies, salvage,
//! compaction and maintenance in steps.

use super::errors::{broken, keep};
use super::files::{Files, LARGE_BYTES_MIN, Paths, Stored};
use super::options::options;
use super::read::{read, read_from};
use std::io::sink;
use std::sync::Arc;
use std::time::Duration;
use tidalite::maintenance::{Restore, Salvage, SalvageReport};
use tidalite::retention::Budget;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ReadTxn, Result, Timestamp};

/// Number of bytes that a compaction step moves: few, so that several steps are needed.
const STEP_BYTES: u64 = 16 << 10;

/// Runs all operations that only read the file.
pub(super) fn around(db: &Database, files: &Files, stored: &Stored) -> Result<()> {
    let mut first = Ok(());
    keep(&mut first, db.weights().map(drop));
    keep(&mut first, db.pages(&mut |_| ()));
    keep(&mut first, db.page(7).map(drop));
    let image = db.image().to_writer(&mut sink());
    if stored.second.is_none() {
        // A database of two files has no single image; the error for it is expected.
        keep(&mut first, image.map(drop));
    }
    keep(&mut first, db.copy().to_writer(&mut sink()).map(drop));
    keep(&mut first, db.backup().to_writer(&mut sink()).map(drop));
    let snap = db.begin_read()?;
    let _ = snap.retentions();
    for pin in db.pins()? {
        keep(&mut first, since(db, &snap, &pin.name));
        keep(&mut first, backed_up(db, &pin.name, stored));
    }
    drop(snap);
    salvaged(files, stored)?;
    first
}

/// Salvages a file; the salvaged database must be valid, whatever the file contains.
fn salvaged(files: &Files, stored: &Stored) -> Result<()> {
    let sound = |db: &Database| -> Result<()> {
        let report = db.check()?;
        assert!(report.is_clean(), "saved: {:?}", report.problems);
        let _ = read(db);
        Ok(())
    };
    let told = |report: SalvageReport| (report.is_complete(), report.rows());
    let (first, Some(second)) = files.parts() else {
        let fresh = options().open_storage(Arc::new(MemoryStorage::new()))?;
        let saved = Salvage::of_storage(Arc::clone(&stored.first)).to_database(&fresh);
        let _ = saved.map(told);
        return sound(&fresh);
    };
    let (from, to) = (Paths::new("damaged"), Paths::new("saved"));
    let written = std::fs::write(&from.first, first);
    let written = written.and_then(|()| std::fs::write(&from.second, second));
    written.map_err(broken)?;
    match Salvage::of(&from.first)
        .large_values(&from.second)
        .to(&to.first)
    {
        Ok(report) => {
            let _ = told(report);
            sound(&options().open(&to.first)?)
        }
        // It is acceptable if salvage fails and returns nothing.
        Err(_) => Ok(()),
    }
}

/// Reads a pinned version, and its differences from the newest version: all of them, and the times of each series.
fn since(db: &Database, now: &ReadTxn, pin: &str) -> Result<()> {
    let base = db.begin_read_at(pin)?;
    let mut first = read_from(&base);
    keep(&mut first, now.diff(&base, &mut |_| Ok(())));
    keep(&mut first, base.diff(now, &mut |_| Ok(())));
    for info in now.list("")? {
        keep(&mut first, now.changed_ranges(&base, info.id).map(drop));
    }
    first
}

/// Backs up a pin and an increment since it, and opens the database restored from them.
fn backed_up(db: &Database, pin: &str, stored: &Stored) -> Result<()> {
    let (mut full, mut more) = (Vec::new(), Vec::new());
    db.backup().of(pin).to_writer(&mut full)?;
    db.backup().since(pin).to_writer(&mut more)?;
    let (paths, chain) = (Paths::new("restored"), [&full[..], &more[..]]);
    let (made, options) = match &stored.second {
        None => (Restore::from(chain).to(&paths.first), options()),
        Some(_) => (
            Restore::from(chain)
                .large_values(&paths.second)
                .to(&paths.first),
            options().large_values(&paths.second, LARGE_BYTES_MIN),
        ),
    };
    made.and_then(|_| options.open(&paths.first))
        .and_then(|db| {
            let _ = db.check();
            read(&db)
        })
}

/// Compacts the file completely in steps, with commits and a maintenance step in between; then reads the result.
pub(super) fn compacted(stored: &Stored) -> Result<()> {
    let db = stored.open()?;
    let mut first = Ok(());
    keep(&mut first, steps(&db));
    let budget = Budget {
        time: Duration::from_secs(1),
        series: 2,
        now: Some(Timestamp(2_000)),
        ..Budget::default()
    };
    keep(&mut first, db.maintain(&budget).map(drop));
    keep(
        &mut first,
        db.rewrite_cold("", Timestamp(1_000), &budget).map(drop),
    );
    keep(&mut first, steps(&db));
    keep(&mut first, db.check().map(drop));
    keep(&mut first, read(&db));
    drop(db);
    let db = stored.open()?;
    keep(&mut first, db.check().map(drop));
    keep(&mut first, read(&db));
    first
}

/// Compacts until nothing is left to do. The time limit of the case detects a compaction that never ends.
fn steps(db: &Database) -> Result<()> {
    let mut number = 0_u64;
    while !db.compact(STEP_BYTES)?.done {
        number += 1;
        if number % 4 == 1 {
            let mut tx = db.begin_write()?;
            tx.table("between steps")?
                .put(b"k", &number.to_le_bytes())?;
            tx.commit()?;
        }
    }
    Ok(())
}
