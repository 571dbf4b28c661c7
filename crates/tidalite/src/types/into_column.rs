//! Column arguments: a column by its number or by its name.

use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use crate::types::schema::Schema;

/// A column of a series, given by its number (0 for the first) or by its name.
///
/// ```
/// use tidalite::{IntoColumn, Schema};
/// let point = Schema::point();
/// assert_eq!("value".column_of(&point)?, 1);
/// assert_eq!(1.column_of(&point)?, 1);
/// assert!("speed".column_of(&point).is_err() && 2.column_of(&point).is_err());
/// # Ok::<(), tidalite::Error>(())
/// ```
pub trait IntoColumn {
    /// Looks up the number of the column in the schema.
    ///
    /// # Errors
    /// `Schema` if the column does not exist.
    fn column_of(self, schema: &Schema) -> Result<usize>;
}

impl IntoColumn for usize {
    #[inline]
    fn column_of(self, schema: &Schema) -> Result<usize> {
        if self < schema.columns.len() {
            return Ok(self);
        }
        let count = schema.columns.len();
        let problem = format!("there are {count} columns, asked for was number {self}");
        Err(Error::from(Cause::Schema { problem }))
    }
}

impl IntoColumn for &str {
    fn column_of(self, schema: &Schema) -> Result<usize> {
        schema.column(self).ok_or_else(|| {
            let problem = format!("there is no column {self} in {schema}");
            Error::from(Cause::Schema { problem })
        })
    }
}

impl IntoColumn for &String {
    fn column_of(self, schema: &Schema) -> Result<usize> {
        self.as_str().column_of(schema)
    }
}

/// Lets columns be given as a borrowed list: `&[0, 2]`, `&["speed", "power"]`.
impl<C: IntoColumn + Copy> IntoColumn for &C {
    #[inline]
    fn column_of(self, schema: &Schema) -> Result<usize> {
        (*self).column_of(schema)
    }
}
