//! Changes from row to row: of a gauge (delta), and of a counter that restarts (increase, rate).
//!
//! The change between two rows belongs to the window of the later one, so the changes of windows add up to the change
//! of the whole, and a window with a single row has a change, too, unless this is the first row of the series.

use super::course::At;
use crate::types::sum::Sum;

/// Changes of one series, or summed over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Change {
    delta: Option<f64>,
    increase: Option<f64>,
    rate: Option<f64>,
}

impl Change {
    pub(super) fn merge(&mut self, other: &Self) {
        let add = |own: &mut Option<f64>, other: Option<f64>| {
            if let Some(other) = other {
                *own = Some(own.map_or(other, |own| own + other));
            }
        };
        add(&mut self.delta, other.delta);
        add(&mut self.increase, other.increase);
        add(&mut self.rate, other.rate);
    }

    /// The last value minus the value before the first change.
    pub(crate) fn delta(&self) -> Option<f64> {
        self.delta
    }

    /// The sum of the rises of a counter; a fall means that it restarted at 0.
    pub(crate) fn increase(&self) -> Option<f64> {
        self.increase
    }

    /// The increase per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rate
    }
}

/// The changes of a window while its rows are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Steps {
    /// The row before the first change, and the last row.
    ends: Option<(At, At)>,
    increase: Sum,
}

impl Steps {
    /// Adds the change from one row to the next.
    pub(super) fn add(&mut self, before: At, row: At) {
        let (first, _) = self.ends.unwrap_or((before, row));
        self.ends = Some((first, row));
        self.increase.add(match row.value < before.value {
            true => row.value,
            false => row.value - before.value,
        });
    }

    /// Returns the changes, if one step of the series' time unit takes this many seconds.
    pub(super) fn close(self, unit_seconds: f64) -> Change {
        let Some((first, last)) = self.ends else {
            return Change::default();
        };
        let increase = self.increase.value();
        let steps = i128::from(last.time) - i128::from(first.time);
        Change {
            delta: Some(last.value - first.value),
            increase: Some(increase),
            rate: (steps > 0).then(|| increase / (steps as f64 * unit_seconds)),
        }
    }
}
