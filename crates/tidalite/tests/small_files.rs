//! A small database is a small file, and after closing, the data file alone is the whole database.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::PathBuf;
use tidalite::{Database, Options};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        tidalite_testkit::watch();
        let name = format!("tidalite-small-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

fn pairs(db: &Database, from: u64, to: u64) {
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    for key in from..to {
        table
            .put(&key.to_be_bytes(), b"a value of twenty b.")
            .unwrap();
    }
    tx.commit().unwrap();
}

fn point(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    tx.series("load")
        .unwrap()
        .insert("2014-06-01", 1.0)
        .unwrap();
    tx.commit().unwrap();
}

/// A test case: name, function that writes the content, and expected length of the file in bytes after closing.
type Case = (&'static str, fn(&Database), u64);

fn expect_lengths(page_size: usize, cases: &[Case]) {
    let folder = Folder::new(&page_size.to_string());
    let mut wrong = Vec::new();
    for (at, (name, fill, expected)) in cases.iter().enumerate() {
        let path = folder.0.join(format!("{at}.tdl"));
        let db = Options::new().page_size(page_size).open(&path).unwrap();
        fill(&db);
        db.close().unwrap();
        let length = std::fs::metadata(&path).unwrap().len();
        if length != *expected {
            wrong.push(format!("{name}: {length} bytes, not {expected}"));
        }
        // The data file works without its lock file, as after a copy to another machine, and needs no recovery.
        let alone = folder.0.join(format!("{at}-alone.tdl"));
        std::fs::copy(&path, &alone).unwrap();
        let db = Database::open(&alone).unwrap();
        assert_eq!(db.recovery().replayed, 0, "{name}");
        assert!(db.check().unwrap().is_clean(), "{name}");
        assert_eq!(db.stat().unwrap().log_pages, 0, "{name}");
    }
    assert!(wrong.is_empty(), "pages of {page_size}: {wrong:#?}");
}

const ONE: fn(&Database) = |db| pairs(db, 0, 1);
const HUNDRED: fn(&Database) = |db| pairs(db, 0, 100);
const HUNDRED_COMMITS: fn(&Database) = |db| (0..100).for_each(|key| pairs(db, key, key + 1));

#[test]
fn small_databases_of_4_kib_pages() {
    expect_lengths(
        4096,
        &[
            ("one pair", ONE, 57_344),
            ("one series of one point", point, 81_920),
            ("100 pairs", HUNDRED, 57_344),
            ("100 pairs in 100 commits", HUNDRED_COMMITS, 57_344),
        ],
    );
}

#[test]
fn small_databases_of_512_byte_pages() {
    expect_lengths(
        512,
        &[
            ("one pair", ONE, 28_672),
            ("one series of one point", point, 31_744),
            ("100 pairs", HUNDRED, 35_840),
            ("100 pairs in 100 commits", HUNDRED_COMMITS, 35_840),
        ],
    );
}

#[test]
fn small_databases_of_64_kib_pages() {
    expect_lengths(
        65_536,
        &[
            ("one pair", ONE, 589_824),
            ("one series of one point", point, 983_040),
            ("100 pairs", HUNDRED, 589_824),
            ("100 pairs in 100 commits", HUNDRED_COMMITS, 589_824),
        ],
    );
}
