//! The shape of a workload: how often each kind of operation and commit occurs.

use tidalite_testkit::rng::Rng;

/// Parameters of a workload. In every field whose name ends in `_one_in`, 0 means never.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Maximum number of operations in a transaction.
    pub operations_max: u64,
    /// One in this many appends is a batch of more rows than a vector holds.
    pub bulk_one_in: u64,
    /// One in this many commits has the durability `None`.
    pub none_one_in: u64,
    /// One in this many of the other commits has the durability `Lazy`.
    pub lazy_one_in: u64,
    /// One in this many of the commits that are neither `None` nor `Lazy` has the durability `OneFlush`.
    pub one_flush_one_in: u64,
    /// One in this many transactions pins its commit, and as many remove a pin.
    pub pin_one_in: u64,
    /// One in this many transactions is rolled back.
    pub rollback_one_in: u64,
    /// One in this many operations lends series to appenders (threads that add and encode rows).
    pub appenders_one_in: u64,
    /// One in this many operations changes a hash table (`hashes.rs`).
    pub hashes_one_in: u64,
    /// One in this many of the other operations changes a buffered table (`buffered.rs`).
    pub buffered_one_in: u64,
    /// One in this many of the remaining operations changes topics, a queue, a bucket or containers (`messages/`).
    pub messages_one_in: u64,
    /// One in this many of the then remaining operations changes a relation (`relations.rs`).
    pub relations_one_in: u64,
    /// One in this many operations appends to series in round robin (`round_robin.rs`).
    pub turns_one_in: u64,
    /// True if appenders run on threads of their own: the content is then deterministic, but the positions in the file
    /// are not. Otherwise one thread calls the appenders in an order that the seed determines.
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
            hashes_one_in: 8,
            buffered_one_in: 10,
            messages_one_in: 4,
            relations_one_in: 10,
            turns_one_in: 0,
            threads: false,
        }
    }
}

impl Shape {
    /// A workload of small transactions, nearly all of which are durable.
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
            hashes_one_in: 8,
            buffered_one_in: 10,
            messages_one_in: 4,
            relations_one_in: 10,
            turns_one_in: 0,
            threads: false,
        }
    }
}

/// True with probability 1 / `one_in`; never true if `one_in` is 0.
pub(crate) fn chance(rng: &mut Rng, one_in: u64) -> bool {
    one_in > 0 && rng.one_in(one_in)
}
