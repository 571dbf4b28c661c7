//! Arithmetic on columns of two series, with their rows joined by time.

use super::dot::Dot;
use crate::query::join::{Join, Joined};
use crate::query::many::SelectionQuery;
use crate::series::figures::Figures;
use crate::types::column::Column;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};

/// Iterator over the results of a function of two series, returned by [`SelectionQuery::combine`].
pub struct Combined<'s, F> {
    joined: Joined<'s>,
    columns: [(usize, &'s Column); 2],
    f: F,
    failed: bool,
}

impl<'s, Q: Figures> SelectionQuery<'s, '_, Q> {
    /// Calls `f` for each joined row with the value of the column `columns.0` of the first series and the value of the
    /// column `columns.1` of the second series, if both have one, and yields the results. Times are nanoseconds since
    /// 1970.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Options, Steps};
    /// use tidalite::functions::DotFunctions;
    /// use tidalite::query::Join;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (name, volts_or_amperes) in [("i", 2.0), ("u", 230.0)] {
    ///     tx.series(name)?.insert(Steps(0), volts_or_amperes)?;
    ///     tx.series(name)?.insert(Steps(10), volts_or_amperes)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let both = snap.select("")?;
    /// let watts = both.query(..).combine(Join::Inner, ("value", "value"), |i, u| i * u)?;
    /// let sums = watts.cumulative_sum().map(|dot| Ok(dot?.value));
    /// assert_eq!(sums.collect::<tidalite::Result<Vec<f64>>>()?, [460.0, 920.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if there are not exactly two series, or a column does not exist or has texts; else as for
    /// [`join`](Self::join).
    pub fn combine<F: FnMut(f64, f64) -> f64>(
        &self,
        join: Join,
        columns: (&str, &str),
        f: F,
    ) -> Result<Combined<'s, F>> {
        let problem = |problem: String| Err(Error::from(Cause::Schema { problem }));
        self.times()?;
        let [first, second] = &self.members[..] else {
            return problem(format!("two series combine, not {}", self.members.len()));
        };
        let (first, second) = (first.series, second.series);
        let mut found = [(0, &first.info().schema.columns[0]); 2];
        let wanted = [(first, columns.0), (second, columns.1)];
        for (found, (series, name)) in found.iter_mut().zip(wanted) {
            let schema = &series.info().schema;
            let Some(column) = schema.column(name) else {
                return problem(format!("{} has no column {name}", series.info().label()));
            };
            let own = &schema.columns[column];
            if own.ty.is_text() {
                return Err(own.problem("texts have no value to count with"));
            }
            *found = (column, own);
        }
        Ok(Combined {
            joined: self.join(join)?,
            columns: found,
            f,
            failed: false,
        })
    }
}

impl<F: FnMut(f64, f64) -> f64> Iterator for Combined<'_, F> {
    type Item = Result<Dot>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        loop {
            let row = match self.joined.next() {
                Ok(Some(row)) => row,
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            };
            let value = |i: usize| {
                let (column, own) = self.columns[i];
                own.f64(row.words(i)?[column])
            };
            if let (Some(a), Some(b)) = (value(0), value(1)) {
                return Some(Ok(Dot {
                    time: row.time.0,
                    value: (self.f)(a, b),
                }));
            }
        }
    }
}
