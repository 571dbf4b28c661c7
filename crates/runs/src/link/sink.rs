//! Where finished stretches go.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Takes finished stretches of a series into its place: leaves under the series' tree.
///
/// What is linked counts as older than everything that the front still holds, and newer than what was
/// linked before: the rows of a time that were linked last are all there are of it.
pub trait Sink<W: PageWrite> {
    /// Takes rows that are sorted by time: whole vectors of 1024, or less where the rows of one time would have to be cut, at a
    /// commit also a last one that is shorter.
    /// `types` are the columns of the series, as given to `Staging::slot`. Answers whether they came behind all that were there:
    /// others cost less the more of them come at once.
    ///
    /// # Errors
    /// Those of the pager.
    fn link(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        rows: RowsRef<'_>,
    ) -> Result<bool>;
}

/// A sink to which other threads than the writer's may do the part that needs no page: encoding.
pub trait SealingSink<W: PageWrite>: Sink<W> {
    /// Encoded rows of a series; its memory is used again.
    type Sealed: Default + Send + 'static;

    /// Begins with what is known of a series' data.
    ///
    /// # Errors
    /// Those of the pager.
    fn begin(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        sealed: &mut Self::Sealed,
    ) -> Result<()>;

    /// Encodes rows, in any thread.
    fn seal(types: &[ColumnType], rows: RowsRef<'_>, sealed: &mut Self::Sealed);

    /// As `link`, of rows that are encoded. False, and nothing is done, where they do not simply follow what is there: they are
    /// to be linked as they are.
    ///
    /// # Errors
    /// Those of the pager.
    fn link_sealed(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        sealed: &Self::Sealed,
    ) -> Result<bool>;
}
