//! The value of a column at any time, also between rows.

use crate::series::from_rows::course::interpolate;
use crate::series::nearest::Direction;
use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::instant::Instant;
use crate::types::interpolation::Interpolation;
use crate::types::into_column::IntoColumn;

impl Series<'_> {
    /// The value of a column at a time: the value of the row at this time (of several, the last to arrive), or the
    /// value between the rows before and after it. `None` before the first row, and with [`Interpolation::Linear`] also
    /// after the last one; with [`Interpolation::Previous`] the last value remains valid. Rows whose value is null or
    /// NaN do not count.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// use tidalite::Options;
    /// use tidalite::query::Interpolation;
    /// use tidalite::storage::MemoryStorage;
    /// # let db = Options::new().open_storage(Arc::new(MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// let mut level = tx.series("level")?;
    /// level.insert("2024-06-01T12:00", 1.0)?;
    /// level.insert("2024-06-01T13:00", 3.0)?;
    /// let level = level.view()?;
    /// let at = |between| level.value_at("2024-06-01T12:15", "value", between);
    /// assert_eq!(at(Interpolation::Previous)?, Some(1.0));
    /// assert_eq!(at(Interpolation::Linear)?, Some(1.5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `Schema` if the column does not exist or has texts; `InvalidInput` if `t` does not fit the unit; a damaged or
    /// unreadable block.
    ///
    /// # Cost
    /// Decodes one vector, or two if the rows before and after lie in different ones.
    pub fn value_at(
        &self,
        t: impl Instant,
        column: impl IntoColumn,
        between: Interpolation,
    ) -> Result<Option<f64>> {
        let column = self.column(column)?;
        let own = &self.info().schema.columns[column];
        if own.ty.is_text() {
            return Err(own.problem("texts have no value between rows"));
        }
        let (moment, unit) = (t.moment()?, self.info().schema.unit);
        let (floor, ceil) = (moment.floor(unit), moment.ceil(unit));
        let all = self.between(i64::MIN, i64::MAX);
        let Some((before, low)) =
            all.value_beyond(column, (i64::MIN, floor), Direction::Backward)?
        else {
            return Ok(None);
        };
        if between == Interpolation::Previous || before == ceil {
            return Ok(Some(low));
        }
        let after = all.value_beyond(column, (ceil, i64::MAX), Direction::Forward)?;
        Ok(after.map(|(after, high)| {
            let steps = |from: i64, to: i64| (i128::from(to) - i128::from(from)) as f64;
            let gone = steps(before, floor) + moment.fraction(unit);
            interpolate(low, high, gone / steps(before, after))
        }))
    }
}
