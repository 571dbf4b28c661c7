//! Rows of the expiry index.
//!
//! ```text
//! key      time, i64 big-endian with the highest bit inverted | id of the topic, u64 big-endian
//! value    empty
//! ```
//!
//! Each message that expires has one row. The time in the row (`Head::filed`) is not later than the expiry.

use tidalite_base::Corrupt;
use tidalite_pager::Result;

pub(super) const ROW_BYTES: usize = 16;

const SIGN: u64 = 1 << 63;

pub(super) fn row_of(filed: i64, id: u64) -> [u8; ROW_BYTES] {
    let mut row = [0; ROW_BYTES];
    row[..8].copy_from_slice(&(filed as u64 ^ SIGN).to_be_bytes());
    row[8..].copy_from_slice(&id.to_be_bytes());
    row
}

/// The time and the id of a row.
pub(super) fn parse(row: &[u8]) -> Result<(i64, u64)> {
    let parsed = row.split_first_chunk::<8>().and_then(|(time, id)| {
        let id = u64::from_be_bytes(id.try_into().ok()?);
        Some(((u64::from_be_bytes(*time) ^ SIGN) as i64, id))
    });
    parsed.ok_or_else(|| {
        let found = row.escape_ascii().to_string();
        Corrupt::new("row of the expiry index", 0, found, "16 bytes").into()
    })
}
