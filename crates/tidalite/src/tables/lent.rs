//! A value that is borrowed from the snapshot or transaction that it is read from.

use crate::types::error::Result;
use tidalite_kv::{PageSlice, Value};

/// A value of a table: borrowed from its page, or read into memory if it is stored in pieces.
#[derive(Clone, Debug)]
pub struct Lent<'a>(Held<'a>);

#[derive(Clone, Debug)]
enum Held<'a> {
    Leaf(PageSlice<'a>),
    Memory(Vec<u8>),
}

impl<'a> Lent<'a> {
    #[inline]
    pub(crate) fn of(value: Value<'a>) -> Result<Self> {
        Ok(Self(match value.into_piece() {
            Ok(piece) => Held::Leaf(piece),
            Err(value) => Held::Memory(value.to_vec()?),
        }))
    }

    /// The bytes of the value as a vector. Copies them if they are borrowed.
    #[must_use]
    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Held::Leaf(piece) => piece.to_vec(),
            Held::Memory(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Lent<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Held::Memory(bytes))
    }
}

impl std::ops::Deref for Lent<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Held::Leaf(piece) => piece,
            Held::Memory(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Lent<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
