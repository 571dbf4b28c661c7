//! Flags of LMDB and libmdbx for key orders that tables here do not have, by their names in the header of a dump.
//!
//! ```text
//! integerkey   keys are native integers, on a little-endian machine the least byte first, ordered as numbers
//! reversekey   keys are compared from the last byte to the first
//! integerdup   like integerkey, for the values of a key
//! reversedup   like reversekey, for the values of a key
//! dupfixed     values of a key have one length (mdbx_dump calls it dupfix)
//! ```
//!
//! When reversed, such bytes have the same order here. A table here does not store its original flags.

use crate::args::ForeignFlag;

/// Key or value of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key = 0,
    Value = 1,
}

impl ForeignFlag {
    /// The flag for a word in a header.
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "integerkey" => Some(Self::IntegerKey),
            "reversekey" => Some(Self::ReverseKey),
            "integerdup" => Some(Self::IntegerDup),
            "reversedup" => Some(Self::ReverseDup),
            "dupfixed" | "dupfix" => Some(Self::DupFixed),
            _ => None,
        }
    }

    /// Word of the flag in a header.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::IntegerKey => "integerkey",
            Self::ReverseKey => "reversekey",
            Self::IntegerDup => "integerdup",
            Self::ReverseDup => "reversedup",
            Self::DupFixed => "dupfixed",
        }
    }

    /// Whether only tables of sets can have the flag.
    pub(super) fn of_values(self) -> bool {
        !matches!(self, Self::IntegerKey | Self::ReverseKey)
    }
}

/// Whether bytes are reversed when loaded, and when dumped again.
pub(super) fn turns(flags: &[ForeignFlag], part: Part) -> bool {
    let (integer, reverse) = match part {
        Part::Key => (ForeignFlag::IntegerKey, ForeignFlag::ReverseKey),
        Part::Value => (ForeignFlag::IntegerDup, ForeignFlag::ReverseDup),
    };
    flags.contains(&integer) || flags.contains(&reverse)
}

/// Error text if a key or value of this length cannot be in a table with these flags whose first has the length
/// `first`.
pub(super) fn problem(
    flags: &[ForeignFlag],
    part: Part,
    bytes: usize,
    first: usize,
) -> Option<String> {
    let (what, integer) = match part {
        Part::Key => ("key", ForeignFlag::IntegerKey),
        Part::Value => ("value", ForeignFlag::IntegerDup),
    };
    let integer = flags.contains(&integer);
    if integer && !matches!(bytes, 4 | 8) {
        return Some(format!(
            "a {what} of {bytes} bytes is not an integer of 4 or 8 bytes"
        ));
    }
    let fixed = part == Part::Value && flags.contains(&ForeignFlag::DupFixed);
    let differs = (integer || fixed) && bytes != first;
    differs.then(|| format!("a {what} of {bytes} bytes among others of {first} bytes"))
}
