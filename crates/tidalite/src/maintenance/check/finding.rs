//! Findings of a check: a problem and its place, in the user's terms rather than only as an address.

use crate::catalog::entries::SeriesInfo;
use crate::types::schema::Unit;
use crate::types::text_form::key_text;
use std::fmt;
use tidalite_base::SeriesId;

/// A problem that a check found, and the data that it affects.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The affected data.
    pub place: Place,
    /// Name of the pinned version that has the problem; `None` for the newest version.
    pub version: Option<String>,
    /// Byte address of the problem in the file, if it has one.
    pub address: Option<u64>,
    /// Description of the problem.
    pub problem: String,
}

/// The data affected by a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// No user data is affected: the problem is in the head of the file, the free space, or the use of pages.
    File,
    /// Entries of one of the database's own tables are affected: names, schemas, records.
    Catalog {
        /// The name of the table.
        name: String,
        /// The first key that may be affected.
        from: Vec<u8>,
        /// The first key after the affected ones; `None`: up to the last key.
        to: Option<Vec<u8>>,
    },
    /// Entries of a user table are affected.
    Table {
        /// The table's name.
        name: String,
        /// The first key that may be affected.
        from: Vec<u8>,
        /// The first key after the affected ones; `None`: up to the last key.
        to: Option<Vec<u8>>,
    },
    /// Rows of one series are affected.
    Series {
        /// Id of the series.
        id: SeriesId,
        /// Name or GUID of the series.
        name: String,
        /// Name of the affected column, if only one is affected.
        column: Option<String>,
        /// Times of the first and last affected rows, in the series' unit; `None` if only metadata is affected.
        span: Option<(i64, i64)>,
        /// Unit of the times in `span`.
        unit: Unit,
    },
    /// Rows of several series in the delta are affected: committed rows that are not in leaves yet.
    Delta {
        /// Series and time of the first row that may be affected, in the order of the delta; `None` if any row may be.
        from: Option<(SeriesId, i64)>,
        /// Series and time of the last row that may be affected, in the order of the delta.
        to: Option<(SeriesId, i64)>,
        /// The series whose rows may be affected, in the order of the delta; empty if `from` is `None`.
        series: Vec<HitSeries>,
        /// Number of further affected series that `series` does not list; `None` if unknown, because the catalog of
        /// series is damaged or any series may be affected.
        more_series: Option<u64>,
    },
}

impl Finding {
    pub(crate) fn new(place: Place, problem: impl ToString) -> Self {
        Self {
            place,
            version: None,
            address: None,
            problem: problem.to_string(),
        }
    }

    pub(crate) fn at(mut self, address: u64) -> Self {
        self.address = (address > 0).then_some(address);
        self
    }
}

impl Place {
    pub(crate) fn series(
        info: &SeriesInfo,
        column: Option<usize>,
        span: Option<(i64, i64)>,
    ) -> Self {
        let columns = &info.schema.columns;
        Self::Series {
            id: info.id,
            name: info.label(),
            column: column.and_then(|c| Some(columns.get(c)?.name.clone())),
            span,
            unit: info.schema.unit,
        }
    }

    /// The place of damage that may affect any row of the delta.
    pub(crate) fn whole_delta() -> Self {
        Self::Delta {
            from: None,
            to: None,
            series: Vec::new(),
            more_series: None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(version) = &self.version {
            write!(f, "version {version}: ")?;
        }
        let place = self.place.to_string();
        if place.is_empty() {
            return f.write_str(&self.problem);
        }
        write!(f, "{place}: {}", self.problem)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Catalog { name, from, to } => {
                f.write_str(name)?;
                keys(f, from, to.as_deref())
            }
            Self::Table { name, from, to } => {
                write!(f, "table {name}")?;
                keys(f, from, to.as_deref())
            }
            Self::Series {
                name,
                column,
                span,
                unit,
                ..
            } => {
                write!(f, "series {name}")?;
                if let Some(column) = column {
                    write!(f, ", column {column}")?;
                }
                match span {
                    Some((from, to)) => {
                        write!(f, ", {} to {}", unit.text(*from), unit.text(*to))
                    }
                    None => Ok(()),
                }
            }
            Self::Delta {
                from,
                to,
                series,
                more_series,
            } => {
                f.write_str("rows not yet in leaves")?;
                if let ([first, ..], Some(last)) = (&series[..], series.last())
                    && *more_series == Some(0)
                {
                    let (begin, end) = (first.unit.text(first.span.0), last.unit.text(last.span.1));
                    let count = series.len();
                    return write!(
                        f,
                        " of {count} series, from {} at {begin} to {} at {end}",
                        first.name, last.name
                    );
                }
                match (from, to) {
                    (Some((first, begin)), Some((last, end))) => {
                        write!(f, ", {first} at {begin} to {last} at {end}")
                    }
                    _ => Ok(()),
                }
            }
        }
    }
}

fn keys(f: &mut fmt::Formatter<'_>, from: &[u8], to: Option<&[u8]>) -> fmt::Result {
    match to {
        None if from.is_empty() => Ok(()),
        None => write!(f, ", keys from {} on", key_text(from)),
        Some(to) if to.strip_suffix(&[0]) == Some(from) => write!(f, ", key {}", key_text(from)),
        Some(to) => write!(
            f,
            ", keys from {} to before {}",
            key_text(from),
            key_text(to)
        ),
    }
}

/// A series whose rows may be affected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HitSeries {
    /// Id of the series.
    pub id: SeriesId,
    /// Name or GUID of the series.
    pub name: String,
    /// First and last time at which rows may be affected, in the series' unit.
    pub span: (i64, i64),
    /// Unit of the times in `span`.
    pub unit: Unit,
}
