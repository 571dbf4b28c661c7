//! What a comparison of two versions tells.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::retention::Retention;
use crate::types::error::Result;

/// One difference between a version and an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A table that the older version does not have. Its entries follow as `Inserted`.
    TableCreated(&'a str),
    /// A table that only the older version has. Its entries are not told one by one.
    TableDropped(&'a str),
    /// An entry that the older version does not have. A nested table is one; its own entries follow.
    Inserted {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// An entry whose value differs, or that is a value in one version and a nested table in the other.
    Changed {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// An entry that only the older version has. Of a nested table its own entries are not told one by one.
    Removed {
        /// Which table.
        table: &'a str,
        /// The keys under which it is nested; empty but for entries of nested tables and of multi-values.
        path: &'a [Vec<u8>],
        /// Its key. Of a table of multi-values its value: its key is then in `path`.
        key: &'a [u8],
    },
    /// A series that the older version does not have. Its rows follow.
    SeriesCreated(&'a SeriesInfo),
    /// A series that has another name than in the older version.
    SeriesRenamed {
        /// As it was.
        before: &'a SeriesInfo,
        /// As it is.
        after: &'a SeriesInfo,
    },
    /// A series with another merge policy than in the older version, or with more columns.
    SeriesChanged {
        /// As it was.
        before: &'a SeriesInfo,
        /// As it is.
        after: &'a SeriesInfo,
    },
    /// A series that only the older version has. Neither its rows nor its annotations are told.
    SeriesRemoved(&'a SeriesInfo),
    /// An annotation that was set, changed or removed.
    Annotation {
        /// Which series.
        series: &'a SeriesInfo,
        /// Its key.
        key: &'a str,
        /// Its text in the older version; `None` where it was not there.
        before: Option<&'a str>,
        /// Its text; `None` where it is gone.
        after: Option<&'a str>,
    },
    /// A retention policy that was set, changed or removed.
    Retention {
        /// Its name.
        name: &'a str,
        /// As it was, if it was there.
        before: Option<&'a Retention>,
        /// As it is, if it is there.
        after: Option<&'a Retention>,
    },
    /// Rows that differ: of those of both versions from the first to the last time, both included, none is alike. Rows are alike when every
    /// column says the same in both: numbers bit by bit, texts byte by byte, and a column that the older version lacks as its rows read now.
    Rows {
        /// Which series.
        series: &'a SeriesInfo,
        /// First time.
        from: i64,
        /// Last time.
        to: i64,
    },
}

pub(super) type Tell<'f> = dyn FnMut(Change<'_>) -> Result<()> + 'f;
