//! `Duplicates_Set_and_Get`: a hundred records for each of 1,000 GUIDs; each record is fetched.

use tidalite::Durability;
use tidalite::hash_table::HashTableOptions;

use super::guids::{Guid, PAIR_BYTES, Text, guid};
use super::own::{BATCH, GETS, Own, SETS, TABLE, open};
use crate::engine::Result;
use crate::meter::{Latencies, Meter};

/// Number of records of a GUID.
const EACH: u64 = 100;

/// The text of record `turn` of a GUID.
fn text(guid: &Guid, turn: u64) -> Result<String> {
    Ok(format!("{}/{turn}", Text::of(guid).text()?))
}

pub(super) fn run(own: &mut Own<'_>) -> Result<()> {
    let guids = own.scaled(1000);
    let count = guids * EACH;
    let dir = own.dir(count, PAIR_BYTES)?;
    let db = open(dir.path())?;
    let options = HashTableOptions::new().duplicates(true);
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir.path());
    // Records are set in rounds; each round sets one record of each GUID.
    let turns_of_batch = (BATCH / guids).max(1) as usize;
    let turns: Vec<u64> = (0..EACH).collect();
    for batch in turns.chunks(turns_of_batch) {
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table_with::<Guid, str>(TABLE, &options)?;
            for turn in batch {
                for n in 0..guids {
                    let guid = guid(n);
                    table.set(&guid, &text(&guid, *turn)?)?;
                }
            }
            txn.commit_with(Durability::Durable)?;
            Ok(())
        })?;
    }
    let sample = meter.finish(count, db.metrics().appends, latencies);
    own.tell("duplicates-set", SETS, count, sample);
    let snapshot = db.begin_read()?;
    let table = snapshot.hash_table::<Guid, str>(TABLE)?;
    let table = table.ok_or("the table is missing")?;
    if (table.count()?, table.count_records()?) != (guids, count) {
        return Err("keys or records are missing".into());
    }
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir.path());
    for n in 0..guids {
        let guid = guid(n);
        latencies.time(|| -> Result<()> {
            let mut turn = 0;
            for number in &table.duplicates(&guid)? {
                let record = table.record(number)?.ok_or("a record is missing")?;
                if record.key != guid || record.value != Some(text(&guid, turn)?) {
                    return Err(format!("record {number} of GUID {n} is wrong").into());
                }
                turn += 1;
            }
            match turn == EACH {
                true => Ok(()),
                false => Err(format!("GUID {n} has {turn} records").into()),
            }
        })?;
    }
    let sample = meter.finish(count, 0, latencies);
    own.tell("duplicates-get", GETS, count, sample);
    Ok(())
}
