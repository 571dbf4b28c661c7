//! The destination of rows that are ready to become leaves.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Receives rows of a series that become leaves of the series' tree.
///
/// Linked rows count as older than all rows still in the delta, and as newer than rows linked before: the rows of a
/// time that were linked last replace all earlier ones.
pub trait Sink<W: PageWrite> {
    /// Links rows sorted by time: whole vectors of 1024 rows, or fewer if rows with equal times would otherwise be
    /// split; at a commit, also a shorter last vector. `types` are the columns of the series, as given to
    /// `WriteBuffer::slot`. Returns whether the rows came after all existing rows; other rows are cheaper the more of
    /// them are linked at once.
    ///
    /// # Errors
    /// Errors of the pager.
    fn link(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        rows: RowsRef<'_>,
    ) -> Result<bool>;
}

/// A sink that lets other threads do the encoding, which needs no pages.
pub trait EncodingSink<W: PageWrite>: Sink<W> {
    /// Encoded rows of a series; its memory is reused.
    type Encoded: Default + Send + 'static;

    /// Initializes `encoded` with the encoder state of a series.
    ///
    /// # Errors
    /// Errors of the pager.
    fn begin(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        encoded: &mut Self::Encoded,
    ) -> Result<()>;

    /// Encodes rows, on any thread.
    fn encode(types: &[ColumnType], rows: RowsRef<'_>, encoded: &mut Self::Encoded);

    /// Like `link`, for encoded rows. Returns false, without any effect, if the rows do not simply follow the existing
    /// rows: the caller must then use `link`.
    ///
    /// # Errors
    /// Errors of the pager.
    fn link_encoded(
        &mut self,
        w: &mut W,
        series: SeriesId,
        types: &[ColumnType],
        encoded: &Self::Encoded,
    ) -> Result<bool>;
}
