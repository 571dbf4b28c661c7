//! Serializes an encoder state in eight bytes, for callers that keep the state between two runs of a program.
//!
//! ```text
//! 0          1      2     3          4        5        6     8
//! | encoding | bits | age | exponent | factor | detail | bad |
//! |    u8    |  u8  | u8  |    u8    |   u8   |   u8   | u16 |
//! ```
//!
//! The high half of the first byte is the choice for floats that came from f32.
//!
//! Writers may store zeros instead of a state. Readers do not need the state, because no chunk depends on it.

use crate::encode::encoder_state::{EncoderState, Inner, Single};
use crate::encode::layout::LayoutMemory;
use crate::loops::float::Alp;

/// Length in bytes of an encoded [`EncoderState`].
pub const ENCODER_STATE_BYTES: usize = 8;

impl EncoderState {
    /// Encodes the state in 8 bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; ENCODER_STATE_BYTES] {
        let Alp { exponent, factor } = self.alp;
        let [low, high] = self.bad.to_le_bytes();
        [
            self.encoding | self.single.code() << 4,
            self.bits,
            self.age,
            exponent,
            factor,
            self.detail,
            low,
            high,
        ]
    }

    /// Decodes a state from 8 bytes. Any bytes are accepted; inconsistent bytes give a state without a remembered
    /// choice.
    #[must_use]
    pub fn from_bytes(bytes: [u8; ENCODER_STATE_BYTES]) -> Self {
        let [first, bits, age, exponent, factor, detail, low, high] = bytes;
        let (encoding, single) = (first & 15, Single::from_code(first >> 4));
        let alp = Alp { exponent, factor };
        if !alp.is_valid() {
            return Self::default();
        }
        Self {
            encoding,
            bits,
            age,
            detail,
            alp,
            bad: u16::from_le_bytes([low, high]),
            single,
            inner: Inner::default(),
            layouts: LayoutMemory::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ColumnType, encode_column};

    #[test]
    fn any_bytes_are_a_state_that_encodes() {
        let mut words: Vec<u64> = (0..1024).map(|i| (f64::from(i) / 10.0).to_bits()).collect();
        words[300..304].fill(f64::NAN.to_bits());
        let mut state = EncoderState::default();
        let mut out = Vec::new();
        encode_column(ColumnType::F64, &words, &mut state, &mut out);
        assert_eq!(state.bad, 4);
        state.layouts = LayoutMemory::default(); // layouts, like `inner`, are not serialized
        state.inner = Inner::default();
        assert_eq!(EncoderState::from_bytes(state.to_bytes()), state);
        for first in (0..=255).step_by(if cfg!(miri) { 51 } else { 1 }) {
            for rest in [0, 1, 31, 255] {
                let mut state =
                    EncoderState::from_bytes([first, rest, rest, 14, 13, rest, rest, rest]);
                encode_column(ColumnType::F64, &words, &mut state, &mut out);
                encode_column(ColumnType::I64, &words, &mut state, &mut out);
                out.clear();
            }
        }
    }
}
