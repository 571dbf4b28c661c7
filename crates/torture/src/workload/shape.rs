//! The shape of a workload: how often each kind of operation and commit occurs.

use tidalite_testkit::rng::Rng;

/// Parameters of a workload. In every `_one_in` field, 0 means never.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Maximum number of operations in a transaction.
    pub operations_max: u64,
    /// One in this many appends is a batch of more than a vector.
    pub bulk_one_in: u64,
    /// One in this many commits is `None`.
    pub none_one_in: u64,
    /// One in this many of the other commits is `Lazy`.
    pub lazy_one_in: u64,
    /// One in this many of the commits that remain is `OneFlush`.
    pub one_flush_one_in: u64,
    /// One in this many transactions pins its commit, and as many remove a pin.
    pub pin_one_in: u64,
    /// One in this many transactions is rolled back.
    pub rollback_one_in: u64,
    /// One in this many operations lends series to appenders.
    pub appenders_one_in: u64,
    /// One in this many operations appends to series in round robin (`round_robin.rs`).
    pub turns_one_in: u64,
    /// Whether appenders run on threads of their own: the content is then deterministic, the positions in the file are
    /// not. Otherwise one thread calls them in an order given by the seed.
    pub threads: bool,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            operations_max: 6,
            bulk_one_in: 12,
            none_one_in: 5,
            lazy_one_in: 5,
            one_flush_one_in: 3,
            pin_one_in: 9,
            rollback_one_in: 9,
            appenders_one_in: 10,
            turns_one_in: 0,
            threads: false,
        }
    }
}

impl Shape {
    /// Small transactions, nearly all durable.
    #[must_use]
    pub fn small_and_durable() -> Self {
        Self {
            operations_max: 2,
            bulk_one_in: 60,
            none_one_in: 30,
            lazy_one_in: 20,
            one_flush_one_in: 2,
            pin_one_in: 30,
            rollback_one_in: 9,
            appenders_one_in: 20,
            turns_one_in: 0,
            threads: false,
        }
    }
}

/// True with probability 1 / `one_in`; never if `one_in` is 0.
pub(crate) fn chance(rng: &mut Rng, one_in: u64) -> bool {
    one_in > 0 && rng.one_in(one_in)
}
