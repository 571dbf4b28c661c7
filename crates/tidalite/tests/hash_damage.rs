//! Hash tables in damaged files: a check finds the damage, and salvage rescues the records and builds the index anew.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::hash_table::{HashTableOptions, History, KeyForm};
use tidalite::maintenance::Salvage;
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

const NAME: &str = "hash";
const KEYS: u64 = 2000;

fn options() -> Options {
    tidalite_testkit::watch();
    // Without a log, so that all pages are in their places.
    Options::new()
        .page_size(PAGE)
        .tuning(Tuning::new().log_bytes(0))
}

fn kinds() -> [HashTableOptions; 3] {
    [
        HashTableOptions::new().history(History::Last(2)),
        HashTableOptions::new().duplicates(true),
        HashTableOptions::new()
            .key_form(KeyForm::Hashed)
            .history(History::All),
    ]
}

/// A file with a hash table whose state, with a list of many runs, and whose blocks lie in extents.
fn image(kind: &HashTableOptions) -> Vec<u8> {
    let storage = Arc::new(MemoryStorage::new());
    let db = options().open_storage(storage.clone()).unwrap();
    let rng = &mut Rng::new(11);
    for round in 0..52 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<u64, str>(NAME, kind).unwrap();
        for _ in 0..60 {
            let key = rng.below(KEYS);
            match rng.one_in(8) {
                true => drop(table.remove(&key).unwrap()),
                false => drop(table.set(&key, &format!("{round}")).unwrap()),
            }
        }
        if round == 20 {
            table.compact().unwrap();
        }
        tx.commit().unwrap();
    }
    assert!(db.check().unwrap().is_clean());
    drop(db);
    let mut bytes = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Value, record numbers and versions of each key.
type Answers = BTreeMap<u64, (Option<String>, Vec<u64>, Vec<u64>)>;

fn answers(db: &Database) -> Result<Answers> {
    let snap = db.begin_read()?;
    let Some(table) = snap.hash_table::<u64, str>(NAME)? else {
        return Ok(Answers::new());
    };
    let mut answers = Answers::new();
    for key in 0..KEYS {
        let history = table.history(&key)?.into_iter();
        let answer = (
            table.get(&key)?,
            table.duplicates(&key)?.iter().collect(),
            history.map(|version| version.number).collect(),
        );
        answers.insert(key, answer);
    }
    let there = answers.values().filter(|(value, ..)| value.is_some());
    assert_eq!(table.count()?, there.count() as u64);
    Ok(answers)
}

fn opened(bytes: Vec<u8>) -> Result<Database> {
    options().open_storage(Arc::new(MemoryStorage::from_image(bytes)))
}

/// The database that salvage makes of a file.
fn saved(bytes: Vec<u8>) -> Database {
    let db = options()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let damaged = Arc::new(MemoryStorage::from_image(bytes));
    Salvage::of_storage(damaged).to_database(&db).unwrap();
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:?}", report.findings);
    db
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

/// Flips a bit of each page in turn, and calls `each` with the damaged file. Pages that the newest version does not use
/// are skipped: a check does not find damage in them.
fn damaged(bytes: &[u8], kind: u8, each: &mut dyn FnMut(Vec<u8>, usize)) -> usize {
    let mut count = 0;
    for page in pages_of(bytes, kind) {
        let mut wrong = bytes.to_vec();
        wrong[page * PAGE + 60] ^= 1;
        let is_clean = opened(wrong.clone()).is_ok_and(|db| db.check().unwrap().is_clean());
        if !is_clean {
            count += 1;
            each(wrong, page);
        }
    }
    count
}

/// The extents of a table hold its state and the blocks of its index: whichever is lost, salvage gives all answers.
#[test]
fn a_lost_state_or_block_of_the_index_is_built_anew() {
    for kind in kinds() {
        let bytes = image(&kind);
        let expected = answers(&opened(bytes.clone()).unwrap()).unwrap();
        assert_eq!(answers(&saved(bytes.clone())).unwrap(), expected);
        let mut states = 0;
        let count = damaged(&bytes, CHUNK, &mut |wrong, page| {
            // The state begins with the number of the next record, a block with the lengths of keys and payloads.
            let first = &bytes[page * PAGE + 48..][..8];
            states += usize::from(u64::from_le_bytes(first.try_into().unwrap()) < 1 << 24);
            assert_eq!(answers(&saved(wrong)).unwrap(), expected, "page {page}");
        });
        assert!(
            count >= 8 && states == 1,
            "{count} extents, {states} states"
        );
    }
}

/// Whichever page of the tree is lost: salvage ends with a clean file, in which records that are there have their values.
/// Below a lost branch no record is lost, because leaves are found by their headers.
#[test]
fn any_lost_page_leaves_a_clean_file() {
    for kind in kinds() {
        let bytes = image(&kind);
        let expected = answers(&opened(bytes.clone()).unwrap()).unwrap();
        let branches = damaged(&bytes, BRANCH, &mut |wrong, page| {
            assert_eq!(answers(&saved(wrong)).unwrap(), expected, "branch {page}");
        });
        assert!(branches >= 3, "{branches} branches");
        let (mut whole, mut lost) = (0, 0);
        damaged(&bytes, LEAF, &mut |wrong, _| match answers(&saved(wrong)) {
            Ok(found) if found == expected => whole += 1,
            _ => lost += 1,
        });
        println!("{whole} files with all answers, {lost} without");
        assert!(whole > 0 && lost > 0);
    }
}
