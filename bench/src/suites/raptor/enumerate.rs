//! `Enumerate`: 100,001 GUIDs, listed beginning at a given GUID.

use tidalite::hash_table::HashTableOptions;

use super::guids::{Guid, PAIR_BYTES, guid};
use super::own::{Own, open, read, set_texts};
use crate::engine::Result;
use crate::meter::{Latencies, Meter};

/// Number of GUIDs at which a listing begins; some of them do not exist.
const FROM: u64 = 20;

pub(super) fn run(own: &mut Own<'_>) -> Result<()> {
    let count = own.scaled(100_001);
    let dir = own.dir(count, PAIR_BYTES)?;
    let db = open(dir.path())?;
    set_texts(&db, &HashTableOptions::new(), 0..count)?;
    let mut all: Vec<Guid> = (0..count).map(guid).collect();
    all.sort_unstable();
    let (mut latencies, mut listed) = (Latencies::default(), 0);
    let meter = Meter::start(dir.path());
    read(&db, |table| {
        for turn in 0..FROM {
            // Every second GUID does not exist.
            let from = guid(turn * count / FROM + turn % 2 * count);
            let expected = &all[all.partition_point(|guid| *guid < from)..];
            listed += expected.len() as u64;
            latencies.time(|| -> Result<()> {
                let mut keys = table.range(from..)?;
                for guid in expected {
                    let (key, records) = keys.next().ok_or("the index ends too early")??;
                    if key != *guid || records.len() != 1 {
                        return Err(format!("{key:?} is listed where {guid:?} was set").into());
                    }
                }
                match keys.next() {
                    None => Ok(()),
                    Some(_) => Err("the index goes on behind the last key".into()),
                }
            })?;
        }
        Ok(())
    })?;
    let sample = meter.finish(listed, 0, latencies);
    own.tell("enumerate", ("keys/s", false), count, sample);
    Ok(())
}
