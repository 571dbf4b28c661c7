//! The keys of rows. Numbers are big-endian, so rows are sorted by these numbers.
//!
//! ```text
//! message      | id: 8 |
//! open, dead   | group: 4 | block: 6 |
//! ready        | group: 4 | 255 - priority: 1 | block: 6 |
//! due          | group: 4 | time: 8 | priority: 1 | block: 6 |
//! waiting      | group: 4 | lane: 8 | block: 6 |
//! expiry       | time: 8 | block: 6 |
//! marks        | group: 4 | id / 64: 8 |
//! lease        | group: 4 | lease: 8 |
//! head         | group: 4 | lane: 8 |
//! time of seen | time: 8 | id: 8 |
//! ```
//!
//! A block contains 65,536 consecutive ids, and each set holds the ids of one block, so the first ids of a long list
//! are read without the rest. A lane is the checksum of an ordering key. If two keys have the same checksum, they share
//! a lane: their messages are then delivered in order as well, which is stricter than necessary but never wrong.

use tidalite_base::checksum;

/// Number of low bits in which ids of one set may differ.
pub(crate) const BLOCK_BITS: u32 = 16;
/// Length in bytes of the number of a block, with which the key of a set ends.
const BLOCK_BYTES: usize = 6;

/// Encodes a time as bytes that sort like times.
pub(crate) fn time_bytes(time: i64) -> [u8; 8] {
    (time.cast_unsigned() ^ (1 << 63)).to_be_bytes()
}

/// Splits the time off the beginning of `bytes`; returns it and the rest.
pub(crate) fn split_time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (time, rest) = bytes.split_first_chunk::<8>()?;
    let time = (u64::from_be_bytes(*time) ^ (1 << 63)).cast_signed();
    Some((time, rest))
}

/// The lane of an ordering key.
pub(crate) fn lane_of(ordering_key: &[u8]) -> u64 {
    checksum(ordering_key)
}

pub(crate) fn group_prefix(group: u32) -> [u8; 4] {
    group.to_be_bytes()
}

fn with_block(mut key: Vec<u8>, id: u64) -> Vec<u8> {
    key.extend_from_slice(&(id >> BLOCK_BITS).to_be_bytes()[8 - BLOCK_BYTES..]);
    key
}

/// Splits the key of a set into its prefix and the least id of its block.
pub(crate) fn split_block(key: &[u8]) -> Option<(&[u8], u64)> {
    let (prefix, block) = key.split_last_chunk::<BLOCK_BYTES>()?;
    let mut bytes = [0; 8];
    bytes[8 - BLOCK_BYTES..].copy_from_slice(block);
    Some((prefix, u64::from_be_bytes(bytes) << BLOCK_BITS))
}

/// Key of the sets of open ids, and of dead ids.
pub(crate) fn by_group(group: u32, id: u64) -> Vec<u8> {
    with_block(group.to_be_bytes().to_vec(), id)
}

pub(crate) fn ready(group: u32, priority: u8, id: u64) -> Vec<u8> {
    let mut key = group.to_be_bytes().to_vec();
    key.push(u8::MAX - priority);
    with_block(key, id)
}

pub(crate) fn due(group: u32, time: i64, priority: u8, id: u64) -> Vec<u8> {
    let mut key = Vec::with_capacity(19);
    key.extend_from_slice(&group.to_be_bytes());
    key.extend_from_slice(&time_bytes(time));
    key.push(priority);
    with_block(key, id)
}

pub(crate) fn waiting(group: u32, lane: u64, id: u64) -> Vec<u8> {
    with_block(pair(group, lane).to_vec(), id)
}

pub(crate) fn expiry(time: i64, id: u64) -> Vec<u8> {
    with_block(time_bytes(time).to_vec(), id)
}

/// Key of a lease, of the head of a lane, or of a block of marks; also the prefix of the waiting ids of a lane.
pub(crate) fn pair(group: u32, number: u64) -> [u8; 12] {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&group.to_be_bytes());
    key[4..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Splits a key that `pair` has created.
pub(crate) fn split_pair(key: &[u8]) -> Option<(u32, u64)> {
    let (group, number) = key.split_first_chunk::<4>()?;
    Some((
        u32::from_be_bytes(*group),
        u64::from_be_bytes(number.try_into().ok()?),
    ))
}

pub(crate) fn seen_time(time: i64, id: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&time_bytes(time));
    key[8..].copy_from_slice(&id.to_be_bytes());
    key
}
