//! Figures that the tree does not store and that are therefore computed from the rows: percentiles, distinct values,
//! time integrals, changes of counters.
//!
//! ```text
//! quantiles     Quantiles      values, exact below a size, else a t-digest
//! occurrences   Occurrences    how often each value occurs: distinct count, mode
//! course        Course         the value as a function of time: time-weighted mean, integral
//! change        Change         changes from row to row: delta, increase, rate
//! fold          fold           one pass over the rows of an interval, divided into windows
//! ```
//!
//! A row has a value here if its column is neither null nor NaN; other rows count as absent.

mod change;
pub(crate) mod course;
pub(crate) mod fold;
mod occurrences;
mod quantiles;

use crate::types::column::ColumnType;
use crate::types::interpolation::Interpolation;
use change::Change;
use course::Area;
use occurrences::Occurrences;
use quantiles::Quantiles;

/// The kinds of figures from rows that a query needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowNeeds {
    pub(crate) quantiles: bool,
    pub(crate) occurrences: bool,
    /// The most frequent value is among the figures, not only the number of distinct ones.
    pub(crate) mode: bool,
    pub(crate) previous: bool,
    pub(crate) linear: bool,
    pub(crate) change: bool,
}

impl RowNeeds {
    /// Whether no rows must be read.
    pub(crate) fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Whether a figure needs numbers: all do but the number of distinct values.
    pub(crate) fn numbers(self) -> bool {
        self.quantiles || self.mode || self.previous || self.linear || self.change
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            quantiles: self.quantiles || other.quantiles,
            occurrences: self.occurrences || other.occurrences,
            mode: self.mode || other.mode,
            previous: self.previous || other.previous,
            linear: self.linear || other.linear,
            change: self.change || other.change,
        }
    }

    /// Whether a figure depends on the last row before an interval.
    pub(crate) fn looks_back(self) -> bool {
        self.previous || self.linear || self.change
    }

    /// Whether a figure depends on the first row after an interval.
    pub(crate) fn looks_ahead(self) -> bool {
        self.previous || self.linear
    }
}

/// Figures of the rows of one interval or window: of one series, or merged from several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FromRows {
    quantiles: Quantiles,
    occurrences: Occurrences,
    previous: Area,
    linear: Area,
    change: Change,
}

impl FromRows {
    /// Limits the memory of a window that is kept for merging.
    pub(crate) fn keep(&mut self) {
        self.quantiles.keep();
    }

    /// Adds the figures of other rows, in general of another series.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.quantiles.merge(&other.quantiles);
        self.occurrences.merge(&other.occurrences);
        self.previous.merge(&other.previous);
        self.linear.merge(&other.linear);
        self.change.merge(&other.change);
    }

    pub(crate) fn percentile(&self, percent: f64) -> Option<f64> {
        self.quantiles.percentile(percent)
    }

    pub(crate) fn distinct(&self) -> u64 {
        self.occurrences.distinct()
    }

    pub(crate) fn mode(&self, ty: ColumnType) -> Option<f64> {
        self.occurrences.mode(ty)
    }

    pub(crate) fn area(&self, between: Interpolation) -> &Area {
        match between {
            Interpolation::Previous => &self.previous,
            Interpolation::Linear => &self.linear,
        }
    }

    pub(crate) fn change(&self) -> &Change {
        &self.change
    }
}
