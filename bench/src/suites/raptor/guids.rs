//! Keys and values: GUIDs that are computed from numbers, and their texts.

use crate::engine::Result;
use crate::engine::data::Random;

pub(super) type Guid = [u8; 16];

/// Number of bytes of a GUID as a text.
const TEXT_BYTES: usize = 36;
/// Number of bytes of a GUID and its text.
pub(super) const PAIR_BYTES: u64 = (size_of::<Guid>() + TEXT_BYTES) as u64;

/// GUID number `n`. All GUIDs are different, and their order is random.
#[inline]
pub(super) fn guid(n: u64) -> Guid {
    // The first random number is a one-to-one function of the seed.
    let mut random = Random::new(n);
    let mut guid = [0; 16];
    guid[..8].copy_from_slice(&random.next().to_be_bytes());
    guid[8..].copy_from_slice(&random.next().to_be_bytes());
    guid
}

/// The text of a GUID, such as `0f8fad5b-d9cb-469f-a165-70867728950e`.
pub(super) struct Text([u8; TEXT_BYTES]);

impl Text {
    #[inline]
    pub(super) fn of(guid: &Guid) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [b'-'; TEXT_BYTES];
        let mut at = 0;
        for (place, byte) in guid.iter().enumerate() {
            if matches!(place, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = DIGITS[usize::from(byte >> 4)];
            text[at + 1] = DIGITS[usize::from(byte & 15)];
            at += 2;
        }
        Self(text)
    }

    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn text(&self) -> Result<&str> {
        Ok(std::str::from_utf8(&self.0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn guids_differ_and_have_texts() {
        let all: BTreeSet<Guid> = (0..10_000).map(guid).collect();
        assert_eq!(all.len(), 10_000);
        assert!(!(0..100).map(guid).is_sorted());
        let guid = *b"\x0f\x8f\xad\x5b\xd9\xcb\x46\x9f\xa1\x65\x70\x86\x77\x28\x95\x0e";
        let text = Text::of(&guid);
        assert_eq!(text.text().unwrap(), "0f8fad5b-d9cb-469f-a165-70867728950e");
    }
}
