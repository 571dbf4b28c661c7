//! The settings of a session, which command-line options and dot commands change.

use std::fmt;
use std::str::FromStr;
use tidalite_sql::FileFormat;

/// The format of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// A table with borders, for reading.
    #[default]
    Box,
    /// Comma-separated values (RFC 4180).
    Csv,
    /// One JSON array of objects.
    Json,
    /// One JSON object in each line.
    JsonLines,
    /// A Markdown table.
    Markdown,
    /// One line for each value, and an empty line between rows.
    Line,
    /// Apache Parquet: one result is one file.
    Parquet,
    /// The file format of Arrow IPC: one result is one file.
    Arrow,
}

impl Mode {
    /// All modes, in the order in which the help lists them.
    pub const ALL: [Self; 8] = [
        Self::Box,
        Self::Csv,
        Self::Json,
        Self::JsonLines,
        Self::Markdown,
        Self::Line,
        Self::Parquet,
        Self::Arrow,
    ];

    /// The name of the mode in `.mode` and `--mode`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Csv => "csv",
            Self::Json => "json",
            Self::JsonLines => "jsonl",
            Self::Markdown => "markdown",
            Self::Line => "line",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }

    /// The file format of a mode that writes each result as a separate file; `None` for modes that print text.
    pub(crate) const fn file_format(self) -> Option<FileFormat> {
        match self {
            Self::Parquet => Some(FileFormat::Parquet),
            Self::Arrow => Some(FileFormat::Arrow),
            _ => None,
        }
    }

    /// The default text for NULL. JSON has its own NULL.
    pub(crate) const fn null_text(self) -> &'static str {
        match self {
            Self::Csv => "",
            _ => "NULL",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is not a mode; the modes are {names}")
        })
    }
}

/// Whether query plans are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Explain {
    /// Only results.
    #[default]
    Off,
    /// The plan of each query before its result.
    On,
    /// The plan of each query with measured rows and times, instead of its result.
    Full,
}

/// The settings of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Format of results.
    pub mode: Mode,
    /// Whether to print the names of the columns, in the modes box, csv and markdown.
    pub headers: bool,
    /// Text for NULL; `None` selects the default of the mode.
    pub null_text: Option<String>,
    /// Width of tables in characters; `None` selects the width of the terminal.
    pub width: Option<u16>,
    /// Whether to print the time that each statement has taken.
    pub timer: bool,
    /// Whether to print query plans.
    pub explain: Explain,
    /// Whether to continue with the next statement after an error.
    pub keep_going: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            headers: true,
            null_text: None,
            width: None,
            timer: false,
            explain: Explain::Off,
            keep_going: false,
        }
    }
}

impl Settings {
    /// The text for NULL.
    pub(crate) fn null(&self) -> &str {
        let default = self.mode.null_text();
        self.null_text.as_deref().unwrap_or(default)
    }
}
