//! Changes reported by a comparison of two versions.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::retention::Retention;
use crate::types::error::Result;

/// One difference between a version and an older one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A table missing in the older version. Its entries follow as `Inserted`.
    TableCreated(&'a str),
    /// A table that exists only in the older version. Its entries are not reported individually.
    TableDropped(&'a str),
    /// An entry missing in the older version. A nested table counts as one; its own entries follow.
    Inserted {
        /// The table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// The entry's key. In a table of sets it is the value; the key is then in `path`.
        key: &'a [u8],
    },
    /// An entry whose value differs, or that is a value in one version and a nested table in the other.
    Changed {
        /// The table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// The entry's key. In a table of sets it is the value; the key is then in `path`.
        key: &'a [u8],
    },
    /// An entry that exists only in the older version. The entries of a nested table are not reported individually.
    Removed {
        /// The table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// The entry's key. In a table of sets it is the value; the key is then in `path`.
        key: &'a [u8],
    },
    /// A series missing in the older version. Its rows follow.
    SeriesCreated(&'a SeriesInfo),
    /// A series with another name than in the older version.
    SeriesRenamed {
        /// The older entry.
        before: &'a SeriesInfo,
        /// The newer entry.
        after: &'a SeriesInfo,
    },
    /// A series with another merge policy than in the older version, or with more columns.
    SeriesChanged {
        /// The older entry.
        before: &'a SeriesInfo,
        /// The newer entry.
        after: &'a SeriesInfo,
    },
    /// A series that exists only in the older version. Neither its rows nor its annotations are reported.
    SeriesRemoved(&'a SeriesInfo),
    /// An annotation that was set, changed or removed.
    Annotation {
        /// The series.
        series: &'a SeriesInfo,
        /// The annotation's key.
        key: &'a str,
        /// Its text in the older version; `None` if it did not exist.
        before: Option<&'a str>,
        /// Its text; `None` if it was removed.
        after: Option<&'a str>,
    },
    /// A retention policy that was set, changed or removed.
    Retention {
        /// The policy's name.
        name: &'a str,
        /// The older policy, if it existed.
        before: Option<&'a Retention>,
        /// The newer policy, if it exists.
        after: Option<&'a Retention>,
    },
    /// Rows that differ: from the first to the last time, both included, no row is equal in both versions. Rows are
    /// equal if all their columns are: numbers bit by bit, texts byte by byte, with columns missing in the older
    /// version filled in as they read now.
    Rows {
        /// The series.
        series: &'a SeriesInfo,
        /// First time.
        from: i64,
        /// Last time.
        to: i64,
    },
}

pub(super) type Tell<'f> = dyn FnMut(Change<'_>) -> Result<()> + 'f;
