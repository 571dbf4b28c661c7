//! File formats and their options.

use crate::error::{Error, ErrorKind, Result};
use datafusion::sql::sqlparser::ast::CopyOption;
use std::path::Path;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// Comma-separated values, RFC 4180.
    Csv,
    /// One JSON object in each line.
    JsonLines,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC in the file format; readers also accept the stream format.
    Arrow,
}

/// Options for reading or writing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileOptions {
    /// The format.
    pub format: FileFormat,
    /// Whether the first line of CSV contains the names of the columns; true by default.
    pub header: bool,
    /// Separator of fields in CSV: a comma by default, a tab for files named `.tsv`.
    pub delimiter: u8,
    /// Quote character for fields of CSV that need quotes; `"` by default.
    pub quote: u8,
    /// Escape character before a quote within a field of CSV; by default, a quote is doubled instead.
    pub escape: Option<u8>,
    /// Text that represents null in CSV; empty by default.
    pub null: String,
}

impl FileOptions {
    /// The default options of a format.
    #[must_use]
    pub fn new(format: FileFormat) -> Self {
        Self {
            format,
            header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            null: String::new(),
        }
    }

    /// The options for a file, according to the extension of its name: `.csv`, `.tsv`, `.jsonl`, `.ndjson`, `.json`,
    /// `.parquet`, `.arrow`, `.feather` or `.ipc`; `None` for other extensions.
    #[must_use]
    pub fn for_file(path: impl AsRef<Path>) -> Option<Self> {
        let end = path.as_ref().extension()?.to_str()?.to_ascii_lowercase();
        let format = match end.as_str() {
            "csv" | "tsv" => FileFormat::Csv,
            "jsonl" | "ndjson" | "json" => FileFormat::JsonLines,
            "parquet" => FileFormat::Parquet,
            "arrow" | "feather" | "ipc" => FileFormat::Arrow,
            _ => return None,
        };
        let options = Self::new(format);
        Some(match end.as_str() {
            "tsv" => Self {
                delimiter: b'\t',
                ..options
            },
            _ => options,
        })
    }

    /// The options given in a COPY statement.
    pub(crate) fn of_copy(path: &str, written: &[CopyOption]) -> Result<Self> {
        let problem = |text: String| Error::new(ErrorKind::Syntax, text);
        let named = written.iter().find_map(|option| match option {
            CopyOption::Format(name) => Some(name.value.to_ascii_lowercase()),
            _ => None,
        });
        let mut options = match named.as_deref() {
            None => Self::for_file(path).ok_or_else(|| {
                problem(format!(
                    "the format of {path:?} is not known by its name; add (FORMAT csv), jsonl, parquet or arrow"
                ))
            })?,
            Some("csv") => Self {
                format: FileFormat::Csv,
                ..Self::for_file(path).unwrap_or(Self::new(FileFormat::Csv))
            },
            Some("json" | "jsonl" | "ndjson") => Self::new(FileFormat::JsonLines),
            Some("parquet") => Self::new(FileFormat::Parquet),
            Some("arrow" | "ipc" | "feather") => Self::new(FileFormat::Arrow),
            Some(other) => {
                return Err(problem(format!(
                    "there is no format {other}: csv, jsonl, parquet or arrow"
                )));
            }
        };
        let byte = |c: char| match u8::try_from(c) {
            Ok(byte) if byte.is_ascii() => Ok(byte),
            _ => Err(problem(format!("{c:?} is not an ASCII character"))),
        };
        for option in written {
            if !matches!(option, CopyOption::Format(_)) && options.format != FileFormat::Csv {
                return Err(problem(format!("{option} is an option of CSV alone")));
            }
            match option {
                CopyOption::Format(_) => {}
                CopyOption::Header(header) => options.header = *header,
                CopyOption::Delimiter(c) => options.delimiter = byte(*c)?,
                CopyOption::Quote(c) => options.quote = byte(*c)?,
                CopyOption::Escape(c) => options.escape = Some(byte(*c)?),
                CopyOption::Null(text) => options.null.clone_from(text),
                other => return Err(problem(format!("not supported: {other}"))),
            }
        }
        Ok(options)
    }
}

/// An error of a file.
pub(crate) fn file_error(path: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::File, format!("{}: {error}", path.display()))
}
