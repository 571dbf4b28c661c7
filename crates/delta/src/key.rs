//! The sort key of the delta: layout class, series, time.
//!
//! ```text
//! 0          4           12                 20
//! | class BE | series BE | time BE, sign bit flipped |
//! |   u32    |    u64    |        8 bytes            |
//! ```
//!
//! The fields are big-endian, so byte order is key order: directories are kv trees. The class comes first, so that a
//! block holds rows of only one layout.

use tidalite_base::SeriesId;

/// Length in bytes of an encoded key.
pub(crate) const KEY_BYTES: usize = 20;

const SIGN: u64 = 1 << 63;

/// Position of a row in the sort order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Class of the row's layout: its index in the delta's list of layouts.
    pub(crate) class: u32,
    /// Id of the row's series.
    pub(crate) series: SeriesId,
    /// Timestamp of the row.
    pub(crate) time: i64,
}

impl Key {
    pub(crate) const MIN: Self = Self {
        class: 0,
        series: SeriesId(0),
        time: i64::MIN,
    };

    pub(crate) fn new(class: u32, series: SeriesId, time: i64) -> Self {
        Self {
            class,
            series,
            time,
        }
    }

    /// The key without the time: class and series.
    pub(crate) fn place(&self) -> (u32, SeriesId) {
        (self.class, self.series)
    }

    /// The smallest key after this key, or `None` if this key is the greatest.
    pub(crate) fn next(&self) -> Option<Self> {
        if let Some(time) = self.time.checked_add(1) {
            return Some(Self { time, ..*self });
        }
        let time = i64::MIN;
        match self.series.0.checked_add(1) {
            Some(series) => Some(Self::new(self.class, SeriesId(series), time)),
            None => Some(Self::new(self.class.checked_add(1)?, SeriesId(0), time)),
        }
    }

    /// The greatest key before this key, or this key if it is the smallest.
    pub(crate) fn before(&self) -> Self {
        if let Some(time) = self.time.checked_sub(1) {
            return Self { time, ..*self };
        }
        match (self.series.0.checked_sub(1), self.class.checked_sub(1)) {
            (Some(series), _) => Self::new(self.class, SeriesId(series), i64::MAX),
            (None, Some(class)) => Self::new(class, SeriesId(u64::MAX), i64::MAX),
            (None, None) => *self,
        }
    }

    pub(crate) fn encode(&self) -> [u8; KEY_BYTES] {
        let mut bytes = [0; KEY_BYTES];
        bytes[..4].copy_from_slice(&self.class.to_be_bytes());
        bytes[4..12].copy_from_slice(&self.series.0.to_be_bytes());
        bytes[12..].copy_from_slice(&(self.time as u64 ^ SIGN).to_be_bytes());
        bytes
    }

    /// Decodes a key; `None` if `bytes` does not have the length of a key.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; KEY_BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_be_bytes(field)
        };
        Some(Self {
            class: (word(0) >> 32) as u32,
            series: SeriesId(word(4)),
            time: (word(12) ^ SIGN) as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_sort_as_keys_and_come_back() {
        let times = [i64::MIN, -5, -1, 0, 1, 7, i64::MAX];
        let mut keys = Vec::new();
        for class in [0, 1, u32::MAX - 1] {
            for series in [0, 1, 300, u64::MAX] {
                for time in times {
                    keys.push(Key::new(class, SeriesId(series), time));
                }
            }
        }
        for pair in keys.windows(2) {
            assert!(pair[0] < pair[1]);
            assert!(pair[0].encode() < pair[1].encode());
        }
        for key in keys {
            assert_eq!(Key::decode(&key.encode()), Some(key));
        }
        assert_eq!(Key::decode(&[0; 19]), None);
    }
}
