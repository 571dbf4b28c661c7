//! A file with hash tables and a buffered table.

use super::tables::noise;
use super::{Made, make, small, small_tuning};
use tidalite::Database;
use tidalite::hash_table::{HashTableOptions, History, KeyForm};

/// Bytes of runs from which they are merged into the main table: a few dozen entries.
const RUN_BYTES: u64 = 1024;

/// A file with hash tables of all kinds, one of which is being merged.
pub(crate) fn hashes() -> Made {
    let tuning = small_tuning(512).run_bytes(RUN_BYTES);
    make(&small(512).tuning(tuning), |db| {
        few(db);
        duplicates(db);
        versions(db, "two versions", History::Last(2));
        versions(db, "all versions", History::All);
        hashed(db, "hashed", KeyForm::Hashed, false);
        hashed(db, "compact", KeyForm::Compact, true);
        merging(db);
        buffered(db);
    })
}

fn few(db: &Database) {
    let mut tx = db.begin_write().unwrap();
    let mut few = tx.hash_table::<str, u64>("few").unwrap();
    for (number, key) in ["bolt", "nut", ""].iter().enumerate() {
        few.set(key, &(number as u64)).unwrap();
    }
    tx.hash_table::<[u8], [u8]>("none").unwrap();
    let mut large = tx.hash_table::<[u8], [u8]>("large").unwrap();
    large.set(b"value", &noise(1, 70_000)).unwrap();
    large.set(&[7; 255], b"a long key").unwrap();
    tx.commit().unwrap();
}

/// Keys with more records than entries of the main table may have, some of them removed.
fn duplicates(db: &Database) {
    let options = HashTableOptions::new().duplicates(true);
    for round in 0..6_u64 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx
            .hash_table_with::<[u8], [u8]>("duplicates", &options)
            .unwrap();
        for key in 0..12_u8 {
            for copy in 0..=key {
                let value = [round as u8, copy];
                table.set(&[key, key][..], &value[..]).unwrap();
            }
        }
        if round == 3 {
            table.compact().unwrap();
        }
        if round > 2 {
            let numbers = table.view().unwrap().duplicates(&[9, 9]).unwrap();
            for number in numbers.iter().step_by(3) {
                assert!(table.remove_record(&[9, 9], number).unwrap());
            }
            assert!(table.remove(&[round as u8, round as u8]).unwrap());
        }
        tx.commit().unwrap();
    }
}

/// Keys with older versions and removals, in the main table and in runs.
fn versions(db: &Database, name: &str, history: History) {
    let options = HashTableOptions::new().history(history);
    for round in 0..5_u64 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<u64, str>(name, &options).unwrap();
        for key in 0..10 {
            if round > key % 4 {
                table.set(&key, &format!("{round} of {key}")).unwrap();
            }
            if (round + key).is_multiple_of(4) {
                table.remove(&key).unwrap();
            }
        }
        if round == 2 {
            table.compact().unwrap();
        }
        tx.commit().unwrap();
    }
}

/// Long keys in both cases, of which the index holds hashes.
fn hashed(db: &Database, name: &str, form: KeyForm, duplicates: bool) {
    let options = HashTableOptions::new()
        .key_form(form)
        .fold_case(true)
        .seed(7)
        .duplicates(duplicates);
    for round in 0..2 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table_with::<str, u32>(name, &options).unwrap();
        for number in 0..15 {
            let key = match round {
                0 => format!(
                    "Stra\u{df}e {number}: \u{c4}\u{3a3}, {}",
                    "Long ".repeat(20)
                ),
                _ => format!(
                    "STRA\u{df}E {number}: \u{e4}\u{3c2}, {}",
                    "lonG ".repeat(20)
                ),
            };
            if number % 10 == 4 && round == 1 {
                assert!(table.remove(&key).unwrap());
            } else if number % 2 == round {
                table.set(&key, &number).unwrap();
            } else if number < 6 {
                table.set(&key.to_lowercase(), &number).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// A table of which some runs are merged into the main table in part.
fn merging(db: &Database) {
    for round in 0..10_u64 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.hash_table::<[u8; 8], u16>("merging").unwrap();
        for number in 0..24_u64 {
            let key = (round * 24 + number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            table.set(&key.to_be_bytes(), &(number as u16)).unwrap();
            if number % 8 == 3 {
                table.remove(&key.to_be_bytes()).unwrap();
            }
        }
        tx.commit().unwrap();
    }
}

/// A buffered table with rows and two runs, one of them with a filter.
fn buffered(db: &Database) {
    for round in 0..3_u16 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.buffered_table::<u16, u8>("buffered").unwrap();
        for number in 0..[200, 1100, 20][usize::from(round)] {
            let key = (number + round).wrapping_mul(0x9e37);
            match number % 7 {
                3 => table.remove(&key).unwrap(),
                _ => table.put(&key, &(number as u8)).unwrap(),
            }
        }
        if round == 0 {
            table.compact().unwrap();
        }
        tx.commit().unwrap();
    }
}
