//! Creates queries of the rows of a series in an interval.

use crate::series::figures::AllFigures;
use crate::series::nearest::Direction;
use crate::series::query::Query;
use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::interval::{Interval, NOTHING};
use std::sync::Arc;

impl Series<'_> {
    /// Number of rows in the series.
    ///
    /// # Errors
    /// Damage where late rows overlap rows in leaves, because these rows must be read to be counted.
    pub fn count(&self) -> Result<u64> {
        self.query(..).count()
    }

    /// Creates a query of the rows in an [`Interval`]: `..` is the whole series, `"2014-06-01"..` the rows from that
    /// day on. Reads nothing and cannot fail: if an end is a text that is not a time, the call that asks for rows or
    /// statistics reports the error.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::Options;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut wind = tx.series("wind")?;
    /// wind.insert("2020-01-01", 1.0)?;
    /// wind.insert("2020-01-03", 3.0)?;
    /// let wind = wind.view()?;
    /// assert_eq!(wind.query("2020-01-02"..).aggregate("value")?.sum(), 3.0);
    /// assert!(wind.query("noon"..).count().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn query(&self, times: impl Interval) -> Query<'_> {
        let unit = self.info().schema.unit;
        match times.ends() {
            Ok(ends) => {
                let (from, to) = ends.in_unit(unit);
                let current = ends.last_in(unit).map(|to| (ends.current_in(unit), to));
                Query {
                    current: current.unwrap_or(NOTHING),
                    ..self.between(from, to)
                }
            }
            Err(error) => Query {
                refused: Some(Arc::new(error)),
                ..self.between(NOTHING.0, NOTHING.1)
            },
        }
    }

    /// Creates a query of the rows whose times, in steps of the series' unit, are from `from` to `to`, both included.
    pub(crate) fn between(&self, from: i64, to: i64) -> Query<'_> {
        Query {
            series: self,
            from,
            to,
            current: (from, to),
            starts_current: false,
            direction: Direction::Forward,
            columns: None,
            filters: Vec::new(),
            figures: AllFigures,
            refused: None,
        }
    }
}
