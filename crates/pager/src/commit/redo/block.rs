//! Blocks of the redo log. One flush appends one or more blocks, each stored once or twice.
//!
//! ```text
//! 0        32         40         48      52       54     56
//! | header | sequence | checksum | first | blocks | used | payload 4040 B, 0 .. |
//! | 32 B   | u64      | u64      | u32   | u16    | u16  |                      |
//! ```
//!
//! The header's owner is the number of the block, counted from 0; its flags give the number of adjacent copies, 1 or
//! 2; its birth is the newest commit of the flush. `sequence` and `checksum` name the durable meta record on which
//! the redo log builds (`meta::checksum_of`); a block that names another meta record belongs to an older redo log in
//! the same place. `first` and `blocks`: the first block and the number of blocks of the flush. `used`: bytes of
//! payload. The joined payloads of a flush are the entries of its commits (`record.rs`).

use super::area::Area;
use crate::format::header::{HEADER_BYTES, Header, seal_block};
use crate::format::kind::Kind;
use crate::format::layout::BLOCK_BYTES;
use crate::format::superblock::verify_own;
use tidalite_base::{TxnId, get_u16, get_u32, get_u64, put_u16, put_u32, put_u64};

const SEQUENCE_AT: usize = HEADER_BYTES;
const CHECKSUM_AT: usize = SEQUENCE_AT + 8;
const FIRST_AT: usize = CHECKSUM_AT + 8;
const BLOCKS_AT: usize = FIRST_AT + 4;
const USED_AT: usize = BLOCKS_AT + 2;
const PAYLOAD_AT: usize = USED_AT + 2;
const PAYLOAD_BYTES: usize = BLOCK_BYTES - PAYLOAD_AT;
const _: () = assert!(PAYLOAD_AT == 56);
const _: () = assert!(PAYLOAD_BYTES <= u16::MAX as usize);

/// Sequence number and checksum of the durable meta record on which a redo log builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogBase {
    pub(crate) sequence: u64,
    pub(crate) checksum: u64,
}

/// Position of a flush in the redo log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the first block of the flush, not counting second copies.
    pub(crate) number: u32,
    /// Index of the first block of the flush in the log area, counting second copies.
    pub(crate) position: u64,
}

/// Number of blocks that a payload of this length in bytes takes if each block is stored once.
pub(super) fn blocks_for(payload: usize) -> u64 {
    payload.div_ceil(PAYLOAD_BYTES) as u64
}

/// Encodes the blocks of a flush for position `place`, each stored `copies` times. `newest` is the newest commit of
/// the flush.
pub(super) fn encode(
    payload: &[u8],
    (area, place, log_base): (&Area, Place, LogBase),
    (newest, copies): (TxnId, u8),
) -> Vec<u8> {
    let blocks = blocks_for(payload.len());
    assert!(matches!(copies, 1 | 2), "a block is stored once or twice");
    assert!(
        blocks > 0 && u16::try_from(blocks).is_ok(),
        "the number of blocks of a flush has 16 bits"
    );
    assert!(
        place.position + blocks * u64::from(copies) <= area.blocks(),
        "a flush ends outside the log"
    );
    let mut bytes = vec![0u8; blocks as usize * usize::from(copies) * BLOCK_BYTES];
    let mut places = bytes.chunks_exact_mut(BLOCK_BYTES);
    let mut address = area.at + place.position * BLOCK_BYTES as u64;
    for (number, part) in payload.chunks(PAYLOAD_BYTES).enumerate() {
        for block in places.by_ref().take(usize::from(copies)) {
            put_u64(block, SEQUENCE_AT, log_base.sequence);
            put_u64(block, CHECKSUM_AT, log_base.checksum);
            put_u32(block, FIRST_AT, place.number);
            put_u16(block, BLOCKS_AT, blocks as u16);
            put_u16(block, USED_AT, part.len() as u16);
            block[PAYLOAD_AT..PAYLOAD_AT + part.len()].copy_from_slice(part);
            let header = Header {
                kind: Kind::Redo,
                flags: copies,
                owner: u64::from(place.number) + number as u64,
                address,
                birth: newest,
            };
            let _ = seal_block(block, &header);
            address += BLOCK_BYTES as u64;
        }
    }
    assert!(places.next().is_none(), "every block of a flush is filled");
    bytes
}

/// An intact block that was read from the redo log.
struct Found<'a> {
    number: u64,
    copies: u8,
    first: u32,
    blocks: u16,
    newest: TxnId,
    payload: &'a [u8],
}

/// Returns the block at a position of the redo log, if it is intact and belongs to the meta record `log_base`.
fn block<'a>(log: &'a [u8], area: &Area, position: u64, log_base: LogBase) -> Option<Found<'a>> {
    block_if(log, area, position, |found| found == log_base)
}

/// Returns the block at a position of the redo log, if it is intact and `wanted` accepts the meta record to which it
/// belongs.
fn block_if<'a>(
    log: &'a [u8],
    area: &Area,
    position: u64,
    wanted: impl Fn(LogBase) -> bool,
) -> Option<Found<'a>> {
    let from = usize::try_from(position).ok()?.checked_mul(BLOCK_BYTES)?;
    let bytes = log.get(from..from.checked_add(BLOCK_BYTES)?)?;
    let log_base = LogBase {
        sequence: get_u64(bytes, SEQUENCE_AT),
        checksum: get_u64(bytes, CHECKSUM_AT),
    };
    if !wanted(log_base) {
        return None;
    }
    verify_own(bytes, Kind::Redo, area.at + from as u64).ok()?;
    let header = Header::decode(bytes);
    let payload = &bytes[PAYLOAD_AT..];
    Some(Found {
        number: header.owner,
        copies: header.flags,
        first: get_u32(bytes, FIRST_AT),
        blocks: get_u16(bytes, BLOCKS_AT),
        newest: header.birth,
        payload: payload.get(..usize::from(get_u16(bytes, USED_AT)))?,
    })
}

/// A flush whose blocks were all read from the redo log.
pub(super) struct Flush {
    pub(super) payload: Vec<u8>,
    pub(super) next: Place,
}

/// Reads the flush at `place`; `log` has the bytes of the area of the redo log. Returns `None` if all copies of one
/// of its blocks are missing.
pub(super) fn flush(log: &[u8], area: &Area, place: Place, log_base: LogBase) -> Option<Flush> {
    // A flush without blocks is not accepted, since reading would never get past it.
    let wanted = |found: &Found<'_>| {
        found.first == place.number && (1..=2).contains(&found.copies) && found.blocks > 0
    };
    let own = |position, number: u64| {
        block(log, area, position, log_base).filter(|found| found.number == number && wanted(found))
    };
    let number = u64::from(place.number);
    let first = own(place.position, number).or_else(|| own(place.position + 1, number))?;
    let copies = u64::from(first.copies);
    let mut payload = Vec::new();
    for index in 0..u64::from(first.blocks) {
        let from = place.position + index * copies;
        let mut both = (from..from + copies).filter_map(|position| own(position, number + index));
        payload.extend_from_slice(both.next()?.payload);
    }
    Some(Flush {
        payload,
        next: Place {
            number: place.number.checked_add(u32::from(first.blocks))?,
            position: place.position + u64::from(first.blocks) * copies,
        },
    })
}

/// Returns the newest commit that a block of the redo log contains.
pub(super) fn newest(log: &[u8], area: &Area, log_base: LogBase) -> Option<TxnId> {
    let positions = 0..(log.len() / BLOCK_BYTES) as u64;
    let blocks = positions.filter_map(|position| block(log, area, position, log_base));
    blocks.map(|found| found.newest).max()
}

/// Returns the newest commit in blocks that belong to a later meta record than `log_base`. Such a meta record
/// existed, since a redo log begins only when its meta record is durable.
pub(super) fn newest_of_later(log: &[u8], area: &Area, log_base: LogBase) -> Option<TxnId> {
    let positions = 0..(log.len() / BLOCK_BYTES) as u64;
    let is_later = |found: LogBase| found.sequence > log_base.sequence;
    let blocks = positions.filter_map(|position| block_if(log, area, position, is_later));
    blocks.map(|found| found.newest).max()
}

/// Returns the newest commit of the flushes after the flush at `place`, which is missing. The missing flush was
/// durable, since a flush begins only after the sync of the previous flush has succeeded.
pub(super) fn newest_behind(
    log: &[u8],
    area: &Area,
    place: Place,
    log_base: LogBase,
) -> Option<TxnId> {
    let positions = place.position..(log.len() / BLOCK_BYTES) as u64;
    let blocks = positions.filter_map(|position| block(log, area, position, log_base));
    let later = blocks.filter(|found| found.first > place.number);
    later.map(|found| found.newest).max()
}

#[cfg(test)]
mod tests {
    use crate::commit::redo::block::{Area, BLOCK_BYTES, BLOCKS_AT, LogBase, Place, encode, flush};
    use crate::format::header::{Header, seal_block};
    use tidalite_base::{TxnId, put_u16};

    const AREA: Area = Area {
        at: 1 << 20,
        bytes: 8 * BLOCK_BYTES as u64,
    };
    const LOG_BASE: LogBase = LogBase {
        sequence: 5,
        checksum: 7,
    };

    #[test]
    fn a_flush_leads_behind_itself_or_is_none() {
        let payload = vec![3; 5000];
        let sound = encode(&payload, (&AREA, Place::default(), LOG_BASE), (TxnId(9), 1));
        for blocks in 0..=4 {
            let mut log = sound.clone();
            for block in log.chunks_exact_mut(BLOCK_BYTES) {
                put_u16(block, BLOCKS_AT, blocks);
                let header = Header::decode(block);
                let _ = seal_block(block, &header);
            }
            let found = flush(&log, &AREA, Place::default(), LOG_BASE);
            let position = found.as_ref().map(|found| found.next.position);
            // With fewer blocks the flush is truncated, which decoding its entries detects; with more, some blocks
            // are missing.
            let expected = Some(u64::from(blocks)).filter(|blocks| (1..=2).contains(blocks));
            assert_eq!(position, expected, "{blocks} blocks");
            if blocks == 2 {
                assert!(found.is_some_and(|found| found.payload == payload));
            }
        }
    }
}
