//! The key of a segment.
//!
//! ```text
//! +0   16  GUID of the series
//! +16   8  time of the segment's first point: big-endian, sign bit flipped
//! ```

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Length of a key in bytes.
pub(crate) const KEY_BYTES: usize = 24;

/// The GUID of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Guid(pub(crate) [u8; 16]);

impl Guid {
    /// Bytes 8 to 15 of the GUID, which are random enough to serve as the hash, as in the published engine.
    fn lo(self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }
}

impl Hash for Guid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.lo());
    }
}

/// A hasher that returns the one word that [`Guid`] writes to it.
#[derive(Default)]
pub(crate) struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("a Guid hashes as one word");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

/// A map whose hash is the low half of the GUID.
pub(crate) type GuidMap<V> = std::collections::HashMap<Guid, V, BuildHasherDefault<Identity>>;

/// The key of the segment of `series` that begins at `time`.
pub(crate) fn encode(series: Guid, time: i64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..16].copy_from_slice(&series.0);
    key[16..].copy_from_slice(&((time as u64) ^ (1 << 63)).to_be_bytes());
    key
}

/// The time in `key` if the key belongs to `series`; otherwise `None`.
pub(crate) fn time_of(key: &[u8], series: Guid) -> Option<i64> {
    let (guid, time) = key.split_first_chunk::<16>()?;
    let time = <[u8; 8]>::try_from(time).ok()?;
    (*guid == series.0).then(|| (u64::from_be_bytes(time) ^ (1 << 63)) as i64)
}
