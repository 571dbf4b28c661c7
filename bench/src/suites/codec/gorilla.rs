//! The coder Gorilla (Pelkonen and others, 2015): each float is xored with the previous one and stored bit by bit. The
//! encoding of timestamps in the paper is not included.
//!
//! ```text
//! 0                                      equal to the previous word
//! 10  bits inside the previous window    the window of leading and trailing zeros is unchanged
//! 11  5 bits leading, 6 bits length - 1, bits
//! ```

/// Appends bits to bytes, the highest bit first.
struct Writer<'o> {
    out: &'o mut Vec<u8>,
    held: u64,
    count: u32,
}

impl Writer<'_> {
    fn put(&mut self, value: u64, bits: u32) {
        if self.count + bits > 64 {
            let high = bits - 32;
            self.put(value >> 32, high);
            self.put(value & 0xffff_ffff, 32);
            return;
        }
        self.held = if bits == 64 {
            value
        } else {
            self.held << bits | value
        };
        self.count += bits;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.held >> self.count) as u8);
        }
    }

    fn finish(mut self) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
    }
}

/// Reads bits from bytes, the highest bit first.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    /// Reads at most 57 bits.
    fn take_some(&mut self, bits: u32) -> u64 {
        if bits == 0 {
            return 0;
        }
        let mut word = [0; 8];
        let rest = &self.bytes[(self.at / 8).min(self.bytes.len())..];
        let n = rest.len().min(8);
        word[..n].copy_from_slice(&rest[..n]);
        let value = u64::from_be_bytes(word) << (self.at % 8) >> (64 - bits);
        self.at += bits as usize;
        value
    }

    fn take(&mut self, bits: u32) -> u64 {
        if bits <= 57 {
            return self.take_some(bits);
        }
        let high = self.take_some(bits - 32);
        high << 32 | self.take_some(32)
    }
}

/// Encodes the words and appends them to `out`.
pub(crate) fn encode(words: &[u64], out: &mut Vec<u8>) {
    let mut writer = Writer {
        out,
        held: 0,
        count: 0,
    };
    let (mut before, mut leading, mut trailing) = (0, 65, 0);
    for (i, &word) in words.iter().enumerate() {
        let xor = word ^ before;
        before = word;
        if i == 0 {
            writer.put(word, 64);
        } else if xor == 0 {
            writer.put(0, 1);
        } else {
            let (lead, trail) = (xor.leading_zeros().min(31), xor.trailing_zeros());
            if lead >= leading && trail >= trailing {
                writer.put(0b10, 2);
                writer.put(xor >> trailing, 64 - leading - trailing);
            } else {
                (leading, trailing) = (lead, trail);
                let bits = 64 - lead - trail;
                writer.put(0b11, 2);
                writer.put(u64::from(lead), 5);
                writer.put(u64::from(bits - 1), 6);
                writer.put(xor >> trail, bits);
            }
        }
    }
    writer.finish();
}

/// Decodes as many words as fit into `out`.
pub(crate) fn decode(bytes: &[u8], out: &mut [u64]) {
    let mut reader = Reader { bytes, at: 0 };
    let (mut word, mut bits, mut trailing) = (0, 0, 0);
    for (i, place) in out.iter_mut().enumerate() {
        if i == 0 {
            word = reader.take(64);
        } else if reader.take(1) == 1 {
            if reader.take(1) == 1 {
                let lead = reader.take(5) as u32;
                bits = reader.take(6) as u32 + 1;
                trailing = 64 - lead - bits;
            }
            word ^= reader.take(bits) << trailing;
        }
        *place = word;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let mut words: Vec<u64> = (0..1000)
            .map(|i| (f64::from(i % 37) / 7.0).to_bits())
            .collect();
        words.extend([0, u64::MAX, 1, 1, 1 << 63, f64::NAN.to_bits(), 5, 5]);
        let mut bytes = Vec::new();
        encode(&words, &mut bytes);
        let mut back = vec![0; words.len()];
        decode(&bytes, &mut back);
        assert_eq!(back, words);
        bytes.clear();
        encode(&[7; 801], &mut bytes);
        assert_eq!(bytes.len(), 8 + 100);
    }
}
