//! The multi-value cases of `mdbx`: ten values of 8 bytes under each key of 8 bytes, in one table.
//!
//! | case | |
//! |---|---|
//! | `multi-load` | all pairs in order, one durable transaction; then `multi-bytes-loaded` |
//! | `multi-scan` | all pairs |
//! | `multi-get` | the values of a random key, in keys/s |
//! | `multi-fill`, `multi-bytes-filled`, `multi-scan-filled` | all pairs, random keys, durable transactions of 10,000 |
//!
//! `multi-fill` adds one value to every key, then the next value, and so on. Engines with multi-values take part: LMDB
//! and libmdbx use values of one length, redb its multimap. A load uses `extend`, or `MDB_APPEND` and `MDB_APPENDDUP`.
//! A scan, and reading the values of a key, use cursor steps, or the iteration that Tidalite and redb provide.

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::data::{Data, Random, Shape};
use crate::engine::sets::{Sets, Word, open};
use crate::engine::{Kind, Promise, Result, Setup};
use crate::meter::{Latencies, Meter, Sample};
use crate::os;
use std::path::Path;

/// Number of values under each key.
const VALUES: u64 = 10;
/// Number of pairs in the other tables of the suite for each key in this table: this gives 100,000 keys at the
/// published size.
const PAIRS_PER_KEY: u64 = 50;
/// Number of pairs in a transaction of the case `multi-fill`.
const FILL: u64 = 10_000;
/// Number of gets for each existing key.
const GETS: u64 = 5;

const LOADED: [&str; 4] = [
    "multi-load",
    "multi-bytes-loaded",
    "multi-scan",
    "multi-get",
];
const FILLED: [&str; 3] = ["multi-fill", "multi-bytes-filled", "multi-scan-filled"];

/// Runs the cases with several values per key.
pub(crate) fn run(options: &Options, contest: &mut Contest) -> Result<()> {
    let keys = (options.pairs / PAIRS_PER_KEY).max(20);
    let data = Data::new(Shape {
        key_bytes: 8,
        value_bytes: 8,
    });
    for round in 0..options.rounds {
        for kind in contest.order(round) {
            let side = Side {
                kind,
                data: &data,
                keys,
                options,
            };
            side.loaded(contest)?;
            side.filled(contest)?;
        }
    }
    Ok(())
}

struct Side<'s> {
    kind: Kind,
    data: &'s Data,
    keys: u64,
    options: &'s Options,
}

impl Side<'_> {
    fn pairs(&self) -> u64 {
        self.keys * VALUES
    }

    fn any(&self, cases: &[&str]) -> bool {
        // Asks for every name, so that the list of known names is complete.
        let chosen = cases.iter().map(|case| self.options.chosen(case));
        chosen.fold(false, |any, chosen| any | chosen)
    }

    fn open(&self, dir: &Path) -> Result<Option<Box<dyn Sets>>> {
        let setup = Setup::new(Promise::Synced, self.pairs() * 16 + (16 << 20));
        open(self.kind, dir, &setup)
    }

    /// Creates an empty database; `None` if the engine has no sets of values.
    fn start(&self) -> Result<Option<(os::TempDir, Box<dyn Sets>)>> {
        let dir = os::TempDir::within(&self.options.dir, self.kind.name)?;
        os::settle(dir.path())?;
        os::touch_memory(self.pairs() * 48, self.pairs() * 16);
        let sets = self.open(dir.path())?;
        Ok(sets.map(|sets| (dir, sets)))
    }

    fn key(&self, n: u64) -> Result<Word> {
        Ok(self.data.ascending(n).as_ref().try_into()?)
    }

    fn loaded(&self, contest: &mut Contest) -> Result<()> {
        if !self.any(&LOADED) {
            return Ok(());
        }
        let Some((dir, sets)) = self.start()? else {
            return Ok(());
        };
        let keys: Vec<Word> = (0..self.keys).map(|n| self.key(n)).collect::<Result<_>>()?;
        let mut pairs = (0..self.pairs()).map(|n| {
            let (key, value) = (n / VALUES, n % VALUES);
            (keys[key as usize], value_of(key, value))
        });
        let meter = Meter::start(dir.path());
        sets.load(&mut pairs)?;
        let sample = meter.finish(self.pairs(), sets.silent_syncs(), Latencies::default());
        contest.add("multi-load", "pairs/s", false, self.kind, sample);
        drop(sets);
        self.bytes("multi-bytes-loaded", dir.path(), contest)?;
        let Some(sets) = self.open(dir.path())? else {
            return Ok(());
        };
        self.scan("multi-scan", &*sets, dir.path(), contest)?;
        self.gets(&keys, &*sets, dir.path(), contest)
    }

    fn gets(
        &self,
        keys: &[Word],
        sets: &dyn Sets,
        dir: &Path,
        contest: &mut Contest,
    ) -> Result<()> {
        if !self.options.chosen("multi-get") {
            return Ok(());
        }
        let (mut latencies, mut random) = (Latencies::default(), Random::new(17));
        let (count, mut answer) = (self.keys * GETS, 0u64);
        let meter = Meter::start(dir);
        sets.read(&mut |reader| {
            for n in 0..count {
                let key = &keys[random.below(self.keys) as usize];
                let digest = latencies.time_some(n, || reader.values(key))?;
                answer = answer.wrapping_add(digest.answer());
            }
            Ok(())
        })?;
        let sample = meter.finish(count, 0, latencies);
        contest.add("multi-get", "keys/s", false, self.kind, sample);
        contest.check("multi-get", 0, self.kind, answer)
    }

    fn filled(&self, contest: &mut Contest) -> Result<()> {
        if !self.any(&FILLED) {
            return Ok(());
        }
        let Some((dir, sets)) = self.start()? else {
            return Ok(());
        };
        let keys: Vec<Word> = (0..self.keys)
            .map(|n| Ok(self.data.scattered(n).as_ref().try_into()?))
            .collect::<Result<_>>()?;
        // Pair `n`: the pairs go through all keys with one value each, then with the next value, which need not be
        // greater.
        let pair = |n: u64| {
            let key = n % self.keys;
            let value = n / self.keys * 7 % VALUES;
            (keys[key as usize], value_of(key, value))
        };
        let (mut latencies, mut txns, mut at) = (Latencies::default(), 0, 0);
        let meter = Meter::start(dir.path());
        while at < self.pairs() {
            let end = (at + FILL).min(self.pairs());
            latencies.time(|| sets.put(&mut (at..end).map(pair)))?;
            (at, txns) = (end, txns + 1);
        }
        let sample = meter.finish(self.pairs(), txns * sets.silent_syncs(), latencies);
        contest.add("multi-fill", "pairs/s", false, self.kind, sample);
        drop(sets);
        self.bytes("multi-bytes-filled", dir.path(), contest)?;
        match self.open(dir.path())? {
            Some(sets) => self.scan("multi-scan-filled", &*sets, dir.path(), contest),
            None => Ok(()),
        }
    }

    fn scan(&self, case: &str, sets: &dyn Sets, dir: &Path, contest: &mut Contest) -> Result<()> {
        if !self.options.chosen(case) {
            return Ok(());
        }
        sets.read(&mut |reader| {
            let meter = Meter::start(dir);
            let digest = reader.scan()?;
            let sample = meter.finish(digest.entries, 0, Latencies::default());
            contest.add(case, "pairs/s", false, self.kind, sample);
            contest.check(case, 0, self.kind, digest.answer())
        })
    }

    fn bytes(&self, case: &str, dir: &Path, contest: &mut Contest) -> Result<()> {
        let sample = Sample::of(os::disk_used(dir)? as f64);
        contest.add(case, "bytes", true, self.kind, sample);
        Ok(())
    }
}

/// Value `n` of a key: ascending in `n`, but with unpredictable differences.
fn value_of(key: u64, n: u64) -> Word {
    let random = Random::new(key * VALUES + n).next();
    (n << 56 | random >> 8).to_be_bytes()
}
