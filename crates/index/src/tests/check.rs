//! A check finds any error in a hash table whose pages are undamaged.

use crate::block::{Block, BlockBuilder};
use crate::hash::entry::Action;
use crate::hash::state::State;
use crate::parts::{Part, change, part, row};
use crate::{HashOptions, HashReader, HashWriter, History, KeyForm};
use tidalite_kv::Tree;
use tidalite_pager::Result;
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
}

impl Table {
    /// A table with records in the main table, in partly merged runs and in newer runs, and with dead records. With
    /// duplicates, some records are also in sets.
    fn new(options: HashOptions) -> Self {
        let (mut root, mut pages) = (Tree::new(20), ScratchPages::new(512));
        let mut table = HashWriter::create(&mut root, &mut pages, options).unwrap();
        for round in 0..40_u64 {
            for i in 0..12_u64 {
                let key = (i * 5 + round * 7) % 90;
                table
                    .set(format!("key {key}").as_bytes(), b"value")
                    .unwrap();
            }
            table.remove(format!("key {round}").as_bytes()).unwrap();
            table.store(&mut root, &mut pages).unwrap();
            let runs = table.reader(&root, &pages).unwrap().state.runs.clone();
            if round > 20 && !runs.watermark.is_empty() && runs.merging < runs.list.len() {
                break;
            }
        }
        let table = Self { root, pages };
        assert_eq!(table.problems().unwrap(), Vec::<String>::new());
        let state = table.state();
        assert!(state.main_keys > 0 && state.dead > 0 && state.runs.merged > 0);
        table
    }

    fn state(&self) -> State {
        State::decode(&row(&self.root, &self.pages, Part::State).unwrap()).unwrap()
    }

    fn problems(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        HashReader::open(&self.root, &self.pages)?.check(&mut |problem| problems.push(problem))?;
        Ok(problems)
    }

    /// Expects the check to find a problem that contains `text`, or to fail with such an error.
    fn finds(&self, text: &str) {
        let found = match self.problems() {
            Ok(problems) => problems.join("; "),
            Err(error) => error.to_string(),
        };
        assert!(found.contains(text), "{text}: found {found}");
    }

    fn with_state(mut self, wrong: impl FnOnce(&mut State)) -> Self {
        let mut state = self.state();
        wrong(&mut state);
        let key = Part::State.key();
        self.root
            .insert(&mut self.pages, &key, &state.encode())
            .unwrap();
        self
    }

    /// Replaces an entry in the last block that contains an entry for which `wrong` returns a replacement: that entry
    /// is valid.
    fn with_entry(mut self, blocks: Part, wrong: impl Fn(Action) -> Option<Action>) -> Self {
        let table = part(&self.root, &self.pages, blocks).unwrap();
        let mut rows = table.cursor(&self.pages).unwrap();
        let mut changed = None;
        let mut there = rows.last().unwrap();
        while there && changed.is_none() {
            let value = rows.value().unwrap().to_vec().unwrap();
            let block = Block::parse(&value).unwrap();
            let mut built = BlockBuilder::default();
            let mut is_changed = false;
            for index in 0..block.len() {
                let entry = block.entry(index).unwrap();
                let action = Action::decode(entry.payload).unwrap();
                let new = wrong(action).filter(|_| !is_changed);
                is_changed |= new.is_some();
                built.push(entry.key, &new.unwrap_or(action).encode());
            }
            changed = is_changed.then(|| (rows.key().to_vec(), built.encode()));
            there = rows.previous().unwrap();
        }
        drop(rows);
        let (key, block) = changed.expect("such an entry");
        self.put(blocks, &key, Some(&block));
        self
    }

    fn put(&mut self, at: Part, key: &[u8], value: Option<&[u8]>) {
        change(
            &mut self.root,
            &mut self.pages,
            at,
            &mut |w, table| match value {
                Some(value) => table.insert(w, key, value).map(drop),
                None => table.remove(w, key).map(drop),
            },
        )
        .unwrap();
    }

    /// Number of a record in the main table.
    fn number(&self) -> u64 {
        let reader = HashReader::open(&self.root, &self.pages).unwrap();
        let mut walk = reader.walk(b"").unwrap();
        assert!(walk.step().unwrap());
        walk.records().min().unwrap()
    }
}

#[test]
fn wrong_counters_are_found() {
    type Wrong = fn(&mut State);
    let wrong: [(Wrong, &str); 7] = [
        (|state| state.main_keys += 1, "keys, "),
        (|state| state.main_bytes -= 1, "bytes of blocks, "),
        (|state| state.dead += 1, "records are dead"),
        (|state| state.runs.merged -= 1, "entries are merged"),
        (|state| state.runs.list[0].entries += 1, "are noted"),
        (|state| state.runs.list[0].bytes += 1, "are noted"),
        (|state| state.next_record = 3, "the next one is 3"),
    ];
    for (wrong, text) in wrong {
        Table::new(OPTIONS).with_state(wrong).finds(text);
    }
    let lost = Table::new(OPTIONS).with_state(|state| {
        state.runs.list.pop();
    });
    lost.finds("blocks of listed runs");
    let huge = Table::new(OPTIONS).with_state(|state| state.dead = u64::MAX);
    huge.finds("counts below 2^47");
}

#[test]
fn wrong_entries_are_found() {
    let another = |action| match action {
        Action::Set(number) => Some(Action::Set(number - 1)),
        _ => None,
    };
    for options in [
        OPTIONS,
        HashOptions {
            duplicates: true,
            ..OPTIONS
        },
        HashOptions {
            key: KeyForm::Hashed,
            history: History::Last(2),
            ..OPTIONS
        },
    ] {
        for blocks in [Part::Main, Part::Runs] {
            let table = Table::new(options).with_entry(blocks, another);
            let found = table.problems().unwrap();
            assert!(!found.is_empty(), "{options:?} {blocks:?}");
        }
    }
    let to_removal = |action| match action {
        Action::Set(number) => Some(Action::Remove(number)),
        _ => None,
    };
    let table = Table::new(OPTIONS).with_entry(Part::Main, to_removal);
    table.finds("has the entry Remove");
    let missing = |_| Some(Action::Set(1 << 40));
    let table = Table::new(OPTIONS).with_entry(Part::Main, missing);
    table.finds("names record 1099511627776, which is not there");
}

#[test]
fn missing_and_unknown_records_are_found() {
    let mut table = Table::new(OPTIONS);
    let number = table.number();
    table.put(Part::Records, &number.to_be_bytes(), None);
    table.finds(&format!("names record {number}, which is not there"));
    let mut table = Table::new(OPTIONS).with_state(|state| state.next_record += 1);
    let number = table.state().next_record - 1;
    let record = b"\0\x05key 1value";
    table.put(Part::Records, &number.to_be_bytes(), Some(record));
    table.finds("1 records are not in the index");
    let mut table = Table::new(OPTIONS);
    table.put(Part::Records, &number.to_be_bytes(), Some(b"\x03\0"));
    table.finds("kind 3");
    let mut table = Table::new(OPTIONS);
    table.put(Part::Sets, b"\x07\0\0\0\0", Some(&[1, 0]));
    table.finds("a set with the key");
    let mut table = Table::new(OPTIONS);
    table.put(Part::Sets, b"\x02\0\x05key 1\0\0\0\0", Some(&[1, 0]));
    table.finds("1 older versions of key 1, 0 are kept");
    let mut table = Table::new(OPTIONS);
    table.put(Part::Sets, b"\x02\0\x05key 1\0\0\0\0", Some(&[1, 0]));
    table.root.insert(&mut table.pages, b"\x07", b"").unwrap();
    table.finds("a row with the key \\x07");
}

/// Recovery needs only the options and the records, and drops rows that are not records.
#[test]
fn recovery_builds_the_index_from_whole_records() {
    for duplicates in [false, true] {
        let mut table = Table::new(HashOptions {
            duplicates,
            ..OPTIONS
        });
        let reader = HashReader::open(&table.root, &table.pages).unwrap();
        let (keys, records) = (
            reader.count_keys().unwrap(),
            reader.count_records().unwrap(),
        );
        table.put(Part::Records, b"short", Some(b"\0\0"));
        table.put(Part::Records, &[0xff; 8], Some(b"\0\0"));
        table.put(Part::Records, &(1_u64 << 40).to_be_bytes(), Some(b"\x03\0"));
        table.put(Part::Main, b"key", Some(b"no block"));
        for part in [Part::State, Part::Sets] {
            table.root.remove(&mut table.pages, &part.key()).unwrap();
        }
        table
            .root
            .insert(&mut table.pages, b"row", b"more")
            .unwrap();
        HashWriter::recover(&mut table.root, &mut table.pages).unwrap();
        assert_eq!(table.problems().unwrap(), Vec::<String>::new());
        let reader = HashReader::open(&table.root, &table.pages).unwrap();
        assert_eq!(reader.count_keys().unwrap(), keys);
        assert_eq!(reader.count_records().unwrap(), records);
    }
}
