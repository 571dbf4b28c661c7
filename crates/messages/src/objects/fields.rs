//! Decodes the fields of a row; the bytes may be damaged.

use crate::objects::parts::damaged;
use tidalite_pager::{Error, Result};
use tidalite_time::Timestamp;

/// The fields of a row that have not been read yet. Numbers are little-endian.
pub(crate) struct Fields<'b> {
    what: &'static str,
    bytes: &'b [u8],
}

impl<'b> Fields<'b> {
    /// The fields in `bytes`; `what` names the row in errors.
    pub(crate) fn new(what: &'static str, bytes: &'b [u8]) -> Self {
        Self { what, bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes.split_first_chunk::<N>() {
            Some((field, rest)) => {
                self.bytes = rest;
                Ok(*field)
            }
            None => Err(self.error("too few bytes", "more fields")),
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp> {
        let nanos = self.array().map(i64::from_le_bytes);
        nanos.map(Timestamp)
    }

    /// The next `len` bytes as text.
    pub(crate) fn text(&mut self, len: usize) -> Result<&'b str> {
        let Some((text, rest)) = self.bytes.split_at_checked(len) else {
            return Err(self.error("too few bytes", "a text"));
        };
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| self.error(text.escape_ascii(), "UTF-8"))
    }

    /// All bytes that have not been read.
    pub(crate) fn rest(&mut self) -> &'b [u8] {
        std::mem::take(&mut self.bytes)
    }

    /// Returns an error unless the row ends here.
    pub(crate) fn end(&self) -> Result<()> {
        match self.bytes {
            [] => Ok(()),
            rest => Err(self.error(
                format!("{} bytes too many", rest.len()),
                "the end of the row",
            )),
        }
    }

    #[cold]
    pub(crate) fn error(
        &self,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Error {
        damaged(self.what, found, expected)
    }
}
