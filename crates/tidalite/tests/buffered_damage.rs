//! Buffered tables in damaged files: a check finds the damage, and salvage leaves a clean file whose answers are right or
//! reported as lost.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::maintenance::{Salvage, SalvageReport};
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::{Database, Options, Result, Tuning};
use tidalite_testkit::rng::Rng;

const PAGE: usize = 512;
/// Kinds of pages in their headers, from docs/format.md, section 2.
const BRANCH: u8 = 3;
const LEAF: u8 = 4;
const CHUNK: u8 = 5;
/// Number of the first table of a user.
const FIRST_TABLE: u8 = 16;

const NAME: &str = "buffered";
const KEYS: u64 = 600;

type Pairs = BTreeMap<u64, String>;

fn options() -> Options {
    tidalite_testkit::watch();
    // Without a log, so that all pages are in their places.
    let tuning = Tuning::new().log_bytes(0).run_bytes(2 << 10);
    Options::new().page_size(PAGE).tuning(tuning)
}

/// A file with a buffered table whose oldest runs are merged into its rows in part, and its pairs.
fn image() -> (Vec<u8>, Pairs) {
    let storage = Arc::new(MemoryStorage::new());
    let db = options().open_storage(storage.clone()).unwrap();
    let rng = &mut Rng::new(12);
    let mut pairs = Pairs::new();
    for round in 0..50 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.buffered_table::<u64, str>(NAME).unwrap();
        for _ in 0..30 {
            let key = rng.below(KEYS);
            if rng.one_in(6) {
                table.remove(&key).unwrap();
                pairs.remove(&key);
            } else {
                let value = format!("value of round {round}");
                table.put(&key, &value).unwrap();
                pairs.insert(key, value);
            }
        }
        tx.commit().unwrap();
    }
    assert!(db.check().unwrap().is_clean());
    drop(db);
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    (bytes, pairs)
}

fn content(db: &Database) -> Result<Pairs> {
    match db.begin_read()?.buffered_table::<u64, str>(NAME)? {
        Some(table) => {
            let pairs = table.range(..)?.collect::<Result<Pairs>>()?;
            assert_eq!(table.count()?, pairs.len() as u64);
            Ok(pairs)
        }
        None => Ok(Pairs::new()),
    }
}

fn opened(bytes: Vec<u8>) -> Result<Database> {
    options().open_storage(Arc::new(MemoryStorage::from_image(bytes)))
}

/// The database that salvage makes of a file.
fn saved(bytes: Vec<u8>) -> (Database, SalvageReport) {
    let db = options()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let damaged = Arc::new(MemoryStorage::from_image(bytes));
    let salvage = Salvage::of_storage(damaged).to_database(&db).unwrap();
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    (db, salvage)
}

/// The pages of the table that have this kind.
fn pages_of(bytes: &[u8], kind: u8) -> Vec<usize> {
    let pages = 24_576 / PAGE..bytes.len() / PAGE;
    let is_of = |page: &usize| {
        let header = &bytes[page * PAGE..];
        let address = u64::from_le_bytes(header[16..24].try_into().unwrap());
        header[8] == kind && header[10] == FIRST_TABLE && address == (page * PAGE) as u64
    };
    pages.filter(is_of).collect()
}

#[test]
fn a_lost_page_leaves_a_clean_file_and_no_silent_loss() {
    let (bytes, pairs) = image();
    let (db, salvage) = saved(bytes.clone());
    assert!(salvage.is_complete(), "{:?}", salvage.lost);
    assert_eq!(content(&db).unwrap(), pairs);
    for kind in [BRANCH, LEAF, CHUNK] {
        let (mut damaged, mut whole, mut kept) = (0, 0, 0);
        for page in pages_of(&bytes, kind) {
            let mut wrong = bytes.clone();
            wrong[page * PAGE + 60] ^= 1;
            let is_clean = opened(wrong.clone()).is_ok_and(|db| db.check().unwrap().is_clean());
            if is_clean {
                // No page of the newest version.
                continue;
            }
            damaged += 1;
            let (db, salvage) = saved(wrong);
            let found = content(&db).unwrap();
            let right = |(key, value): &(&u64, &String)| pairs.get(key) == Some(value);
            kept += found.iter().filter(right).count();
            whole += usize::from(found == pairs);
            assert!(!salvage.is_complete(), "page {page}");
        }
        assert!(damaged > 0, "no page of kind {kind}");
        let mean = kept / damaged;
        println!(
            "kind {kind}: {whole} of {damaged} whole, {mean} of {} pairs kept",
            pairs.len()
        );
        // Leaves below a lost branch are found by their headers.
        assert!(kind != BRANCH || whole == damaged, "{whole} of {damaged}");
        assert!(mean > pairs.len() / 2, "{mean} of {}", pairs.len());
    }
}
