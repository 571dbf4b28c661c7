//! Candlesticks: statistics of consecutive rows.

use crate::series::aggregate::Aggregate;
use crate::series::figures::Figures;
use crate::series::query::Query;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;

pub use tidalite_series::CandleSize;

/// Statistics of one column over consecutive rows; open and close are `aggregate.first()` and `aggregate.last()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Candle {
    /// Time of the first row of the candle.
    pub first_time: i64,
    /// Time of the last row of the candle.
    pub last_time: i64,
    /// Statistics of the column over the rows of the candle.
    pub aggregate: Aggregate,
}

impl<F: Figures> Query<'_, F> {
    /// Candlesticks of a column, ascending in time, taken from the statistics in the tree; `size` gives their level in
    /// the tree or their width. Cheap, but of unequal width: made for charts. Reads the statistics at that level, and
    /// vectors only at the ends of the interval and where late rows overlap them.
    ///
    /// # Errors
    /// `Schema` for a column that does not exist, and for a query with [filters](Query::filter), because the statistics
    /// cover all rows; a damaged or unreadable block.
    pub fn candles(&self, size: CandleSize, column: impl IntoColumn) -> Result<Vec<Candle>> {
        let column = self.column(column)?;
        let mut candles = Vec::new();
        let (from, to) = self.ends()?;
        if !self.filters.is_empty() {
            let problem = "candles have no filters: use windows".to_owned();
            return Err(Error::from(Cause::Schema { problem }));
        }
        if from <= to {
            let view = self.series.view();
            let own = &self.series.info().schema.columns[column];
            view.candles(from, to, column, size, |candle| {
                candles.push(Candle {
                    first_time: candle.first_time,
                    last_time: candle.last_time,
                    aggregate: Aggregate::new(
                        own,
                        candle.stats,
                        candle.first_time,
                        candle.last_time,
                    ),
                });
            })?;
        }
        Ok(candles)
    }
}
