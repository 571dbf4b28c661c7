//! Selects the bits to flip.

/// Which bits to flip, and for which of them the whole content is read in addition to the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// One bit of each byte, rotating from byte to byte, with the content.
    OneBit,
    /// Every bit; the content for one bit in eight, rotating from byte to byte.
    EveryBit,
    /// Every bit, each with the content.
    EveryBitAndContent,
}

impl Depth {
    /// Masks of the bits to flip in the byte at `at`, and whether the content is read.
    pub(super) fn masks(self, at: usize) -> impl Iterator<Item = (u8, bool)> {
        // Rotated so that the bit position varies within fields of two, four or eight bytes.
        let chosen = (at ^ at >> 3 ^ at >> 6) % 8;
        let of_bit = move |bit: usize| match self {
            Self::OneBit => (bit == chosen).then_some(true),
            Self::EveryBit => Some(bit == chosen),
            Self::EveryBitAndContent => Some(true),
        };
        (0..8).filter_map(move |bit| Some((1 << bit, of_bit(bit)?)))
    }

    /// Number of bits flipped in a byte.
    pub(super) fn bits(self) -> usize {
        self.masks(0).count()
    }
}
