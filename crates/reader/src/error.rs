//! The errors of this reader.

use std::fmt;

/// The reason why a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The file has bytes that contradict the description of the format.
    Damaged {
        /// Address in the file of the page or block in bytes, or 0 if it is not known.
        address: u64,
        /// The rule of the format that is broken.
        reason: &'static str,
    },
    /// The file has a format version, a feature or a form that this reader does not know.
    Unknown {
        /// Name of the field with the unknown value.
        field: &'static str,
        /// The unknown value.
        value: u64,
    },
    /// A second file is needed, but none was given, or the given one does not belong to the first file.
    SecondFile,
}

impl Error {
    /// Creates the error for a broken rule in the block at `address`.
    #[must_use]
    pub fn damaged(address: u64, reason: &'static str) -> Self {
        Self::Damaged { address, reason }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Damaged { address, reason } => write!(f, "damage at byte {address}: {reason}"),
            Self::Unknown { field, value } => write!(f, "unknown {field}: {value}"),
            Self::SecondFile => f.write_str("the second file is missing, or another one"),
        }
    }
}

impl std::error::Error for Error {}

/// The result of a read.
pub type Result<T> = std::result::Result<T, Error>;
