//! Traits that receive rows that are ready to become leaves.

use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, RowsRef};
use tidalite_pager::{PageWrite, Result};

/// Receives rows of a series that become leaves of the series' tree.
///
/// Linked rows count as older than all rows still in the delta, and as newer than rows linked before: the rows of a
/// time that were linked last replace all earlier ones.
pub trait Sink<W: PageWrite> {
    /// Links rows, that is, installs them as leaves of their series. The rows are sorted by time: whole vectors of
    /// 1024 rows, or fewer if rows with equal times would otherwise be split; at a commit, also a shorter last
    /// vector. `types` are the columns of the series, as given to `WriteBuffer::slot`. Returns whether the rows came
    /// after all existing rows; rows that did not are cheaper the more of them are linked at once.
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

/// A sink for rows that other threads encode; encoding needs no pages.
pub trait EncodingSink<W: PageWrite>: Sink<W> {
    /// Type of the encoded rows of a series; a value is reused for other rows.
    type Encoded: Default + Send + 'static;

    /// Prepares `encoded` for rows of a series, with the encoder state of this series.
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

    /// Appends the encoded form of `rows` to `encoded`; may be called on any thread.
    fn encode(types: &[ColumnType], rows: RowsRef<'_>, encoded: &mut Self::Encoded);

    /// Like `link`, for encoded rows. Returns false, without any effect, if the rows do not come after all existing
    /// rows of the series: the caller must then use `link`.
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
