//! Changes reported by a comparison of two versions.

use crate::catalog::entries::SeriesInfo;
use crate::catalog::retention::Retention;
use crate::types::error::Result;
use tidalite_relations::Schema;

/// A difference between a version and an older version.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change<'a> {
    /// A table missing in the older version. Its entries follow as `Inserted`.
    TableCreated(&'a str),
    /// A table that exists only in the older version. Its entries are not reported individually.
    TableDropped(&'a str),
    /// A relation with other columns or indexes than in the older version. Rows whose stored bytes differ follow; a
    /// column that was added or dropped changes no stored row.
    SchemaChanged {
        /// Name of the relation.
        table: &'a str,
        /// The schema in the older version.
        before: &'a Schema,
        /// The schema in the newer version.
        after: &'a Schema,
    },
    /// An entry missing in the older version. A nested table counts as one entry; the entries of that table follow.
    Inserted {
        /// Name of the table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// Key of the entry. In a table of sets this is the value; the key is then in `path`. In a hash table this is
        /// the number of a record, 8 bytes big-endian.
        key: &'a [u8],
    },
    /// An entry whose value differs, or that is a value in one version and a nested table in the other version.
    Changed {
        /// Name of the table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// Key of the entry. In a table of sets this is the value; the key is then in `path`. In a hash table this is
        /// the number of a record, 8 bytes big-endian.
        key: &'a [u8],
    },
    /// An entry that exists only in the older version. The entries of a nested table are not reported individually.
    Removed {
        /// Name of the table.
        table: &'a str,
        /// The keys under which the entry is nested; empty except for entries of nested tables and of sets.
        path: &'a [Vec<u8>],
        /// Key of the entry. In a table of sets this is the value; the key is then in `path`. In a hash table this is
        /// the number of a record, 8 bytes big-endian.
        key: &'a [u8],
    },
    /// A series missing in the older version. Rows of this series follow.
    SeriesCreated(&'a SeriesInfo),
    /// A series with another name than in the older version.
    SeriesRenamed {
        /// The catalog entry of the series in the older version.
        before: &'a SeriesInfo,
        /// The catalog entry of the series in the newer version.
        after: &'a SeriesInfo,
    },
    /// A series with another merge policy than in the older version, or with more columns.
    SeriesChanged {
        /// The catalog entry of the series in the older version.
        before: &'a SeriesInfo,
        /// The catalog entry of the series in the newer version.
        after: &'a SeriesInfo,
    },
    /// A series that exists only in the older version. Neither its rows nor its annotations are reported.
    SeriesRemoved(&'a SeriesInfo),
    /// An annotation that was set, changed or removed.
    Annotation {
        /// The series with the annotation.
        series: &'a SeriesInfo,
        /// The annotation's key.
        key: &'a str,
        /// Text of the annotation in the older version; `None` if it did not exist there.
        before: Option<&'a str>,
        /// Text of the annotation in the newer version; `None` if it was removed.
        after: Option<&'a str>,
    },
    /// A retention policy that was set, changed or removed.
    Retention {
        /// The policy's name.
        name: &'a str,
        /// The policy in the older version, if it existed there.
        before: Option<&'a Retention>,
        /// The policy in the newer version, if it exists there.
        after: Option<&'a Retention>,
    },
    /// A range of times in which no row is equal in both versions. Rows are equal if all their columns are: numbers bit
    /// by bit, texts byte by byte, with columns missing in the older version filled in as they read now.
    Rows {
        /// The series with the rows.
        series: &'a SeriesInfo,
        /// Time of the first row that differs.
        from: i64,
        /// Time of the last row that differs.
        to: i64,
    },
}

pub(super) type Tell<'f> = dyn FnMut(Change<'_>) -> Result<()> + 'f;
