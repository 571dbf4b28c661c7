//! Candlesticks: statistics of consecutive rows.

use crate::series::aggregate::Aggregate;
use crate::series::figures::Figures;
use crate::series::query::Query;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::into_column::IntoColumn;

pub use tidalite_series::CandleSize;

/// Statistics of consecutive rows of a column; open and close are `aggregate.first()` and `aggregate.last()`.
#[derive(Clone, Debug, PartialEq)]
pub struct Candle {
    /// The time of its first row.
    pub first_time: i64,
    /// The time of its last row.
    pub last_time: i64,
    /// The column's statistics over its rows.
    pub aggregate: Aggregate,
}

impl<F: Figures> Query<'_, F> {
    /// Candlesticks: statistics of the tree's units of these rows, ascending, with the number of rows that `size`
    /// selects. Cheap and of unequal width: for charts. Reads the statistics at that level, and vectors only at the
    /// ends of the interval and where late rows overlap them.
    ///
    /// # Errors
    /// `Schema` for a column that is not there, and for a query with [filters](Query::filter): the tree's units are
    /// counted whole; a damaged or unreadable block.
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
