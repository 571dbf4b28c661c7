//! Text keys: `RaptorDBString_test` with 100,000 keys of 1 KB, hashed and ignoring case, and `StringKeyTest` with keys
//! of up to 250 bytes.

use tidalite::Durability;
use tidalite::hash_table::{HashTableOptions, KeyForm};

use super::guids::{Text, guid};
use super::own::{BATCH, GETS, Own, SETS, open};
use crate::engine::Result;
use crate::engine::data::Random;
use crate::meter::{Latencies, Meter};

const LONG_BYTES: usize = 1024;
const SHORT_BYTES_MAX: u64 = 250;
const TABLE: &str = "strings";

/// A path with `bytes` characters that ends with the text of GUID `n`.
fn path(n: u64, bytes: usize) -> Result<String> {
    let guid = guid(n);
    let name = Text::of(&guid);
    let name = name.text()?;
    let mut path = "/folder".repeat(bytes / 7 + 1);
    path.truncate(bytes.saturating_sub(name.len()));
    path.push_str(name);
    Ok(path)
}

fn long(n: u64) -> Result<String> {
    path(n, LONG_BYTES)
}

fn short(n: u64) -> Result<String> {
    path(n, (36 + n % (SHORT_BYTES_MAX - 36)) as usize)
}

pub(super) fn run(own: &mut Own<'_>) -> Result<()> {
    let hashed = HashTableOptions::new().key_form(KeyForm::Hashed);
    measure(own, "long-strings", &hashed.fold_case(true), long, |n| {
        Ok(long(n)?.to_uppercase())
    })?;
    measure(own, "strings", &HashTableOptions::new(), short, short)
}

/// Sets the keys that `set` creates from numbers, and gets the keys that `get` creates from numbers.
fn measure(
    own: &mut Own<'_>,
    name: &str,
    options: &HashTableOptions,
    set: fn(u64) -> Result<String>,
    get: fn(u64) -> Result<String>,
) -> Result<()> {
    let count = own.scaled(100_000);
    let dir = own.dir(count, LONG_BYTES as u64)?;
    let db = open(dir.path())?;
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir.path());
    for first in (0..count).step_by(BATCH as usize) {
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table_with::<str, u64>(TABLE, options)?;
            for n in first..(first + BATCH).min(count) {
                table.set(&set(n)?, &n)?;
            }
            txn.commit_with(Durability::Durable)?;
            Ok(())
        })?;
    }
    let sample = meter.finish(count, db.metrics().appends, latencies);
    own.tell(&format!("{name}-set"), SETS, count, sample);
    let snapshot = db.begin_read()?;
    let table = snapshot.hash_table::<str, u64>(TABLE)?;
    let table = table.ok_or("the table is missing")?;
    if table.count()? != count {
        return Err(format!("{name}: keys are missing").into());
    }
    let (mut latencies, mut random) = (Latencies::default(), Random::new(5));
    let meter = Meter::start(dir.path());
    for at in 0..count {
        let n = random.below(count);
        let key = get(n)?;
        let found = latencies.time_some(at, || table.get(&key))?;
        if found != Some(n) {
            return Err(format!("{name}: key {n} leads to {found:?}").into());
        }
    }
    let sample = meter.finish(count, 0, latencies);
    own.tell(&format!("{name}-get"), GETS, count, sample);
    Ok(())
}
