//! The errors of this reader.

use std::fmt;

/// A file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that contradict the description of the format.
    Damaged {
        /// Byte offset in the file of the page or block, or 0 where none is known.
        address: u64,
        /// The rule that is broken.
        reason: &'static str,
    },
    /// A format version, feature or form that this reader does not know.
    Unknown {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
    /// A second file is needed, and was not given or is not the one that belongs to the first.
    SecondFile,
}

impl Error {
    /// The error of a broken rule in the block at `address`.
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

/// The result of reading.
pub type Result<T> = std::result::Result<T, Error>;
