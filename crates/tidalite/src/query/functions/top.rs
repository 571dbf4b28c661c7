//! The leading series of a selection, by a statistic of a column.

use crate::query::many::SelectionQuery;
use crate::series::figures::Figures;
use crate::types::error::Result;
use crate::types::figure::Figure;

impl<F: Figures> SelectionQuery<'_, '_, F> {
    /// The `k` series with the largest value of `figure` (such as the mean) for the column called `column`, the largest
    /// first. Returns the index of each in the selection, and the value. Equal values keep the order of the selection.
    /// Series without rows, and values that are NaN, are skipped.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::{Figure, Options, Steps};
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// for (name, load) in [("a", 0.5), ("b", 2.0), ("c", 1.0)] {
    ///     tx.series(name)?.insert(Steps(0), load)?;
    /// }
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let top = snap.select("")?.query(..).top(2, "value", Figure::Mean)?;
    /// assert_eq!(top, [(1, 2.0), (2, 1.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`aggregate`](Self::aggregate).
    ///
    /// # Cost
    /// As for one aggregate of each series, from the statistics in the tree.
    pub fn top(&self, k: usize, column: &str, figure: Figure) -> Result<Vec<(usize, f64)>> {
        self.leaders(k, column, figure, |a, b| b.total_cmp(&a))
    }

    /// The `k` series with the smallest value of `figure`, the smallest first; otherwise like [`top`](Self::top).
    ///
    /// # Errors
    /// As for `top`.
    pub fn bottom(&self, k: usize, column: &str, figure: Figure) -> Result<Vec<(usize, f64)>> {
        self.leaders(k, column, figure, |a, b| a.total_cmp(&b))
    }

    fn leaders(
        &self,
        k: usize,
        column: &str,
        figure: Figure,
        order: impl Fn(f64, f64) -> std::cmp::Ordering,
    ) -> Result<Vec<(usize, f64)>> {
        let mut figures = Vec::with_capacity(self.members.len());
        let each = self.clone().figures([Figure::Count, figure]).each();
        for (place, one) in each.iter().enumerate() {
            let value = match one.aggregate(column)? {
                Some([Some(rows), value]) if rows > 0.0 => value,
                _ => None,
            };
            // Adding 0 turns -0 into 0, so that the two zeros compare as equal.
            figures.extend(
                value
                    .filter(|value| !value.is_nan())
                    .map(|value| (place, value + 0.0)),
            );
        }
        figures.sort_by(|a, b| order(a.1, b.1)); // stable
        figures.truncate(k);
        Ok(figures)
    }
}
