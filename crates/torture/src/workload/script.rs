//! Numbered transactions for a writing process, and an oracle in another process that knows the content after each
//! transaction.
//!
//! Transaction n of a script depends only on the seed, on n and on the content after transaction n - 1, and it stores
//! the number n. So the number in the file identifies the newest transaction of the file, and an oracle without access
//! to the file knows the digest for that number and whether that number was acknowledged.

use super::hashes::RUN_BYTES;
use super::operations::operations;
use super::shape::{Shape, chance};
use crate::model::{Model, clock};
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::{Database, Durability, Options, ReadTxn, Result, Tuning, WriteTxn};
use tidalite_testkit::rng::{Rng, mix};

/// Options for opening a database. The file grows and shrinks in small steps, and therefore often. Leaves of larger
/// transactions are written early, and a few hundred rows of an appender justify blocks of a run. The clock is the one
/// of the calling thread (`model/clock.rs`).
pub fn small_steps() -> Options {
    Options::new().tuning(small_tuning())
}

/// The tuning parameters that [`small_steps`] sets.
pub fn small_tuning() -> Tuning {
    clock::of_thread(Tuning::new())
        .growth_bytes(16 << 10, 256 << 10)
        .shrink_bytes(32 << 10)
        .write_behind_bytes(32 << 10)
        .write_buffer_bytes(256 << 10)
        .run_bytes(RUN_BYTES)
}

/// Number of transactions in a phase: phases without lazy commits alternate with phases that have them.
const STRETCH: u64 = 12;

/// The table that stores the transaction number.
pub const TABLE: &str = "ledger";
const KEY: &[u8] = b"number";

/// A numbered sequence of transactions.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    /// The seed, which determines every transaction.
    pub seed: u64,
    /// Shape of the transactions: how often each kind of operation occurs. The rollback rate is not used.
    pub shape: Shape,
}

impl Script {
    /// Creates the script of a seed. Its appenders run on threads of their own.
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

    /// Durability of transaction `number`. The first durable `OneFlush` commit creates the redo log. The log then takes
    /// durable commits of both kinds, unless they follow a lazy commit. So the script has no lazy commits in every
    /// other phase, to fill the log.
    #[must_use]
    pub fn durability(&self, number: u64) -> Durability {
        let mut rng = Rng::new(mix(self.seed ^ 0xd0 ^ mix(number)));
        match () {
            () if chance(&mut rng, self.shape.none_one_in) => Durability::None,
            () if number / STRETCH % 2 == 1 && rng.one_in(2) => Durability::Lazy,
            () => [Durability::Durable, Durability::OneFlush][number as usize % 2],
        }
    }

    /// Applies transaction `number` to the content `model`, and returns the new content.
    ///
    /// # Errors
    /// An error of the database.
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

    /// Runs transaction `number` with the given durability on a database that holds `model`, and returns the new
    /// content. Calls `begun` just before the commit.
    ///
    /// # Errors
    /// An error of the database.
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

/// Number of the newest transaction in a snapshot; 0 if there is no transaction yet.
///
/// # Errors
/// An error of the database.
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

/// Computes the digest of the content after each transaction of a script, in a database of its own in memory.
pub struct Oracle {
    script: Script,
    shadow: Database,
    model: Model,
    digests: Vec<u64>,
}

impl Oracle {
    /// Creates an oracle that stands before the first transaction.
    ///
    /// # Errors
    /// An error of the database in memory.
    pub fn new(script: Script) -> Result<Self> {
        let model = Model::default();
        let options = Options::new().tuning(clock::of_thread(Tuning::new()));
        Ok(Self {
            script,
            shadow: options.open_storage(Arc::new(MemoryStorage::new()))?,
            digests: vec![model.digest()],
            model,
        })
    }

    /// Describes how `found` differs from the content after transaction `number`, which must be the newest transaction
    /// that was passed to `digest`.
    #[must_use]
    pub fn differs(&self, number: u64, found: &Model) -> String {
        if self.digests.len() as u64 != number + 1 {
            return "a newer one was asked about".to_owned();
        }
        self.model.differs(found)
    }

    /// Digest of the content after transaction `number`.
    ///
    /// # Errors
    /// An error of the database in memory.
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
