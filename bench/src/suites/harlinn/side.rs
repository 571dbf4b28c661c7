//! What either side of the comparison can do, and what it is held against.

use std::path::Path;

use super::digest::{Digest, Record, Touch};
use super::plan::{Plan, Result};
use crate::records::{Source, splitmix};

/// A database with records of one kind. Dropping it closes it.
pub(crate) trait Side<P: Record>: Sized {
    /// Opens or creates the database in a directory.
    fn open(dir: &Path, plan: &Plan) -> Result<Self>;
    /// Gets and touches memory of its own that writing will need; not part of any measurement.
    fn prepare(&self, _plan: &Plan) {}
    /// One transaction: all rows in the order of the plan, and the durable commit.
    fn write(&self, plan: &Plan, source: &mut impl Source<P>) -> Result<()>;
    /// A new transaction: slices of every row's columns.
    fn read(&self, plan: &Plan) -> Result<Digest>;
    /// A new transaction: a closure called with every point. Rows, and their sum in order.
    fn for_each(&self, plan: &Plan) -> Result<Total>;
    /// A new transaction: the same sum, by whatever means there are.
    fn sum(&self, plan: &Plan) -> Result<Total>;
}

/// The GUIDs of so many series: random, and the same on both sides and in every run.
pub(crate) fn guids(series: usize) -> Vec<[u8; 16]> {
    let mut state = 0x5eed;
    let mut guid = || {
        let halves = [splitmix(&mut state), splitmix(&mut state)];
        std::array::from_fn(|i| halves[i / 8].to_le_bytes()[i % 8])
    };
    (0..series).map(|_| guid()).collect()
}

/// Rows and the sum of their floats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) sum: f64,
}

/// What every pass must come to, made from the data alone.
pub(crate) struct Expected {
    digest: Digest,
    in_order: Total,
    /// Sum of the magnitudes: the measure of what another order of summing may change.
    magnitude: f64,
}

impl Expected {
    /// Goes through the data once.
    pub(crate) fn of<P: Record>(plan: &Plan, source: &mut impl Source<P>) -> Self {
        let (mut touch, mut in_order, mut magnitude) = (Touch::default(), Total::default(), 0.0);
        for series in 0..plan.series {
            for record in source.records(series, 0, plan.rows_each) {
                touch.rows(&[record]);
                in_order.rows += 1;
                in_order.sum += record.float();
                magnitude += record.float().abs();
            }
            touch.end_series();
        }
        Self {
            digest: touch.finish(),
            in_order,
            magnitude,
        }
    }

    /// Integers to the bit; the sum but for its order.
    ///
    /// # Panics
    /// When the pass saw something else.
    pub(crate) fn check_read(&self, what: &str, got: Digest) {
        assert_eq!(got.rows, self.digest.rows, "{what}: rows");
        assert_eq!(
            got.bits, self.digest.bits,
            "{what}: xor of times and integers"
        );
        self.check_near(what, got.sum);
    }

    /// Summed in order: to the bit.
    ///
    /// # Panics
    /// When the pass saw something else.
    pub(crate) fn check_for_each(&self, what: &str, got: Total) {
        assert_eq!(got.rows, self.in_order.rows, "{what}: rows");
        assert_eq!(
            got.sum.to_bits(),
            self.in_order.sum.to_bits(),
            "{what}: sum in order"
        );
    }

    /// The sum but for its order.
    ///
    /// # Panics
    /// When it is another.
    pub(crate) fn check_sum(&self, what: &str, got: Total) {
        assert_eq!(got.rows, self.in_order.rows, "{what}: rows");
        self.check_near(what, got.sum);
    }

    fn check_near(&self, what: &str, sum: f64) {
        // Adding n numbers in any order errs by less than n x 2^-53 x their magnitudes.
        let bound = self.magnitude * self.in_order.rows as f64 * f64::EPSILON;
        let (near, off) = (self.in_order.sum, (sum - self.in_order.sum).abs());
        assert!(
            off <= bound.min(self.magnitude * 1e-9),
            "{what}: sum {sum}, not {near}"
        );
    }
}
