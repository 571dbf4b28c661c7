//! The sets and gets that the article's tests share, and the reporting of their samples. Commits are durable.

use std::path::Path;

use tidalite::hash_table::{HashTable, HashTableOptions};
use tidalite::{Database, Durability};

use super::guids::{Guid, Text, guid};
use super::quoted;
use crate::args::Options;
use crate::child::Unit;
use crate::contest::Contest;
use crate::engine::data::Random;
use crate::engine::{Result, TIDALITE_HASH};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;

/// Number of sets in a transaction.
pub(super) const BATCH: u64 = 10_000;
/// Name of the table.
pub(super) const TABLE: &str = "guids";
/// Number of keys in the article's usual runs; its other counts are scaled in proportion to `--keys`.
const KEYS_FULL: u64 = 10_000_000;
/// Number of keys in a call that gets many.
const MANY: usize = 100;

pub(super) const SETS: Unit = ("sets/s", false);
pub(super) const GETS: Unit = ("gets/s", false);

/// The options of the suite, and the contest to which the samples go.
pub(super) struct Own<'o> {
    pub(super) options: &'o Options,
    pub(super) contest: &'o mut Contest,
}

impl Own<'_> {
    /// Scales a count of the article in proportion to the number of keys, but not below 50.
    pub(super) fn scaled(&self, full: u64) -> u64 {
        let scaled = u128::from(full) * u128::from(self.options.keys) / u128::from(KEYS_FULL);
        (scaled as u64).clamp(50, full)
    }

    /// A new directory for the files of a test that sets this number of pairs.
    pub(super) fn dir(&self, pairs: u64, pair_bytes: u64) -> Result<os::TempDir> {
        let dir = os::TempDir::within(&self.options.dir, "raptor")?;
        let bytes = pairs * pair_bytes;
        os::expect_disk(dir.path(), bytes * 4 + (64 << 20))
            .map_err(|short| format!("{short}: use --keys"))?;
        os::settle(dir.path())?;
        os::touch_memory(bytes * 2, 0);
        Ok(dir)
    }

    /// Adds our sample of a case with `count` keys, and the quoted figures.
    pub(super) fn tell(&mut self, case: &str, unit: Unit, count: u64, sample: Sample) {
        let (name, less_is_better) = unit;
        self.contest
            .add(case, name, less_is_better, TIDALITE_HASH, sample);
        quoted::add(case, count, unit, self.contest);
    }
}

/// Opens or creates a database in a directory.
pub(super) fn open(dir: &Path) -> Result<Database> {
    Ok(Database::open(dir.join("raptor.tdl"))?)
}

/// Sets GUIDs with their texts in durable transactions.
pub(super) fn set_texts(
    db: &Database,
    options: &HashTableOptions,
    numbers: std::ops::Range<u64>,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut first = numbers.start;
    while first < numbers.end {
        let end = (first + BATCH).min(numbers.end);
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table_with::<Guid, str>(TABLE, options)?;
            for n in first..end {
                let guid = guid(n);
                table.set(&guid, Text::of(&guid).text()?)?;
            }
            txn.commit_with(Durability::Durable)?;
            Ok(())
        })?;
        first = end;
    }
    Ok(latencies)
}

/// Passes the table of GUIDs and texts in the newest snapshot to `work`.
pub(super) fn read<T>(
    db: &Database,
    work: impl FnOnce(&HashTable<'_, Guid, str>) -> Result<T>,
) -> Result<T> {
    let snapshot = db.begin_read()?;
    let table = snapshot.hash_table(TABLE)?.ok_or("the table is missing")?;
    work(&table)
}

/// Gets the texts of random GUIDs among the first `there` GUIDs.
pub(super) fn get_texts(
    table: &HashTable<'_, Guid, str>,
    random: &mut Random,
    there: u64,
    gets: u64,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for n in 0..gets {
        let guid = guid(random.below(there));
        let value = latencies.time_some(n, || table.get(&guid))?;
        expect_text(&guid, value.as_deref())?;
    }
    Ok(latencies)
}

/// Gets the texts of random GUIDs, many in each call.
pub(super) fn get_many_texts(
    table: &HashTable<'_, Guid, str>,
    random: &mut Random,
    there: u64,
    calls: u64,
) -> Result<Latencies> {
    let mut latencies = Latencies::default();
    for _ in 0..calls {
        let guids: [Guid; MANY] = std::array::from_fn(|_| guid(random.below(there)));
        let values = latencies.time(|| table.get_many(&guids))?;
        for (guid, value) in guids.iter().zip(values) {
            expect_text(guid, value.as_deref())?;
        }
    }
    Ok(latencies)
}

/// Measures gets of the texts of the first `count` GUIDs. There are `count` gets, first one by one, then many in each
/// call.
pub(super) fn measure_gets(
    own: &mut Own<'_>,
    db: &Database,
    dir: &Path,
    case: &Case,
) -> Result<()> {
    let Case {
        prefix,
        label,
        count,
    } = case;
    let meter = Meter::start(dir);
    let latencies = read(db, |table| {
        get_texts(table, &mut Random::new(1), *count, *count)
    })?;
    let sample = meter.finish(*count, 0, latencies);
    own.tell(&format!("{prefix}get-{label}"), GETS, *count, sample);
    let calls = count.div_ceil(MANY as u64);
    let meter = Meter::start(dir);
    let latencies = read(db, |table| {
        get_many_texts(table, &mut Random::new(2), *count, calls)
    })?;
    let sample = meter.finish(calls * MANY as u64, 0, latencies);
    own.tell(&format!("{prefix}get-many-{label}"), GETS, *count, sample);
    Ok(())
}

/// The names of the cases for a number of keys.
pub(super) struct Case {
    pub(super) prefix: &'static str,
    pub(super) label: String,
    pub(super) count: u64,
}

fn expect_text(guid: &Guid, value: Option<&str>) -> Result<()> {
    match value.is_some_and(|value| value.as_bytes() == Text::of(guid).bytes()) {
        true => Ok(()),
        false => Err(format!("the value of {guid:?} is {value:?}").into()),
    }
}
