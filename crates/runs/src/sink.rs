//! Where finished stretches go.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Takes finished stretches of a series into its place: leaves under the series' tree.
///
/// What is linked counts as older than everything that the front still holds, and newer than what was
/// linked before: on equal timestamps the newest wins.
pub trait Sink<W: PageWrite> {
    /// The columns of a series, as given to `Staging::slot`.
    ///
    /// # Errors
    /// Those of reading the catalog.
    fn column_types(&self, w: &W, series: SeriesId) -> Result<Vec<ColumnType>>;

    /// Takes rows that are sorted by time without repetitions; a whole multiple of 1024 of them.
    ///
    /// # Errors
    /// Those of the pager.
    fn link(&mut self, w: &mut W, series: SeriesId, rows: RowsRef<'_>) -> Result<()>;
}
