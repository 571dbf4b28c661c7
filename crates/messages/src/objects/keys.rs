//! Keys of the tables of a bucket, and the division of contents into chunks.

use crate::objects::parts::damaged;
use tidalite_pager::{Error, Refusal, Result};
use tidalite_time::Timestamp;

/// Maximum length in bytes of the name of an object.
pub const OBJECT_NAME_BYTES_MAX: usize = 1024;

/// Minimum size in bytes of a chunk. Tests use small chunks, so that short objects have many.
pub const CHUNK_BYTES_MIN: u32 = if cfg!(any(test, feature = "small-chunks")) {
    8
} else {
    1 << 20
};

/// Maximum size in bytes of a chunk.
pub const CHUNK_BYTES_MAX: u32 = 8 << 20;

/// Default size in bytes of a chunk.
pub const CHUNK_BYTES_DEFAULT: u32 = 4 << 20;

/// Maximum number of chunks of an object: chunk indexes have 32 bits. With chunks of 1 MiB this is 4 PiB.
pub const OBJECT_CHUNKS_MAX: u64 = u32::MAX as u64;

/// Maximum value of the counters of a bucket, so that sums with sizes of objects do not overflow.
pub(crate) const COUNT_MAX: u64 = 1 << 62;

/// Content ids are below this number.
pub(crate) const CONTENT_MAX: u64 = COUNT_MAX - 1;

const ID_BYTES: usize = 8;
const CHUNK_KEY_BYTES: usize = ID_BYTES + 4;
const TIME_BYTES: usize = 8;
const SIGN: u64 = 1 << 63;

/// Number of chunks of contents of this size.
pub(crate) fn chunk_count(size: u64, chunk_bytes: u32) -> u64 {
    size.div_ceil(u64::from(chunk_bytes))
}

/// Length in bytes of the chunk at `index`; 0 beyond the last chunk.
pub(crate) fn chunk_len(size: u64, chunk_bytes: u32, index: u64) -> u64 {
    let chunk = u64::from(chunk_bytes);
    size.saturating_sub(index.saturating_mul(chunk)).min(chunk)
}

/// Checks that contents of this size have at most [`OBJECT_CHUNKS_MAX`] chunks.
pub(crate) fn check_chunk_count(size: u64, chunk_bytes: u32) -> Result<()> {
    let found = chunk_count(size, chunk_bytes);
    if found > OBJECT_CHUNKS_MAX {
        return Err(Error::Limit {
            what: "chunks of an object",
            found,
            limit: OBJECT_CHUNKS_MAX,
        });
    }
    Ok(())
}

/// Checks the length of a name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if name.len() > OBJECT_NAME_BYTES_MAX {
        return Err(Error::Limit {
            what: "bytes of the name of an object",
            found: name.len() as u64,
            limit: OBJECT_NAME_BYTES_MAX as u64,
        });
    }
    if name.is_empty() {
        return Err(Error::refused(
            Refusal::InvalidName,
            "an empty name of an object",
            "a name of at least one byte",
        ));
    }
    Ok(())
}

/// Decodes a name from the key of a row.
pub(crate) fn name_of(bytes: &[u8]) -> Result<&str> {
    let name = std::str::from_utf8(bytes).ok();
    name.filter(|name| check_name(name).is_ok()).ok_or_else(|| {
        damaged(
            "name of an object",
            bytes.escape_ascii(),
            "1 to 1024 bytes of UTF-8",
        )
    })
}

/// Key of a chunk, or of its hash.
pub(crate) fn chunk_key(content: u64, index: u32) -> [u8; CHUNK_KEY_BYTES] {
    let mut key = [0; CHUNK_KEY_BYTES];
    key[..ID_BYTES].copy_from_slice(&content.to_be_bytes());
    key[ID_BYTES..].copy_from_slice(&index.to_be_bytes());
    key
}

/// Decodes the key of a chunk, or of its hash.
pub(crate) fn chunk_of(key: &[u8]) -> Result<(u64, u32)> {
    match key.split_last_chunk::<4>() {
        Some((id, index)) if *index != [u8::MAX; 4] => Ok((id_of(id)?, u32::from_be_bytes(*index))),
        _ => Err(damaged(
            "key of a chunk",
            key.escape_ascii(),
            "12 bytes, an index below 2^32 - 1",
        )),
    }
}

/// Key of a row of the table of tails: bytes after the last whole chunk of an upload, at an offset.
pub(crate) fn tail_key(upload: u64, offset: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..ID_BYTES].copy_from_slice(&upload.to_be_bytes());
    key[ID_BYTES..].copy_from_slice(&offset.to_be_bytes());
    key
}

/// Decodes a content id.
pub(crate) fn id_of(key: &[u8]) -> Result<u64> {
    let id = <[u8; ID_BYTES]>::try_from(key).map(u64::from_be_bytes);
    match id {
        Ok(id) if id < CONTENT_MAX => Ok(id),
        _ => Err(damaged(
            "content id",
            key.escape_ascii(),
            "8 bytes, less than 2^62 - 1",
        )),
    }
}

/// Key of a row that is ordered by time: the time, followed by the bytes of a name or an id.
pub(crate) fn time_key(time: Timestamp, rest: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(TIME_BYTES + rest.len());
    key.extend_from_slice(&(time.0.cast_unsigned() ^ SIGN).to_be_bytes());
    key.extend_from_slice(rest);
    key
}

/// Decodes the key of a row that is ordered by time.
pub(crate) fn time_of(key: &[u8]) -> Result<(Timestamp, &[u8])> {
    match key.split_first_chunk::<TIME_BYTES>() {
        Some((time, rest)) => {
            let nanos = (u64::from_be_bytes(*time) ^ SIGN).cast_signed();
            Ok((Timestamp(nanos), rest))
        }
        None => Err(damaged(
            "time in a bucket",
            key.escape_ascii(),
            "8 bytes and a name or id",
        )),
    }
}
