//! Flags of LMDB and libmdbx for key orders that Tidalite's tables do not have, with their names in the header of a
//! dump.
//!
//! ```text
//! integerkey   keys are native integers, on a little-endian machine the least byte first, ordered as numbers
//! reversekey   keys are compared from the last byte to the first
//! integerdup   like integerkey, for the values of a key
//! reversedup   like reversekey, for the values of a key
//! dupfixed     values of a key have one length (mdbx_dump calls it dupfix)
//! ```
//!
//! If the bytes of such keys are reversed, Tidalite's byte order gives their original order. Tidalite does not store
//! the original flags of a table.

use crate::args::ForeignFlag;

/// The part of a pair to which a flag applies: key or value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Key = 0,
    Value = 1,
}

impl ForeignFlag {
    /// The flag with this name in a header.
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

    /// The name of the flag in a header.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::IntegerKey => "integerkey",
            Self::ReverseKey => "reversekey",
            Self::IntegerDup => "integerdup",
            Self::ReverseDup => "reversedup",
            Self::DupFixed => "dupfixed",
        }
    }

    /// Whether the flag applies to values of a set, so that only tables of sets can have it.
    pub(super) fn of_values(self) -> bool {
        !matches!(self, Self::IntegerKey | Self::ReverseKey)
    }
}

/// Whether these flags require that the bytes of this part are reversed when they are loaded, and reversed again when
/// they are dumped.
pub(super) fn turns(flags: &[ForeignFlag], part: Part) -> bool {
    let (integer, reverse) = match part {
        Part::Key => (ForeignFlag::IntegerKey, ForeignFlag::ReverseKey),
        Part::Value => (ForeignFlag::IntegerDup, ForeignFlag::ReverseDup),
    };
    flags.contains(&integer) || flags.contains(&reverse)
}

/// The error text if a table with these flags cannot contain a key or value of this length; `first` is the length of
/// the first key or value in the table.
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
