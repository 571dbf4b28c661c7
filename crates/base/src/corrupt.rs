//! The description of damage, which every error about damage contains: the item that was read, its address, the value
//! found, and the value expected.

use crate::limits::SECOND_FILE_AT;
use core::fmt;

/// Damage found in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corrupt {
    /// Name of the item that was being read, in the terms of the file format: "leaf directory of series 7".
    pub what: String,
    /// Byte address of the item in the file; addresses from [`SECOND_FILE_AT`] on are in the second file.
    pub at: u64,
    /// The value that was found, as text.
    pub found: String,
    /// The value that should have been there, as text.
    pub expected: String,
}

impl Corrupt {
    /// Creates the description of damage at byte address `at`.
    pub fn new(
        what: impl Into<String>,
        at: u64,
        found: impl fmt::Display,
        expected: impl fmt::Display,
    ) -> Self {
        Self {
            what: what.into(),
            at,
            found: found.to_string(),
            expected: expected.to_string(),
        }
    }
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "damaged {} at byte ", self.what)?;
        match self.at.checked_sub(SECOND_FILE_AT) {
            Some(at) => write!(f, "{at} of the second file")?,
            None => write!(f, "{}", self.at)?,
        }
        write!(f, ": found {}, expected {}", self.found, self.expected)
    }
}

impl core::error::Error for Corrupt {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_file_begins_at_its_limit_and_not_one_before() {
        let told = |at| Corrupt::new("page", at, 1, 2).to_string();
        let last = SECOND_FILE_AT - 1;
        assert_eq!(
            told(last),
            format!("damaged page at byte {last}: found 1, expected 2")
        );
        let expected = "damaged page at byte 0 of the second file: found 1, expected 2";
        assert_eq!(told(SECOND_FILE_AT), expected);
    }
}
