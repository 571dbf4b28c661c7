//! Figures: the single statistics of a column that a query may ask for, and their names.

use crate::types::interpolation::Interpolation;
use std::fmt;

/// A figure: one statistic of a column over an interval or a window.
///
/// Most figures come from the statistics in the tree, whatever the number of rows. Those from
/// [`Median`](Self::Median) on are computed from the rows, which are read once for all of them. For these a row counts
/// only if its value is neither null nor NaN.
///
/// | figure | a window without such rows | several series |
/// |---|---|---|
/// | `Median`, `Percentile`, `Mode` | `None` | of all rows together |
/// | `Distinct` | 0 | of all rows together |
/// | `TimeMean` | as between the rows around it | weighted by the time of each |
/// | `Integral` | as between the rows around it | sum |
/// | `Delta`, `Increase`, `Rate` | `None` | sum |
///
/// Windows that contain no rows at all are not reported, so their part of an integral is missing.
///
/// ```
/// # use std::sync::Arc;
/// use tidalite::{Figure, Grid, Options};
/// use tidalite::query::Interpolation;
/// use tidalite::storage::MemoryStorage;
/// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
/// let mut tx = db.begin_write()?;
/// let mut power = tx.series("power")?;
/// for (time, kilowatts) in [("12:00", 2.0), ("12:30", 4.0), ("13:30", 4.0), ("14:00", 0.0)] {
///     power.insert(format!("2024-06-01T{time}").as_str(), kilowatts)?;
/// }
/// let power = power.view()?;
/// let figures = [Figure::Median, Figure::Integral(Interpolation::Linear)];
/// let hours = power.query(..).figures(figures).windows(Grid::hours(1), "value")?;
/// // Kilowatt seconds; the hour from 13:00 begins between two rows.
/// assert_eq!(hours[0].aggregate, [Some(3.0), Some(3.5 * 3600.0)]);
/// assert_eq!(hours[1].aggregate, [Some(4.0), Some(3.0 * 3600.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Number of rows with a value.
    Count,
    /// Sum of the values.
    Sum,
    /// Arithmetic mean.
    Mean,
    /// Population standard deviation.
    Stddev,
    /// Smallest value.
    Min,
    /// Largest value.
    Max,
    /// Value of the first row.
    First,
    /// Value of the last row.
    Last,
    /// Largest minus smallest value.
    Spread,
    /// The value in the middle: `Percentile(50.0)`.
    Median,
    /// The value below which this percentage of the values lies, from 0 to 100, interpolated between neighbouring
    /// values (`quantile_cont` of SQL, the default of numpy and pandas). Exact up to 100,000 values of a window (16,384
    /// in queries of several series); beyond, estimated by a t-digest, whose rank is off by at most about q (1 - q) /
    /// 100 of the rows for q = percentage / 100.
    Percentile(f64),
    /// Number of distinct values, exact, with memory for each. Works for texts, too. 0.0 and -0.0 are one value.
    Distinct,
    /// The most frequent value; of equally frequent ones the smallest. Exact, with memory for each distinct value.
    Mode,
    /// The mean of the column as a function of time: each value weighs as much as the time for which it holds. The
    /// function reaches from the first to the last row of the series; the rows next to a window count, too. `None` if
    /// it covers no time in the window.
    TimeMean(Interpolation),
    /// The integral of the same function, in values times seconds: from power in kW to energy in kWs; divide by 3600
    /// for kWh.
    Integral(Interpolation),
    /// Change of the value: the last value minus the last one before the window, or minus the first value where none is
    /// before. The changes of consecutive windows add up.
    Delta,
    /// Increase of a counter: the sum of the changes from row to row, where a value below the one before it means that
    /// the counter restarted at 0. The first change is counted from the last row before the window.
    Increase,
    /// `Increase` per second, from the last row before the window to its last row.
    Rate,
}

/// Figures with a name of their own; `p95` and the like are percentiles.
const NAMED: [(&str, Figure); 20] = [
    ("count", Figure::Count),
    ("sum", Figure::Sum),
    ("mean", Figure::Mean),
    ("stddev", Figure::Stddev),
    ("min", Figure::Min),
    ("max", Figure::Max),
    ("first", Figure::First),
    ("last", Figure::Last),
    ("spread", Figure::Spread),
    ("median", Figure::Median),
    ("distinct", Figure::Distinct),
    ("mode", Figure::Mode),
    ("time_mean", Figure::TimeMean(Interpolation::Linear)),
    (
        "time_mean(previous)",
        Figure::TimeMean(Interpolation::Previous),
    ),
    ("integral", Figure::Integral(Interpolation::Linear)),
    (
        "integral(previous)",
        Figure::Integral(Interpolation::Previous),
    ),
    ("delta", Figure::Delta),
    ("increase", Figure::Increase),
    ("rate", Figure::Rate),
    ("p50", Figure::Percentile(50.0)),
];

impl Figure {
    /// Whether the figure is computed from the rows, and not from the statistics in the tree.
    #[must_use]
    pub fn reads_rows(self) -> bool {
        match self {
            Self::Count
            | Self::Sum
            | Self::Mean
            | Self::Stddev
            | Self::Min
            | Self::Max
            | Self::First
            | Self::Last
            | Self::Spread => false,
            Self::Median
            | Self::Percentile(_)
            | Self::Distinct
            | Self::Mode
            | Self::TimeMean(_)
            | Self::Integral(_)
            | Self::Delta
            | Self::Increase
            | Self::Rate => true,
        }
    }

    /// The figure with this name: `mean`, `p99.9`, `integral(previous)`; `Display` prints the same names.
    ///
    /// ```
    /// use tidalite::Figure;
    ///
    /// assert_eq!(Figure::named("p95"), Some(Figure::Percentile(95.0)));
    /// assert_eq!(Figure::Percentile(99.9).to_string(), "p99.9");
    /// assert_eq!(Figure::named("p101"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if let Some((_, figure)) = NAMED.iter().find(|(own, _)| *own == name) {
            return Some(*figure);
        }
        let percent = name.strip_prefix('p')?.parse().ok()?;
        (0.0..=100.0)
            .contains(&percent)
            .then_some(Self::Percentile(percent))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.iter().find(|(_, own)| own == self) {
            Some((name, _)) => f.write_str(name),
            None => match self {
                Self::Percentile(percent) => write!(f, "p{percent}"),
                _ => write!(f, "{self:?}"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        tidalite_testkit::watch();
        let percents = [0.0, 12.5, 99.9, 100.0].map(Figure::Percentile);
        for figure in NAMED.iter().map(|(_, figure)| *figure).chain(percents) {
            assert_eq!(Figure::named(&figure.to_string()), Some(figure));
        }
        for name in ["", "p", "p-1", "p101", "pNaN", "Mean", "integral(linear)"] {
            assert_eq!(Figure::named(name), None, "{name}");
        }
    }
}
