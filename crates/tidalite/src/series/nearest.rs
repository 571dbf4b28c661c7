//! Looks up the row at a time, or nearest to it.

use crate::series::read::Series;
use crate::types::error::Result;
use crate::types::instant::{Instant, Steps};
use crate::types::row::Row;

pub use tidalite_series::Direction;

impl Series<'_> {
    /// The row at exactly this time; if there are several, the last to arrive.
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if `t` does not fit the unit.
    pub fn at(&self, t: impl Instant) -> Result<Option<Row>> {
        let (t, next) = t.steps_around(self.info().schema.unit)?;
        if t < next {
            // The time lies between two steps of the series' unit, where no row can be.
            return Ok(None);
        }
        Ok(self.cursor().search(Steps(t))?.filter(|row| row.time == t))
    }

    /// The nearest row in one direction: forward, the first row at or after `t`; backward, the last row before `t`. If
    /// several rows have the same time, the first of them in that direction.
    ///
    /// # Errors
    /// A damaged or unreadable block; `InvalidInput` if `t` does not fit the unit.
    pub fn nearest(&self, t: impl Instant, direction: Direction) -> Result<Option<Row>> {
        // Rounding up is right for both directions: a row is before `t` exactly if it is before the first step at or
        // after `t`.
        let (_, t) = t.steps_around(self.info().schema.unit)?;
        let mut cursor = self.cursor();
        match direction {
            Direction::Backward => match t.checked_sub(1) {
                Some(before) => cursor.search(Steps(before)),
                None => Ok(None),
            },
            Direction::Forward => {
                if let Some(before) = t.checked_sub(1) {
                    cursor.search(Steps(before))?;
                }
                cursor.next()
            }
        }
    }
}
