//! Reads numbers, lengths and bytes of encoded messages.

use super::tag::{
    DECIMAL, FALSE, FLOAT, INTEGER, LIST, NEGATIVE, NULL, OBJECT, SHORT_TEXT, SMALL, TEXT, TRUE,
};
use tidalite_base::Corrupt;
use tidalite_pager::Error;

/// Reads values from the beginning of a byte slice. Its functions return `None` for bytes that no encoder writes.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*byte)
    }

    /// Reads a varint of at most five bytes; numbers of names and lengths need no more.
    #[inline]
    pub(super) fn number(&mut self) -> Option<u32> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in [7, 14, 21, 28] {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                // An encoder omits a last byte of 0.
                return u32::try_from(number).ok().filter(|_| byte != 0);
            }
        }
        None
    }

    #[inline]
    pub(super) fn length(&mut self) -> Option<usize> {
        self.number().map(|len| len as usize)
    }

    #[inline]
    pub(super) fn sized(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.take(len)
    }

    pub(super) fn name(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.sized()?).ok()
    }

    /// Skips a value.
    #[inline]
    pub(super) fn skip(&mut self) -> Option<()> {
        let tag = self.byte()?;
        let len = match tag {
            NULL | FALSE | TRUE | SMALL.. => 0,
            FLOAT => 8,
            TEXT | LIST | OBJECT => self.length()?,
            SHORT_TEXT.. => usize::from(tag - SHORT_TEXT),
            DECIMAL.. => usize::from(tag - DECIMAL) + 1,
            NEGATIVE.. => usize::from(tag - NEGATIVE),
            INTEGER.. => usize::from(tag - INTEGER),
            _ => return None,
        };
        self.take(len).map(|_| ())
    }

    /// Reads an integer of `len` bytes. If there are several bytes, the last one must not be 0.
    #[inline]
    pub(super) fn integer(&mut self, len: usize) -> Option<u64> {
        if len > 8 {
            return None;
        }
        let taken = self.take(len)?;
        if len > 1 && taken[len - 1] == 0 {
            return None;
        }
        let mut number = [0; 8];
        number[..len].copy_from_slice(taken);
        Some(u64::from_le_bytes(number))
    }
}

/// Creates the error for bytes that no encoder writes.
#[cold]
pub(super) fn wrong(bytes: &[u8], expected: &str) -> Error {
    let found = match &bytes[..bytes.len().min(16)] {
        [] => "the end of the bytes".to_owned(),
        bytes => format!("b\"{}\"", bytes.escape_ascii()),
    };
    Corrupt::new("message of a container", 0, found, expected).into()
}
