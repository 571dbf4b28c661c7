//! Measures how many pages the file retains while one snapshot is held during many overwrites.
//!
//! The limit is the size of two versions: the snapshot of the reader and the newest commit. The number of pages in use
//! or pending (freed but still seen by the snapshot) is compared with this limit ([`Held::bound_pages`]); the file size
//! is reported as well.

use std::path::Path;
use tidalite::{Database, Options, Result};

/// Result of the measurement.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Held {
    /// Number of pairs in the table.
    pub pairs: u64,
    /// Number of values that were overwritten while the snapshot was held.
    pub overwrites: u64,
    /// Number of pages in use when the snapshot was taken.
    pub version_pages: u64,
    /// Maximum number of pages in use or pending at the end of a round.
    pub most_pages: u64,
    /// Size of the file in bytes at the end.
    pub file_bytes: u64,
    /// Number of pages in use or pending after the snapshot was dropped.
    pub after_pages: u64,
}

impl Held {
    /// Number of pages that two versions take, which is the limit.
    #[must_use]
    pub fn bound_pages(&self) -> u64 {
        2 * self.version_pages
    }

    /// Number of retained pages divided by the number of pages that two versions take.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.most_pages as f64 / self.bound_pages() as f64
    }
}

fn in_use(db: &Database) -> Result<u64> {
    let stat = db.stat()?;
    Ok(stat.pages_total - stat.pages_free)
}

/// Fills a table with `pairs` values of `value_bytes` bytes, takes a snapshot, and overwrites `overwrites` random
/// values, `per_commit` in each commit.
///
/// # Errors
/// Returns an error of the database.
pub fn long_reader(
    path: &Path,
    pairs: u64,
    value_bytes: usize,
    overwrites: u64,
    per_commit: u64,
    seed: u64,
) -> Result<Held> {
    let db = Options::new().open(path)?;
    let value = |round: u64| vec![round as u8; value_bytes];
    let mut at = 0;
    while at < pairs {
        let mut tx = db.begin_write()?;
        let mut table = tx.table("overwritten")?;
        for key in at..(at + 10_000).min(pairs) {
            table.put(&key.to_be_bytes(), &value(0))?;
        }
        tx.commit()?;
        at += 10_000;
    }
    // These commits make the pages reusable that the load of the table has left pending.
    for round in 0..3u64 {
        let mut tx = db.begin_write()?;
        tx.table("rounds")?.put(b"round", &round.to_be_bytes())?;
        tx.commit()?;
    }
    let mut held = Held {
        pairs,
        version_pages: in_use(&db)?,
        ..Held::default()
    };
    let reader = db.begin_read()?;
    let mut random = seed;
    let mut next = || {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11
    };
    while held.overwrites < overwrites {
        let mut tx = db.begin_write()?;
        let mut table = tx.table("overwritten")?;
        for _ in 0..per_commit {
            table.put(&(next() % pairs).to_be_bytes(), &value(held.overwrites))?;
            held.overwrites += 1;
        }
        tx.commit()?;
        if (held.overwrites / per_commit).is_multiple_of(64) || held.overwrites >= overwrites {
            held.most_pages = held.most_pages.max(in_use(&db)?);
        }
    }
    let table = reader.table("overwritten")?;
    let seen = table.map_or(Ok(None), |table| table.get(&0u64.to_be_bytes()))?;
    assert_eq!(seen, Some(value(0)), "the reader sees what it saw");
    held.file_bytes = db.stat()?.file_bytes;
    drop(reader);
    for round in 3..8u64 {
        let mut tx = db.begin_write()?;
        tx.table("rounds")?.put(b"round", &round.to_be_bytes())?;
        tx.commit()?;
    }
    held.after_pages = in_use(&db)?;
    Ok(held)
}
