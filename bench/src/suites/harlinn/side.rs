//! The operations of an engine in the suite `harlinn`, and the results that are expected.

use std::path::Path;

use super::digest::{Digest, Record, Touch};
use super::plan::{Plan, Result};
use crate::records::{Source, splitmix};

/// A database with records of one kind. Dropping it closes it.
pub(crate) trait Side<P: Record>: Sized {
    /// Opens or creates the database in a directory.
    fn open(dir: &Path, plan: &Plan) -> Result<Self>;
    /// Allocates and touches the memory that writing needs; this is not measured.
    fn prepare(&self, _plan: &Plan) {}
    /// Runs one transaction: writes all rows in the order of the plan, and commits durably.
    fn write(&self, plan: &Plan, source: &mut impl Source<P>) -> Result<()>;
    /// In a new transaction, reads every column of every row in slices.
    fn read(&self, plan: &Plan) -> Result<Digest>;
    /// In a new transaction, calls a closure for every point. Returns the number of rows, and the sum of the floats in
    /// the order of the rows.
    fn for_each(&self, plan: &Plan) -> Result<Total>;
    /// In a new transaction, computes the same sum by the fastest method of the engine.
    fn sum(&self, plan: &Plan) -> Result<Total>;
}

/// The GUIDs of this many series: random, but the same for both engines and in every run.
pub(crate) fn guids(series: usize) -> Vec<[u8; 16]> {
    let mut state = 0x5eed;
    let mut guid = || {
        let halves = [splitmix(&mut state), splitmix(&mut state)];
        std::array::from_fn(|i| halves[i / 8].to_le_bytes()[i % 8])
    };
    (0..series).map(|_| guid()).collect()
}

/// Number of rows, and the sum of their floats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) rows: u64,
    pub(crate) sum: f64,
}

/// The results that each pass must return, computed from the data alone.
pub(crate) struct Expected {
    digest: Digest,
    in_order: Total,
    /// Sum of the magnitudes of the floats, which bounds the effect of a different order of summation.
    magnitude: f64,
}

impl Expected {
    /// Computes the expected results in one pass over the data.
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

    /// Checks that the integers are exact, and that the sum is right up to the effect of the order of summation.
    ///
    /// # Panics
    /// If the pass has returned other data.
    pub(crate) fn check_read(&self, what: &str, got: Digest) {
        assert_eq!(got.rows, self.digest.rows, "{what}: rows");
        assert_eq!(
            got.bits, self.digest.bits,
            "{what}: xor of times and integers"
        );
        self.check_near(what, got.sum);
    }

    /// Checks that the pass returned exactly, bit by bit, the sum of the values added in row order.
    ///
    /// # Panics
    /// If the pass has returned other data.
    pub(crate) fn check_for_each(&self, what: &str, got: Total) {
        assert_eq!(got.rows, self.in_order.rows, "{what}: rows");
        assert_eq!(
            got.sum.to_bits(),
            self.in_order.sum.to_bits(),
            "{what}: sum in order"
        );
    }

    /// Checks that a sum is right up to the effect of the order of summation.
    ///
    /// # Panics
    /// If the sum differs by more than that.
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
