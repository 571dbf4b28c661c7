//! Pure index speed: GUIDs and numbers in memory, compared with the hash table `hashbrown` and the standard library's
//! `BTreeMap`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidalite::storage::MemoryStorage;

use super::guids::{Guid, guid};
use super::own::{BATCH, GETS, Own, SETS, TABLE};
use crate::engine::data::Random;
use crate::engine::{Kind, Result};
use crate::meter::{Latencies, Meter};

/// Number of keys in a call that gets many.
const MANY: usize = 100;

const fn map(name: &'static str) -> Kind {
    Kind {
        name,
        ours: false,
        open: |_, _| Err("a map in memory has no database".into()),
    }
}

const HASHBROWN: Kind = map("hashbrown");
const BTREE_MAP: Kind = map("BTreeMap");

pub(super) fn run(own: &mut Own<'_>) -> Result<()> {
    let count = own.scaled(1_000_000);
    let guids: Vec<Guid> = (0..count).map(guid).collect();
    ours(own, &guids)?;
    let mut map = hashbrown::HashMap::new();
    beside(
        own,
        &guids,
        HASHBROWN,
        &mut map,
        |map, guid, n| {
            map.insert(guid, n);
        },
        |map, guid| map.get(guid).copied(),
    )?;
    let mut map = BTreeMap::new();
    beside(
        own,
        &guids,
        BTREE_MAP,
        &mut map,
        |map, guid, n| {
            map.insert(guid, n);
        },
        |map, guid| map.get(guid).copied(),
    )
}

/// A random GUID, with its number.
fn any<'g>(guids: &'g [Guid], random: &mut Random) -> (u64, &'g Guid) {
    let n = random.below(guids.len() as u64);
    (n, &guids[n as usize])
}

fn ours(own: &mut Own<'_>, guids: &[Guid]) -> Result<()> {
    let storage = Arc::new(MemoryStorage::new());
    let db = tidalite::Options::new().open_storage(storage)?;
    let (dir, count) = (&own.options.dir, guids.len() as u64);
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir);
    let mut n = 0;
    for batch in guids.chunks(BATCH as usize) {
        latencies.time(|| -> Result<()> {
            let mut txn = db.begin_write()?;
            let mut table = txn.hash_table::<Guid, u64>(TABLE)?;
            for guid in batch {
                table.set(guid, &n)?;
                n += 1;
            }
            txn.commit()?;
            Ok(())
        })?;
    }
    let sample = meter.finish(count, 0, latencies);
    own.tell("index-set", SETS, count, sample);
    let snapshot = db.begin_read()?;
    let table = snapshot.hash_table::<Guid, u64>(TABLE)?;
    let table = table.ok_or("the table is missing")?;
    if table.count()? != count {
        return Err("the index has lost keys".into());
    }
    let mut random = Random::new(3);
    let mut latencies = Latencies::default();
    let meter = Meter::start(dir);
    for at in 0..count {
        let (n, guid) = any(guids, &mut random);
        let found = latencies.time_some(at, || table.get(guid))?;
        expect(n, found)?;
    }
    let sample = meter.finish(count, 0, latencies);
    own.tell("index-get", GETS, count, sample);
    let mut latencies = Latencies::default();
    let calls = count.div_ceil(MANY as u64);
    let meter = Meter::start(dir);
    for _ in 0..calls {
        let some: [_; MANY] = std::array::from_fn(|_| any(guids, &mut random));
        let keys = some.map(|(_, guid)| guid);
        let found = latencies.time(|| table.get_many(&keys))?;
        for ((n, _), found) in some.into_iter().zip(found) {
            expect(n, found)?;
        }
    }
    let sample = meter.finish(calls * MANY as u64, 0, latencies);
    own.tell("index-get-many", GETS, count, sample);
    Ok(())
}

/// The same sets and gets with a map.
fn beside<M>(
    own: &mut Own<'_>,
    guids: &[Guid],
    kind: Kind,
    map: &mut M,
    set: impl Fn(&mut M, Guid, u64),
    get: impl Fn(&M, &Guid) -> Option<u64>,
) -> Result<()> {
    let count = guids.len() as u64;
    let meter = Meter::start(&own.options.dir);
    for (n, guid) in (0..).zip(guids) {
        set(map, *guid, n);
    }
    let sample = meter.finish(count, 0, Latencies::default());
    own.contest.add("index-set", SETS.0, SETS.1, kind, sample);
    let mut random = Random::new(3);
    let meter = Meter::start(&own.options.dir);
    for _ in 0..count {
        let (n, guid) = any(guids, &mut random);
        expect(n, get(map, guid))?;
    }
    let sample = meter.finish(count, 0, Latencies::default());
    own.contest.add("index-get", GETS.0, GETS.1, kind, sample);
    Ok(())
}

fn expect(n: u64, found: Option<u64>) -> Result<()> {
    match found == Some(n) {
        true => Ok(()),
        false => Err(format!("GUID {n} leads to {found:?}").into()),
    }
}
