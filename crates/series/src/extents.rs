//! The extents table: an ordered table of the extents into which leaves are packed, with the live bytes of each. The
//! caller chooses the table's id.
//!
//! ```text
//! key    | address u64, big-endian |
//! value  0       8           16          24         32          40
//!        | pages | birth txn | live bytes | used bytes | last time |
//!        |  u64  |    u64    |    u64     |    u64     |    i64    |
//! ```
//! `live` is the number of bytes in leaves that the newest version references, `used` the number of bytes in all leaves
//! ever written to the extent; the rest of the extent is zero. `last time` is the newest timestamp in the extent.
//! the rest of the extent is zero. `last time` is the newest timestamp in the extent.

use tidalite_base::limits::{EXTENT_PAGES_MAX, SECOND_FILE_AT};
use tidalite_base::{Corrupt, TxnId, get_i64, get_u64, put_i64, put_u64};
use tidalite_kv::Tree;
use tidalite_pager::{Extent, PageRead, PageWrite, Result};

const PAGES_AT: usize = 0;
const BIRTH_AT: usize = PAGES_AT + 8;
const LIVE_AT: usize = BIRTH_AT + 8;
const USED_AT: usize = LIVE_AT + 8;
const LAST_TIME_AT: usize = USED_AT + 8;
const RECORD_BYTES: usize = LAST_TIME_AT + 8;

/// Entry of the extents table: an extent into which leaves are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentRecord {
    /// Length of the extent in pages.
    pub pages: u64,
    /// The transaction that wrote the extent.
    pub birth: TxnId,
    /// Number of bytes in leaves that the newest version references.
    pub live: u64,
    /// Number of bytes in all leaves ever written to the extent.
    pub used: u64,
    /// Newest timestamp of a row in the extent.
    pub last_time: i64,
}

impl ExtentRecord {
    /// Converts this entry, whose key is the address `addr`, to the pager's type.
    #[must_use]
    pub fn extent(&self, addr: u64) -> Extent {
        Extent {
            addr,
            pages: self.pages,
            birth: self.birth,
        }
    }

    fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        put_u64(&mut out, PAGES_AT, self.pages);
        put_u64(&mut out, BIRTH_AT, self.birth.0);
        put_u64(&mut out, LIVE_AT, self.live);
        put_u64(&mut out, USED_AT, self.used);
        put_i64(&mut out, LAST_TIME_AT, self.last_time);
        out
    }

    fn decode(addr: u64, bytes: &[u8]) -> Result<Self> {
        if bytes.len() != RECORD_BYTES {
            let found = format!("{} bytes", bytes.len());
            let expected = format!("{RECORD_BYTES} bytes");
            return Err(Corrupt::new("extents table", addr, found, expected).into());
        }
        let record = Self {
            pages: get_u64(bytes, PAGES_AT),
            birth: TxnId(get_u64(bytes, BIRTH_AT)),
            live: get_u64(bytes, LIVE_AT),
            used: get_u64(bytes, USED_AT),
            last_time: get_i64(bytes, LAST_TIME_AT),
        };
        if record.live > record.used || record.used > 1 << 48 {
            let found = format!("{record:?}");
            return Err(Corrupt::new("extents table", addr, found, "live <= used").into());
        }
        if addr >= SECOND_FILE_AT || record.pages > EXTENT_PAGES_MAX {
            let found = format!("{record:?}");
            return Err(Corrupt::new("extents table", addr, found, "an extent of the file").into());
        }
        Ok(record)
    }
}

fn key(addr: u64) -> [u8; 8] {
    addr.to_be_bytes()
}

fn decode_row(key: &[u8], value: &[u8]) -> Result<(u64, ExtentRecord)> {
    let Ok(key) = <[u8; 8]>::try_from(key) else {
        let found = format!("a key of {} bytes", key.len());
        return Err(Corrupt::new("extents table", 0, found, "8 bytes").into());
    };
    let addr = u64::from_be_bytes(key);
    Ok((addr, ExtentRecord::decode(addr, value)?))
}

/// The address and the entry of the extent that holds the leaf at `addr`; `None` if there is no such extent.
pub(crate) fn extent_of<R: PageRead>(
    table: &Tree,
    r: &R,
    addr: u64,
) -> Result<Option<(u64, ExtentRecord)>> {
    let mut cursor = table.cursor(r);
    if !cursor.seek_le(&key(addr))? {
        return Ok(None);
    }
    let (start, record) = decode_row(cursor.key(), &cursor.value()?.to_vec()?)?;
    // In a damaged table whose keys do not ascend, the seek may end after the address.
    let into = addr.checked_sub(start);
    debug_assert!(record.live <= record.used, "decoding checks it");
    Ok(into
        .is_some_and(|bytes| bytes < record.used)
        .then_some((start, record)))
}

/// Calls `f` with the address and the entry of each extent, in ascending order of addresses.
pub(crate) fn each<R: PageRead>(
    table: &Tree,
    r: &R,
    mut f: impl FnMut(u64, ExtentRecord) -> Result<()>,
) -> Result<()> {
    let mut cursor = table.cursor(r);
    let mut on = cursor.first()?;
    while on {
        let (start, record) = decode_row(cursor.key(), &cursor.value()?.to_vec()?)?;
        f(start, record)?;
        on = cursor.next()?;
    }
    Ok(())
}

pub(crate) fn put<W: PageWrite>(
    table: &mut Tree,
    w: &mut W,
    addr: u64,
    record: &ExtentRecord,
) -> Result<()> {
    assert!(record.live > 0, "an extent without live bytes is freed");
    assert!(record.live <= record.used, "live leaves were written");
    table.insert(w, &key(addr), &record.encode())?;
    Ok(())
}

pub(crate) fn remove<W: PageWrite>(table: &mut Tree, w: &mut W, addr: u64) -> Result<()> {
    table.remove(w, &key(addr))?;
    Ok(())
}
