//! Which bits are flipped.

/// Which bits, and for which of them the whole content is read besides the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// One bit of each byte, from byte to byte another one, with the content.
    OneBit,
    /// Every bit; the content for one in eight, from byte to byte another one.
    EveryBit,
    /// Every bit, each with the content.
    EveryBitAndContent,
}

impl Depth {
    /// The bits of the byte at `at`, as masks, and whether the content is read.
    pub(super) fn masks(self, at: usize) -> impl Iterator<Item = (u8, bool)> {
        // So that no bit of a field of two, four or eight bytes is always the one.
        let chosen = (at ^ at >> 3 ^ at >> 6) % 8;
        let of_bit = move |bit: usize| match self {
            Self::OneBit => (bit == chosen).then_some(true),
            Self::EveryBit => Some(bit == chosen),
            Self::EveryBitAndContent => Some(true),
        };
        (0..8).filter_map(move |bit| Some((1 << bit, of_bit(bit)?)))
    }

    /// Bits of a byte.
    pub(super) fn bits(self) -> usize {
        self.masks(0).count()
    }
}
