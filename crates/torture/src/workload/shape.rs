//! The shape of a workload: how often each kind of operation and commit comes.

use tidalite_testkit::rng::Rng;

/// Shapes a workload.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Operations of a transaction at most.
    pub operations_max: u64,
    /// One of so many appends is a stretch of more than a vector; 0 = never.
    pub bulk_one_in: u64,
    /// One of so many commits is `None`; 0 = never.
    pub none_one_in: u64,
    /// One of so many others is `Lazy`; 0 = never.
    pub lazy_one_in: u64,
    /// One of so many others has one barrier; 0 = never.
    pub one_flush_one_in: u64,
    /// One of so many transactions pins what it commits, and as many take a pin away; 0 = never.
    pub pin_one_in: u64,
    /// One of so many transactions is rolled back; 0 = never.
    pub rollback_one_in: u64,
    /// One of so many operations lends the transaction to appenders; 0 = never.
    pub appenders_one_in: u64,
    /// One of so many operations feeds series in turn (`round_robin.rs`); 0 = never.
    pub turns_one_in: u64,
    /// Appenders have threads of their own: what the file holds is the same each time, where it lies is not. Else one thread calls them in
    /// an order that the seed gives.
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
    /// Small transactions, nearly all of them durable.
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

/// True one time in `one_in`; never when that is 0.
pub(crate) fn chance(rng: &mut Rng, one_in: u64) -> bool {
    one_in > 0 && rng.one_in(one_in)
}
