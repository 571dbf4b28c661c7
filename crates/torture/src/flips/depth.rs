//! Selects the bits of a file that are flipped.

/// Which bits are flipped, and for which of them the whole content is read in addition to the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Flips one bit of each byte, at positions that rotate from byte to byte, and reads the content after each flip.
    OneBit,
    /// Flips every bit, and reads the content after one in eight flips, at positions that rotate from byte to byte.
    EveryBit,
    /// Flips every bit, and reads the content after each flip.
    EveryBitAndContent,
}

impl Depth {
    /// The masks of the bits to flip in the byte at offset `at`, each with a flag that tells whether the content is
    /// read.
    pub(super) fn masks(self, at: usize) -> impl Iterator<Item = (u8, bool)> {
        // The bit position rotates so that it varies within fields of two, four or eight bytes.
        let chosen = (at ^ at >> 3 ^ at >> 6) % 8;
        let of_bit = move |bit: usize| match self {
            Self::OneBit => (bit == chosen).then_some(true),
            Self::EveryBit => Some(bit == chosen),
            Self::EveryBitAndContent => Some(true),
        };
        (0..8).filter_map(move |bit| Some((1 << bit, of_bit(bit)?)))
    }

    /// Number of bits that are flipped in a byte.
    pub(super) fn bits(self) -> usize {
        self.masks(0).count()
    }
}
