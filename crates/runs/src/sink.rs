//! Where finished stretches go.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Takes finished stretches of a series into its place: leaves under the series' tree.
///
/// What is linked counts as older than everything that the front still holds, and newer than what was
/// linked before: on equal timestamps the newest wins.
pub trait Sink<W: PageWrite> {
    /// Takes rows that are sorted by time without repetitions: whole vectors of 1024, at a commit also a last one that
    /// is shorter.
    /// `types` are the columns of the series, as given to `Staging::slot`.
    ///
    /// # Errors
    /// Those of the pager.
    fn link(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        rows: RowsRef<'_>,
    ) -> Result<()>;
}
