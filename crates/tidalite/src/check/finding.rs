//! What a check finds, and where: in the user's terms, not only as an address.

use crate::catalog::SeriesInfo;
use crate::schema::Unit;
use std::fmt;
use tidalite_base::SeriesId;

/// Something wrong, and what it takes along.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What is hit.
    pub place: Place,
    /// The pinned version it belongs to; `None` for the newest.
    pub version: Option<String>,
    /// Byte address in the file, where there is one.
    pub address: Option<u64>,
    /// What is wrong.
    pub problem: String,
}

/// Which data something wrong takes along.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// No data as such: the head of the file, the free space, how pages are used.
    File,
    /// One of the database's own tables: names, schemas, records.
    Catalog {
        /// Which one.
        name: String,
        /// The first key that may be hit.
        from: Vec<u8>,
        /// The first key behind those; `None`: up to the last.
        to: Option<Vec<u8>>,
    },
    /// Entries of a table.
    Table {
        /// Its name.
        name: String,
        /// The first key that may be hit.
        from: Vec<u8>,
        /// The first key behind those; `None`: up to the last.
        to: Option<Vec<u8>>,
    },
    /// Rows of a series.
    Series {
        /// Its number.
        id: SeriesId,
        /// Its name or GUID.
        name: String,
        /// The column, where it is a single one.
        column: Option<String>,
        /// First and last time of the rows, in the series' unit; `None`: no row, but what is known of them.
        span: Option<(i64, i64)>,
        /// The unit.
        unit: Unit,
    },
    /// Rows of several series that are not in leaves yet.
    Front {
        /// The first row that may be hit, by series and then by time; `None`: any.
        from: Option<FrontRow>,
        /// The last one.
        to: Option<FrontRow>,
    },
}

/// A row that is not in a leaf yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrontRow {
    /// The number of its series.
    pub id: SeriesId,
    /// The name or GUID of that; `None`: nothing that can be read says.
    pub name: Option<String>,
    /// Its time in the series' unit, as text with a date where that is known.
    pub time: String,
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
}

impl FrontRow {
    pub(crate) fn new((id, time): (SeriesId, i64), info: Option<&SeriesInfo>) -> Self {
        Self {
            id,
            name: info.map(SeriesInfo::label),
            time: info.map_or_else(|| time.to_string(), |info| info.schema.unit.text(time)),
        }
    }
}

impl fmt::Display for FrontRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name)?,
            None => self.id.fmt(f)?,
        }
        write!(f, " at {}", self.time)
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
            Self::Front { from, to } => {
                f.write_str("rows not yet in leaves")?;
                match (from, to) {
                    (Some(from), Some(to)) => write!(f, ", {from} to {to}"),
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

/// A key as people read it: quoted where it is text, else in hexadecimal; long ones are cut.
#[must_use]
pub fn key_text(key: &[u8]) -> String {
    const SHOWN: usize = 64;
    let cut = if key.len() > SHOWN { "..." } else { "" };
    let shown = &key[..key.len().min(SHOWN)];
    if shown.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return format!("\"{}\"{cut}", String::from_utf8_lossy(shown));
    }
    let hex: String = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("0x{hex}{cut}")
}
