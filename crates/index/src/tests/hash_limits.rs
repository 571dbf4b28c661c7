//! Hash tables at their limits: large record numbers, rows that are not records, lost records, and many records of a
//! key.

use crate::block::Block;
use crate::hash::record::{self, Kind};
use crate::hash::state::State;
use crate::parts::{Part, change, part, row};
use crate::{HashOptions, HashReader, HashWriter, History, KeyForm, RECORDS_MAX};
use tidalite_kv::Tree;
use tidalite_pager::{Error, Result};
use tidalite_testkit::ScratchPages;

const OPTIONS: HashOptions = HashOptions {
    key: KeyForm::Whole { bytes_max: 100 },
    duplicates: false,
    fold_case: false,
    history: History::None,
    seed: 1,
};

struct Table {
    root: Tree,
    pages: ScratchPages,
    writer: HashWriter,
}

impl Table {
    fn new(options: HashOptions) -> Self {
        tidalite_testkit::watch();
        let (mut root, mut pages) = (Tree::new(20), ScratchPages::new(512));
        let writer = HashWriter::create(&mut root, &mut pages, options).unwrap();
        Self {
            root,
            pages,
            writer,
        }
    }

    fn store(&mut self) {
        self.writer.store(&mut self.root, &mut self.pages).unwrap();
    }

    fn compact(&mut self) {
        self.writer
            .compact(&mut self.root, &mut self.pages)
            .unwrap();
    }

    fn rebuild(&mut self) -> Result<()> {
        self.writer.rebuild(&mut self.root, &mut self.pages)
    }

    fn recover(&mut self) {
        self.writer = HashWriter::recover(&mut self.root, &mut self.pages).unwrap();
        self.assert_sound();
    }

    fn reader(&self) -> HashReader<&ScratchPages> {
        self.writer.reader(&self.root, &self.pages).unwrap()
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        let reader = self.reader();
        let found = reader.get(key).unwrap();
        found.map(|record| record.value().unwrap().to_vec())
    }

    /// Stores a row in the record store, bypassing the writer.
    fn put_row(&mut self, number: u64, bytes: &[u8]) {
        change(
            &mut self.root,
            &mut self.pages,
            Part::Records,
            &mut |w, rows| rows.insert(w, &number.to_be_bytes(), bytes).map(drop),
        )
        .unwrap();
    }

    fn remove_row(&mut self, number: u64) {
        change(
            &mut self.root,
            &mut self.pages,
            Part::Records,
            &mut |w, rows| rows.remove(w, &number.to_be_bytes()).map(drop),
        )
        .unwrap();
    }

    fn assert_sound(&self) {
        let mut problems = Vec::new();
        let mut note = |problem| problems.push(problem);
        self.reader().check(&mut note).unwrap();
        assert_eq!(problems, Vec::<String>::new());
    }
}

fn record(kind: Kind, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    record::encode(kind, key, value, &mut bytes);
    bytes
}

/// Numbers beyond 2^28 and beyond 2^32, where the numbers of RaptorDB end, and up to the last one.
#[test]
fn record_numbers_may_be_great() {
    let kinds = [
        OPTIONS,
        HashOptions {
            history: History::Last(2),
            key: KeyForm::Compact,
            ..OPTIONS
        },
        HashOptions {
            duplicates: true,
            ..OPTIONS
        },
    ];
    for options in kinds {
        for first in [(1 << 28) - 150, (1 << 32) - 150, RECORDS_MAX - 300] {
            let mut table = Table::new(options);
            table.writer.start_at(first);
            let key = |n: u64| format!("key {}", n % 23).into_bytes();
            for n in 0..300 {
                let number = match n % 31 {
                    30 => table.writer.remove(&key(n)),
                    _ => table.writer.set(&key(n), &n.to_be_bytes()),
                };
                assert_eq!(number.unwrap(), first + n);
                if n % 20 == 19 {
                    table.store();
                }
            }
            for step in 0..3 {
                for n in 277..300_u64 {
                    let expected = (n % 31 != 30).then(|| n.to_be_bytes().to_vec());
                    assert_eq!(table.get(&key(n)), expected, "{options:?}");
                    let newest = table.reader().duplicates(&key(n)).unwrap().max();
                    assert_eq!(newest, expected.map(|_| first + n));
                }
                table.assert_sound();
                match step {
                    0 => table.rebuild().unwrap(),
                    _ => table.compact(),
                }
            }
            let next = table.writer.set(b"one more", b"");
            match first + 300 == RECORDS_MAX {
                true => assert!(matches!(next, Err(Error::Limit { .. }))),
                false => assert_eq!(next.unwrap(), first + 300),
            }
        }
    }
}

#[test]
fn rows_that_are_no_records_are_refused_and_recovered_from() {
    let long = record(Kind::Set, &[b'x'; 70_000], b"");
    let short = record(Kind::Set, b"k", b"v");
    let one = record(Kind::RemoveOne, b"k", &[0; 8]);
    let cases: [(u64, &[u8]); 6] = [
        (u64::MAX, &short),
        (RECORDS_MAX, &short),
        (7, &long),
        (7, &one),
        (7, b""),
        (7, &[9, 1, b'k']),
    ];
    for (number, bytes) in cases {
        let mut table = Table::new(OPTIONS);
        table.writer.set(b"a", b"1").unwrap();
        table.store();
        table.put_row(number, bytes);
        let refused = table.rebuild().unwrap_err();
        assert!(matches!(refused, Error::Corrupt(_)), "{refused}");
        table.recover();
        assert_eq!(table.get(b"a"), Some(b"1".to_vec()));
        assert_eq!(table.get(b"k"), None);
        assert_eq!(table.reader().stat().unwrap().records, 1);
    }
}

/// A value that was replaced or removed does not come back when the record that replaced or removed it is lost.
#[test]
fn dead_records_do_not_come_back() {
    let mut table = Table::new(OPTIONS);
    table.writer.set(b"set", b"old").unwrap();
    let newest = table.writer.set(b"set", b"new").unwrap();
    table.writer.set(b"removed", b"old").unwrap();
    let removal = table.writer.remove(b"removed").unwrap();
    table.writer.set(b"other", b"value").unwrap();
    table.store();
    assert_eq!(table.reader().stat().unwrap().dead, 2);
    table.remove_row(newest);
    table.remove_row(removal);
    table.recover();
    assert_eq!(table.get(b"set"), None);
    assert_eq!(table.get(b"removed"), None);
    assert_eq!(table.get(b"other"), Some(b"value".to_vec()));
}

/// A removal counts as one of the versions of a key, before and after it is merged into the main table.
#[test]
fn a_removal_takes_no_version_from_the_history() {
    for key in [OPTIONS.key, KeyForm::Hashed] {
        for (most, expected) in [(1, vec![3, 2]), (2, vec![3, 2, 1])] {
            let mut table = Table::new(HashOptions {
                key,
                history: History::Last(most),
                ..OPTIONS
            });
            for value in [b"10", b"20", b"30"] {
                table.writer.set(b"k", value).unwrap();
                table.store();
            }
            table.writer.remove(b"k").unwrap();
            table.store();
            for _ in 0..3 {
                let reader = table.reader();
                let history = reader.history(b"k").unwrap();
                let numbers: Vec<u64> = history.iter().map(|version| version.number()).collect();
                assert_eq!(numbers, expected);
                table.compact();
            }
            let stat = table.reader().stat().unwrap();
            assert_eq!(stat.records, u64::from(most) + 1);
            table.rebuild().unwrap();
            table.assert_sound();
        }
    }
}

/// A key that is set many times in one transaction adds only one entry to the index.
#[test]
fn entries_of_one_transaction_are_settled() {
    for key in [OPTIONS.key, KeyForm::Compact] {
        let mut table = Table::new(HashOptions { key, ..OPTIONS });
        for n in 0..5000_u32 {
            table.writer.set(b"counter", &n.to_be_bytes()).unwrap();
        }
        table.store();
        let stat = table.reader().stat().unwrap();
        assert_eq!(
            (stat.run_entries, stat.records),
            (1, 1),
            "dead records are gone"
        );
        let runs = part(&table.root, &table.pages, Part::Runs).unwrap();
        let mut rows = runs.cursor(&table.pages).unwrap();
        assert!(rows.first().unwrap());
        let block = rows.value().unwrap().to_vec().unwrap();
        assert_eq!(Block::parse(&block).unwrap().len(), 1);
        assert_eq!(table.get(b"counter"), Some(4999_u32.to_be_bytes().to_vec()));
    }
}

#[test]
fn a_run_cannot_have_more_entries_than_bytes() {
    let mut table = Table::new(OPTIONS);
    table.writer.set(b"a", b"1").unwrap();
    table.store();
    let mut bytes = row(&table.root, &table.pages, Part::State).unwrap();
    let state = State::decode(&bytes).unwrap();
    assert_eq!(state.runs.list.len(), 1);
    // The last run ends the row: its number, entries, bytes and lines of the filter.
    let entries = bytes.len() - 20;
    assert_eq!(bytes[entries..][..8], 1_u64.to_le_bytes());
    bytes[entries..][..8].copy_from_slice(&(1_u64 << 46).to_le_bytes());
    let refused = State::decode(&bytes).unwrap_err();
    assert!(matches!(refused, Error::Corrupt(_)), "{refused}");
}

/// Lookups between two stores open the table only once, and share the locations of its filters.
#[test]
fn readers_of_one_state_share_it() {
    let mut table = Table::new(OPTIONS);
    for n in 0..100_u64 {
        table.writer.set(&n.to_be_bytes(), b"").unwrap();
    }
    table.store();
    let (one, two) = (table.reader(), table.reader());
    assert!(std::ptr::eq(&*one, &*two));
    table.writer.set(b"a", b"1").unwrap();
    assert_eq!(table.get(b"a"), None, "it is in memory");
    table.store();
    assert_eq!(table.get(b"a"), Some(b"1".to_vec()));
}

/// Many records of a key are removed, one by one and all at once.
#[test]
fn many_records_of_a_key_are_removed() {
    for key in [OPTIONS.key, KeyForm::Hashed] {
        let mut table = Table::new(HashOptions {
            key,
            duplicates: true,
            ..OPTIONS
        });
        for n in 0..3000_u64 {
            table.writer.set(b"k", &n.to_be_bytes()).unwrap();
            if n % 1000 == 999 {
                table.store();
            }
        }
        let mut left = table.reader().duplicates(b"k").unwrap();
        for number in (0..3000).step_by(2) {
            let Table {
                root,
                pages,
                writer,
            } = &mut table;
            assert!(writer.has_record(root, &*pages, b"k", number).unwrap());
            writer.remove_record(b"k", number).unwrap();
            assert!(!writer.has_record(root, &*pages, b"k", number).unwrap());
            left.remove(number);
        }
        table.store();
        assert_eq!(table.reader().duplicates(b"k").unwrap(), left);
        table.assert_sound();
        table.compact();
        assert_eq!(table.reader().duplicates(b"k").unwrap(), left);
        table.assert_sound();
        table.writer.remove(b"k").unwrap();
        table.store();
        assert!(!table.reader().contains(b"k").unwrap());
        table.compact();
        assert_eq!(table.reader().stat().unwrap().records, 0);
        table.assert_sound();
    }
}
