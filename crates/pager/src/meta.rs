//! The meta record: one durable commit. Written to both 4 KiB blocks of a pair.
//!
//! ```text
//! 0        32     48         56       64      72          104     106       108        110  112        2160                          4096
//! | header | uuid | sequence | commit | pages | free root | app   | changes | pendings | cf | app area | changes, 16 B each, then      |
//! | 32 B   | 16 B | u64      | ns i64 | u64   | Ptr 32 B  | len u16| u16    | u16      |    | 2048 B   | pending ranges, 32 B each, 0..|
//! ```
//!
//! The header's birth is the transaction. `sequence` counts durable commits; record s goes to pair
//! s mod 2. `pages` is the file's length in pages. A change is `(page u64, count << 1 | used)`: the state
//! of a range where it differs from the free-space structure under `free root`; they do not overlap.
//! A pending range is `(page, count, birth, freed)`: used for whoever stands on a transaction t with
//! birth <= t < freed, free for everyone else. `cf` u16 is 0 in a record as committed, see `Confirmation`.

use crate::error::{Error, Result};
use crate::header::{HEADER_BYTES, Header, Kind, seal_block};
use crate::layout::{BLOCK_BYTES, meta_at};
use crate::ptr::{PTR_BYTES, Ptr};
use crate::storage::Storage;
use crate::superblock::{read_block, verify_own};
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId, get_i64, get_u16, get_u64, put_i64, put_u16, put_u64};

/// Bytes of the app area: what the layers above keep in every meta record.
pub const APP_BYTES_MAX: usize = 2048;

const UUID_AT: usize = HEADER_BYTES;
const SEQUENCE_AT: usize = UUID_AT + 16;
const TIME_AT: usize = SEQUENCE_AT + 8;
const PAGES_AT: usize = TIME_AT + 8;
const FREE_ROOT_AT: usize = PAGES_AT + 8;
const APP_LEN_AT: usize = FREE_ROOT_AT + PTR_BYTES;
const CHANGES_AT: usize = APP_LEN_AT + 2;
const PENDINGS_AT: usize = CHANGES_AT + 2;
const APP_AT: usize = 112;
const LIST_AT: usize = APP_AT + APP_BYTES_MAX;
const CONFIRMATIONS_AT: usize = PENDINGS_AT + 2;
const _: () = assert!(CONFIRMATIONS_AT + 2 <= APP_AT);

/// Transactions and durable commits of a file stay below: at a million a second for 100,000 years.
const COUNT_MAX: u64 = 1 << 62;

const CHANGE_BYTES: usize = 16;
pub(crate) const PENDING_BYTES: usize = 32;
/// Bytes for changes and pending ranges.
const LIST_BYTES: usize = BLOCK_BYTES - LIST_AT;

/// A range whose state differs from the free-space structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) page: u64,
    pub(crate) pages: u64,
    pub(crate) used: bool,
}

/// A range that is dead but may still be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dead {
    pub(crate) page: u64,
    pub(crate) pages: u64,
    pub(crate) birth: u64,
    pub(crate) freed: u64,
}

impl Dead {
    pub(crate) fn encode(&self, bytes: &mut [u8], at: usize) {
        put_u64(bytes, at, self.page);
        put_u64(bytes, at + 8, self.pages);
        put_u64(bytes, at + 16, self.birth);
        put_u64(bytes, at + 24, self.freed);
    }

    pub(crate) fn decode(bytes: &[u8], at: usize) -> Self {
        Self {
            page: get_u64(bytes, at),
            pages: get_u64(bytes, at + 8),
            birth: get_u64(bytes, at + 16),
            freed: get_u64(bytes, at + 24),
        }
    }
}

/// True when this many changes and pending ranges fit a meta record.
pub(crate) fn fits(changes: usize, pendings: usize) -> bool {
    changes * CHANGE_BYTES + pendings * PENDING_BYTES <= LIST_BYTES
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) uuid: [u8; 16],
    pub(crate) txn: u64,
    pub(crate) sequence: u64,
    pub(crate) time_ns: i64,
    pub(crate) pages: u64,
    pub(crate) free_root: Ptr,
    pub(crate) app: Arc<[u8]>,
    pub(crate) changes: Vec<Change>,
    pub(crate) pendings: Vec<Dead>,
    /// How often this copy was rewritten by writers that came to stand on it, modulo 2^16.
    pub(crate) confirmations: u16,
}

/// How a writer rewrites the record it stands on, so that whatever processes were killed or syncs failed before,
/// at every moment one copy of an acknowledged record is on the medium.
///
/// Round c writes copy `c & 1` first, with the number c, and the other one after a sync. So of two copies with
/// different numbers the higher one may be in flight and is written again first; of two with the same number c
/// the second of round c, copy `1 - (c & 1)`, may be, and is the first of round c + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confirmation {
    /// The number both copies get.
    pub(crate) number: u16,
    /// The copy that is written first.
    pub(crate) first: usize,
}

impl Confirmation {
    /// After copies with these numbers were found.
    pub(crate) fn after([a, b]: [u16; 2]) -> Self {
        if a == b {
            let number = a.wrapping_add(1);
            return Self {
                number,
                first: usize::from(number & 1),
            };
        }
        let a_is_newer = a.wrapping_sub(b) < 1 << 15;
        let (number, first) = if a_is_newer { (a, 0) } else { (b, 1) };
        Self { number, first }
    }

    /// The number for a damaged copy that is rewritten beside a sound one: the next one whose round begins with it.
    pub(crate) fn of_healed(copy: usize, sound: u16) -> u16 {
        let next = sound.wrapping_add(1);
        if usize::from(next & 1) == copy {
            next
        } else {
            next.wrapping_add(1)
        }
    }
}

impl Meta {
    /// Whether both are copies of one record, however often rewritten.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        *self
            == Self {
                confirmations: self.confirmations,
                ..other.clone()
            }
    }

    /// The pair that a record of this sequence number goes to.
    pub(crate) fn pair(&self) -> usize {
        (self.sequence % 2) as usize
    }

    /// The block as it stands at `address`.
    pub(crate) fn encode(&self, address: u64) -> Vec<u8> {
        debug_assert!(fits(self.changes.len(), self.pendings.len()));
        let mut block = vec![0u8; BLOCK_BYTES];
        block[UUID_AT..SEQUENCE_AT].copy_from_slice(&self.uuid);
        put_u64(&mut block, SEQUENCE_AT, self.sequence);
        put_i64(&mut block, TIME_AT, self.time_ns);
        put_u64(&mut block, PAGES_AT, self.pages);
        self.free_root.encode(&mut block, FREE_ROOT_AT);
        put_u16(&mut block, APP_LEN_AT, self.app.len() as u16);
        put_u16(&mut block, CHANGES_AT, self.changes.len() as u16);
        put_u16(&mut block, PENDINGS_AT, self.pendings.len() as u16);
        put_u16(&mut block, CONFIRMATIONS_AT, self.confirmations);
        block[APP_AT..APP_AT + self.app.len()].copy_from_slice(&self.app);
        let mut at = LIST_AT;
        for change in &self.changes {
            put_u64(&mut block, at, change.page);
            put_u64(
                &mut block,
                at + 8,
                change.pages << 1 | u64::from(change.used),
            );
            at += CHANGE_BYTES;
        }
        for dead in &self.pendings {
            dead.encode(&mut block, at);
            at += PENDING_BYTES;
        }
        let header = Header {
            kind: Kind::Meta,
            flags: 0,
            owner: 0,
            address,
            birth: TxnId(self.txn),
        };
        let _ = seal_block(&mut block, &header);
        block
    }

    pub(crate) fn decode(block: &[u8], address: u64, uuid: &[u8; 16]) -> Result<Self> {
        verify_own(block, Kind::Meta, address)?;
        let damaged = |what: &str, found: String, expected: String| {
            Error::from(Corrupt::new(
                format!("meta block: {what}"),
                address,
                found,
                expected,
            ))
        };
        if &block[UUID_AT..SEQUENCE_AT] != uuid {
            let found = format!("{:02x?}", &block[UUID_AT..SEQUENCE_AT]);
            return Err(damaged("file id", found, format!("{uuid:02x?}")));
        }
        let (txn, sequence) = (Header::decode(block).birth.0, get_u64(block, SEQUENCE_AT));
        if txn == 0 || txn.max(sequence) >= COUNT_MAX {
            let found = format!("transaction {txn}, sequence number {sequence}");
            return Err(damaged(
                "counters",
                found,
                format!("from 1 below {COUNT_MAX}"),
            ));
        }
        let app_len = usize::from(get_u16(block, APP_LEN_AT));
        let changes = usize::from(get_u16(block, CHANGES_AT));
        let pendings = usize::from(get_u16(block, PENDINGS_AT));
        if app_len > APP_BYTES_MAX || !fits(changes, pendings) {
            return Err(damaged(
                "lengths",
                format!("{app_len}, {changes}, {pendings}"),
                "lengths that fit the block".into(),
            ));
        }
        let change = |i: usize| {
            let at = LIST_AT + i * CHANGE_BYTES;
            let word = get_u64(block, at + 8);
            Change {
                page: get_u64(block, at),
                pages: word >> 1,
                used: word & 1 == 1,
            }
        };
        let dead_at = LIST_AT + changes * CHANGE_BYTES;
        let dead = |i: usize| Dead::decode(block, dead_at + i * PENDING_BYTES);
        Ok(Self {
            uuid: *uuid,
            txn,
            sequence,
            time_ns: get_i64(block, TIME_AT),
            pages: get_u64(block, PAGES_AT),
            free_root: Ptr::decode(block, FREE_ROOT_AT),
            app: block[APP_AT..APP_AT + app_len].into(),
            changes: (0..changes).map(change).collect(),
            pendings: (0..pendings).map(dead).collect(),
            confirmations: get_u16(block, CONFIRMATIONS_AT),
        })
    }
}

/// What the four meta blocks hold.
#[derive(Debug)]
pub(crate) struct MetaBlocks {
    /// By pair and copy.
    pub(crate) copies: [[Result<Meta>; 2]; 2],
}

impl MetaBlocks {
    pub(crate) fn load(storage: &dyn Storage, uuid: &[u8; 16]) -> Self {
        let copies = [0, 1].map(|pair| {
            [0, 1].map(|copy| {
                let at = meta_at(pair, copy);
                read_block(storage, at).and_then(|block| Meta::decode(&block, at, uuid))
            })
        });
        Self { copies }
    }

    /// The numbers of confirmation of the two copies of a record; of a copy that is damaged, that of the other.
    pub(crate) fn confirmations(&self, record: &Meta) -> [u16; 2] {
        self.copies[record.pair()]
            .each_ref()
            .map(|copy| match copy {
                Ok(meta) if meta.is_copy_of(record) => meta.confirmations,
                _ => record.confirmations,
            })
    }

    /// The newest record with one valid copy, and the newest of the other pair.
    pub(crate) fn newest(&self) -> Result<(Meta, Option<Meta>)> {
        let best = |pair: usize| {
            let valid = self.copies[pair].iter().flatten();
            valid.max_by_key(|meta| (meta.txn, meta.sequence)).cloned()
        };
        match (best(0), best(1)) {
            (Some(a), Some(b)) if (a.txn, a.sequence) >= (b.txn, b.sequence) => Ok((a, Some(b))),
            (a, Some(b)) => Ok((b, a)),
            (Some(a), None) => Ok((a, None)),
            (None, None) => match &self.copies[0][0] {
                Err(error) => Err(error.again()),
                Ok(_) => unreachable!("a valid copy would have been found"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Confirmation;

    /// Whatever happens to the process, the copy that is written next is the only one that may be in flight.
    #[test]
    fn the_copy_in_flight_is_always_written_first() {
        for start in [0u16, 1, 2, 0x7ffe, 0x7fff, 0xfffe, 0xffff] {
            for copy in [0, 1] {
                // A damaged copy was rewritten beside a sound one, and may be in flight.
                let mut found = [start; 2];
                found[copy] = Confirmation::of_healed(copy, start);
                assert_eq!(Confirmation::after(found).first, copy);
            }
            let round = Confirmation::after([start, start]);
            let mut found = [start; 2];
            found[round.first] = round.number;
            let again = Confirmation::after(found);
            assert_eq!(again, round, "interrupted after its first write");
            let next = Confirmation::after([round.number; 2]);
            assert_eq!(
                next.first,
                1 - round.first,
                "interrupted after its second write"
            );
        }
    }
}
