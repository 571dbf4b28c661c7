//! Numbered transactions: a writing process, and an oracle elsewhere that knows what each of them leaves.
//!
//! Transaction n of a script depends on the seed, on n and on the content after n - 1, and on nothing else. It stores its own
//! number, in the same commit. So whoever opens the file can ask it which transaction it stands on, and an oracle that saw
//! nothing of the file knows the digest that belongs to that number, and whether that number had been acknowledged.

use super::operations::operations;
use super::shape::{Shape, chance};
use crate::model::Model;
use std::sync::Arc;
use tidalite::{Database, Durability, MemoryStorage, Options, ReadTxn, Result, WriteTxn};
use tidalite_testkit::rng::{Rng, mix};

/// How a database is opened: files that become longer and shorter in small steps, so that they do all the time; leaves of larger
/// transactions are written early, and a few hundred rows of an appender are worth blocks of a run.
pub fn small_steps() -> Options {
    Options::new()
        .growth_bytes(16 << 10, 256 << 10)
        .shrink_bytes(32 << 10)
        .early_bytes(32 << 10)
        .staging_bytes(256 << 10)
}

/// Transactions of a script without lazy ones, and then as many with them.
const STRETCH: u64 = 12;

/// The table that holds the number.
pub const TABLE: &str = "ledger";
const KEY: &[u8] = b"number";

/// What is done, by number.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// Everything follows from it.
    pub seed: u64,
    /// Shape of the transactions; its rollbacks are not used.
    pub shape: Shape,
}

impl Script {
    /// The script of a seed; its appenders have threads of their own.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let shape = Shape {
            threads: true,
            ..Shape::default()
        };
        Self { seed, shape }
    }

    fn rng(&self, number: u64) -> Rng {
        Rng::new(mix(self.seed ^ mix(number)))
    }

    /// How transaction `number` is committed. The first durable one with one barrier makes the log, and both kinds go there, but for those
    /// behind a lazy one. So every other stretch of transactions has none of these, and the log is filled.
    #[must_use]
    pub fn durability(&self, number: u64) -> Durability {
        let mut rng = Rng::new(mix(self.seed ^ 0xd0 ^ mix(number)));
        match () {
            () if chance(&mut rng, self.shape.none_one_in) => Durability::None,
            () if number / STRETCH % 2 == 1 && rng.one_in(2) => Durability::Lazy,
            () => [Durability::Durable, Durability::OneFlush][number as usize % 2],
        }
    }

    /// Does what transaction `number` does on content `model`, and returns the content then.
    ///
    /// # Errors
    /// What the database reports.
    pub fn fill(&self, tx: &mut WriteTxn, number: u64, model: &Model) -> Result<Model> {
        let mut next = model.clone();
        operations(tx, &mut next, &mut self.rng(number), &self.shape)?;
        tx.table(TABLE)?.put(KEY, &number.to_le_bytes())?;
        next.tables
            .entry(TABLE.to_owned())
            .or_default()
            .insert(KEY.to_vec(), number.to_le_bytes().to_vec());
        Ok(next)
    }

    /// Runs transaction `number` on a database that holds `model`, with the durability given, and returns what it holds
    /// then. `begun` is called just before the commit.
    ///
    /// # Errors
    /// What the database reports.
    pub fn step(
        &self,
        db: &Database,
        number: u64,
        model: &Model,
        durability: Durability,
        begun: impl FnOnce(),
    ) -> Result<Model> {
        let mut tx = db.begin_write()?;
        let next = self.fill(&mut tx, number, model)?;
        begun();
        tx.commit_with(durability)?;
        Ok(next)
    }
}

/// The number of the newest transaction that a snapshot shows; 0 before the first.
///
/// # Errors
/// What the database reports.
pub fn number_of(snap: &ReadTxn) -> Result<u64> {
    let Some(table) = snap.table(TABLE)? else {
        return Ok(0);
    };
    let mut number = 0;
    table.for_each(|key, value| {
        if let (KEY, Some(bytes)) = (key, value.first_chunk()) {
            number = u64::from_le_bytes(*bytes);
        }
    })?;
    Ok(number)
}

/// Knows the digest after each transaction of a script, from a database of its own in memory.
pub struct Oracle {
    script: Script,
    shadow: Database,
    model: Model,
    digests: Vec<u64>,
}

impl Oracle {
    /// Before the first transaction.
    ///
    /// # Errors
    /// What the database in memory reports.
    pub fn new(script: Script) -> Result<Self> {
        let model = Model::default();
        Ok(Self {
            script,
            shadow: Options::new().open_storage(Arc::new(MemoryStorage::new()))?,
            digests: vec![model.digest()],
            model,
        })
    }

    /// What differs from the content after transaction `number`, which must be the newest that was asked about.
    #[must_use]
    pub fn differs(&self, number: u64, found: &Model) -> String {
        if self.digests.len() as u64 != number + 1 {
            return "a newer one was asked about".to_owned();
        }
        self.model.differs(found)
    }

    /// The digest after transaction `number`.
    ///
    /// # Errors
    /// What the database in memory reports.
    pub fn digest(&mut self, number: u64) -> Result<u64> {
        while self.digests.len() as u64 <= number {
            let next = self.digests.len() as u64;
            self.model =
                self.script
                    .step(&self.shadow, next, &self.model, Durability::None, || ())?;
            self.digests.push(self.model.digest());
        }
        Ok(self.digests[number as usize])
    }
}
