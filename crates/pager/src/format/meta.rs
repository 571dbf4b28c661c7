//! The meta record of one durable commit, which is written to both 4 KiB blocks of a pair.
//!
//! ```text
//! 0        32     48         56       64      72          104   106       108        110       112   116    118
//! | header | uuid | sequence | commit | pages | free root | app | changes | pendings | confir-  | 0   | user | 0 |
//! | 32 B   | 16 B | u64      | ns i64 | u64   | Ptr 32 B  | len | u16     | u16      | mations  |     | len  |   |
//! 120              152    184     216              248    256         384        2048                           4096
//! | freed directory| pins | clock | durable record | next | user data | app area | changes 16 B,                 |
//! | Ptr 32 B       | Ptr  | Ptr   | u64, u64, 16 B | u64  | 128 B     | 1536 B,0 | pending ranges 32 B, 0..      |
//! ```
//!
//! The header's birth is the transaction. `sequence` counts durable commits; the meta record with sequence number s
//! goes to pair s mod 2 of the meta blocks. `pages` is the length of the file in pages. A change is `(page u64, count
//! << 1 | used)`: the use of a page range where it differs from the free-space structure under `free root`; changes do
//! not overlap. A pending range is `(page, count, birth, freed)`: in use for a snapshot of transaction t with birth <=
//! t < freed, and free otherwise. `confirmations` u16 is 0 in a meta record as committed, see `Confirmation`. The
//! durable record (sequence number, checksum, boot id; checksum of the next meta record) is the base of an unsynced
//! meta record in the lock file; zero in the data file. The pointer to the free space of the second file (32 B) is at
//! 1920, after the app area; then, at 1952, `(page, pages, birth)` of the redo log, or zeros; zeros follow to 2048.

use super::header::{HEADER_BYTES, Header, seal_block};
use super::kind::Kind;
use super::layout::BLOCK_BYTES;
use super::layout::meta_at;
use super::ptr::{PTR_BYTES, Ptr};
use super::superblock::verify_own;
use crate::error::{Error, Result};
use std::sync::Arc;
use tidalite_base::{Corrupt, TxnId, get_i64, get_u16, get_u64, put_i64, put_u16, put_u64};
use tidalite_disk::system::uuid_text;

/// Length in bytes of the app area, in which the layers above the pager store their data in every meta record.
pub const APP_BYTES_MAX: usize = 1536;
/// Maximum length in bytes of the user data in every meta record.
pub const USER_BYTES_MAX: usize = 128;

const UUID_AT: usize = HEADER_BYTES;
const SEQUENCE_AT: usize = UUID_AT + 16;
const TIME_AT: usize = SEQUENCE_AT + 8;
const PAGES_AT: usize = TIME_AT + 8;
const FREE_ROOT_AT: usize = PAGES_AT + 8;
const APP_LEN_AT: usize = FREE_ROOT_AT + PTR_BYTES;
const CHANGES_AT: usize = APP_LEN_AT + 2;
const PENDINGS_AT: usize = CHANGES_AT + 2;
const CONFIRMATIONS_AT: usize = PENDINGS_AT + 2;
const USER_LEN_AT: usize = CONFIRMATIONS_AT + 6;
const FREED_DIRECTORY_AT: usize = USER_LEN_AT + 4;
const PINS_AT: usize = FREED_DIRECTORY_AT + PTR_BYTES;
const CLOCK_AT: usize = PINS_AT + PTR_BYTES;
const DURABLE_SEQUENCE_AT: usize = CLOCK_AT + PTR_BYTES;
const DURABLE_CHECKSUM_AT: usize = DURABLE_SEQUENCE_AT + 8;
const BOOT_ID_AT: usize = DURABLE_CHECKSUM_AT + 8;
const NEXT_CHECKSUM_AT: usize = BOOT_ID_AT + 16;
const USER_AT: usize = NEXT_CHECKSUM_AT + 8;
const APP_AT: usize = USER_AT + USER_BYTES_MAX;
const LARGE_PTR_AT: usize = APP_AT + APP_BYTES_MAX;
const REDO_AT: usize = LARGE_PTR_AT + PTR_BYTES;
const LIST_AT: usize = 2048;
const _: () = assert!(USER_AT == 256 && LARGE_PTR_AT == 1920 && REDO_AT + 24 <= LIST_AT);

/// Upper bound of the numbers of transactions and durable commits of a file. A million commits a second would reach it
/// after 100,000 years.
pub(crate) const COUNT_MAX: u64 = 1 << 62;

const CHANGE_BYTES: usize = 16;
pub(crate) const PENDING_BYTES: usize = 32;
/// Number of bytes of a meta record for the lists of changes and pending ranges together.
const LIST_BYTES: usize = BLOCK_BYTES - LIST_AT;

/// A page range that was allocated or freed since the free-space structure was last written to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) page: u64,
    pub(crate) pages: u64,
    pub(crate) used: bool,
}

/// A page range that was freed but may still be read by a snapshot (a pending range).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreedRange {
    pub(crate) page: u64,
    pub(crate) pages: u64,
    pub(crate) birth: u64,
    pub(crate) freed: u64,
}

impl FreedRange {
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

/// The durable meta record on which an unsynced meta record builds. All fields are 0 in the data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LazyBase {
    pub(crate) sequence: u64,
    pub(crate) checksum: u64,
    /// Checksum of the next durable meta record, if the next one was being written at the same time as this meta
    /// record; otherwise 0.
    pub(crate) next_checksum: u64,
    pub(crate) boot_id: [u8; 16],
}

/// Whether this many changes and pending ranges fit into a meta record.
pub(crate) fn fit(changes: usize, pendings: usize) -> bool {
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
    /// Pointer to the directory of the stacks, whose list pages have the pending ranges that are not in this meta
    /// record.
    pub(crate) freed_directory: Ptr,
    /// Pointer to the table of pins.
    pub(crate) pins: Ptr,
    /// Pointer to the list of the commit times of transactions.
    pub(crate) clock: Ptr,
    /// Pointer to the free space of the second file; null if there is no second file.
    pub(crate) large: Ptr,
    /// Pages reserved for the redo log that builds on this meta record.
    pub(crate) redo: Option<Redo>,
    pub(crate) lazy_base: LazyBase,
    pub(crate) user: Arc<[u8]>,
    pub(crate) app: Arc<[u8]>,
    pub(crate) changes: Vec<Change>,
    pub(crate) pendings: Vec<FreedRange>,
    /// Number of times, modulo 2^16, that this copy was rewritten by writers that took over the meta record from
    /// another writer.
    pub(crate) confirmations: u16,
}

/// Transaction number of the meta record of a new file.
pub(crate) const FIRST_TXN: u64 = 1;

impl Meta {
    /// Returns the meta record of a new, empty file.
    pub(crate) fn first(uuid: [u8; 16], pages: u64, time_ns: i64) -> Self {
        Self {
            uuid,
            txn: FIRST_TXN,
            sequence: 0,
            time_ns,
            pages,
            free_root: Ptr::NULL,
            freed_directory: Ptr::NULL,
            pins: Ptr::NULL,
            clock: Ptr::NULL,
            large: Ptr::NULL,
            redo: None,
            lazy_base: LazyBase::default(),
            user: Arc::from([]),
            app: Arc::from([]),
            changes: Vec::new(),
            pendings: Vec::new(),
            confirmations: 0,
        }
    }

    /// Whether `self` and `other` are copies of one meta record, even if their numbers of confirmations differ.
    pub(crate) fn is_copy_of(&self, other: &Self) -> bool {
        *self
            == Self {
                confirmations: self.confirmations,
                ..other.clone()
            }
    }

    /// Returns the pair of meta blocks (0 or 1) to which a meta record with this sequence number is written.
    pub(crate) fn pair(&self) -> usize {
        (self.sequence % 2) as usize
    }

    /// Encodes the meta record as a block for the byte offset `address`.
    pub(crate) fn encode(&self, address: u64) -> Vec<u8> {
        let mut block = vec![0u8; BLOCK_BYTES];
        self.encode_with_base(&mut block, address, self.sequence, &self.lazy_base);
        block
    }

    /// Like `encode`, but with the given sequence number and base meta record, and into `block`, which must be zeros.
    pub(crate) fn encode_with_base(
        &self,
        block: &mut [u8],
        address: u64,
        sequence: u64,
        lazy_base: &LazyBase,
    ) {
        assert_eq!(block.len(), BLOCK_BYTES, "a meta record is one block");
        assert!(
            fit(self.changes.len(), self.pendings.len()),
            "the lists of a meta record do not fit into its block"
        );
        assert!(self.app.len() <= APP_BYTES_MAX, "the app area is too long");
        assert!(
            self.user.len() <= USER_BYTES_MAX,
            "the user data is too long"
        );
        assert!(self.txn > 0, "commits are counted from 1");
        block[UUID_AT..SEQUENCE_AT].copy_from_slice(&self.uuid);
        put_u64(block, SEQUENCE_AT, sequence);
        put_i64(block, TIME_AT, self.time_ns);
        put_u64(block, PAGES_AT, self.pages);
        self.free_root.encode(block, FREE_ROOT_AT);
        put_u16(block, APP_LEN_AT, self.app.len() as u16);
        put_u16(block, CHANGES_AT, self.changes.len() as u16);
        put_u16(block, PENDINGS_AT, self.pendings.len() as u16);
        put_u16(block, CONFIRMATIONS_AT, self.confirmations);
        put_u16(block, USER_LEN_AT, self.user.len() as u16);
        self.freed_directory.encode(block, FREED_DIRECTORY_AT);
        self.pins.encode(block, PINS_AT);
        self.clock.encode(block, CLOCK_AT);
        self.large.encode(block, LARGE_PTR_AT);
        if let Some(redo) = self.redo {
            put_u64(block, REDO_AT, redo.page);
            put_u64(block, REDO_AT + 8, redo.pages);
            put_u64(block, REDO_AT + 16, redo.birth);
        }
        put_u64(block, DURABLE_SEQUENCE_AT, lazy_base.sequence);
        put_u64(block, DURABLE_CHECKSUM_AT, lazy_base.checksum);
        block[BOOT_ID_AT..BOOT_ID_AT + 16].copy_from_slice(&lazy_base.boot_id);
        put_u64(block, NEXT_CHECKSUM_AT, lazy_base.next_checksum);
        block[USER_AT..USER_AT + self.user.len()].copy_from_slice(&self.user);
        block[APP_AT..APP_AT + self.app.len()].copy_from_slice(&self.app);
        let mut at = LIST_AT;
        for change in &self.changes {
            put_u64(block, at, change.page);
            put_u64(block, at + 8, change.pages << 1 | u64::from(change.used));
            at += CHANGE_BYTES;
        }
        for freed_ranges in &self.pendings {
            freed_ranges.encode(block, at);
            at += PENDING_BYTES;
        }
        let header = Header {
            kind: Kind::Meta,
            flags: 0,
            owner: 0,
            address,
            birth: TxnId(self.txn),
        };
        let _ = seal_block(block, &header);
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
            let found = uuid_text(&block[UUID_AT..SEQUENCE_AT]);
            return Err(damaged("file id", found, uuid_text(uuid)));
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
        let user_len = usize::from(get_u16(block, USER_LEN_AT));
        if app_len > APP_BYTES_MAX || user_len > USER_BYTES_MAX || !fit(changes, pendings) {
            return Err(damaged(
                "lengths",
                format!("{app_len}, {changes}, {pendings}, {user_len}"),
                "lengths that fit the block".into(),
            ));
        }
        let [page, pages, birth] = [0, 8, 16].map(|field| get_u64(block, REDO_AT + field));
        let length = get_u64(block, PAGES_AT);
        let inside = page.checked_add(pages).is_some_and(|end| end <= length);
        if page != 0 && (pages == 0 || !inside || birth > txn) {
            let found = format!("{pages} pages at page {page} of {birth}");
            let expected = format!("pages below {length}, not younger than {txn}");
            return Err(damaged("place of the log", found, expected));
        }
        let redo = (page != 0).then_some(Redo { page, pages, birth });
        let change = |i: usize| {
            let at = LIST_AT + i * CHANGE_BYTES;
            let word = get_u64(block, at + 8);
            Change {
                page: get_u64(block, at),
                pages: word >> 1,
                used: word & 1 == 1,
            }
        };
        let freed_range_at = LIST_AT + changes * CHANGE_BYTES;
        let freed_ranges = |i: usize| FreedRange::decode(block, freed_range_at + i * PENDING_BYTES);
        let mut boot_id = [0u8; 16];
        boot_id.copy_from_slice(&block[BOOT_ID_AT..BOOT_ID_AT + 16]);
        Ok(Self {
            uuid: *uuid,
            txn,
            sequence,
            time_ns: get_i64(block, TIME_AT),
            pages: get_u64(block, PAGES_AT),
            free_root: Ptr::decode(block, FREE_ROOT_AT),
            freed_directory: Ptr::decode(block, FREED_DIRECTORY_AT),
            pins: Ptr::decode(block, PINS_AT),
            clock: Ptr::decode(block, CLOCK_AT),
            large: Ptr::decode(block, LARGE_PTR_AT),
            redo,
            lazy_base: LazyBase {
                sequence: get_u64(block, DURABLE_SEQUENCE_AT),
                checksum: get_u64(block, DURABLE_CHECKSUM_AT),
                next_checksum: get_u64(block, NEXT_CHECKSUM_AT),
                boot_id,
            },
            user: block[USER_AT..USER_AT + user_len].into(),
            app: block[APP_AT..APP_AT + app_len].into(),
            changes: (0..changes).map(change).collect(),
            pendings: (0..pendings).map(freed_ranges).collect(),
            confirmations: get_u16(block, CONFIRMATIONS_AT),
        })
    }
}

/// Range of pages reserved for the redo log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redo {
    pub(crate) page: u64,
    pub(crate) pages: u64,
    pub(crate) birth: u64,
}

/// Computes the checksum by which an unsynced meta record identifies the durable meta record on which it builds: the
/// checksum of the first copy of `record`, as it was committed.
pub(crate) fn checksum_of(record: &Meta) -> u64 {
    let committed = Meta {
        confirmations: 0,
        ..record.clone()
    };
    get_u64(&committed.encode(meta_at(record.pair(), 0)), 0)
}

#[cfg(test)]
mod tests {
    use crate::format::header::{Header, seal_block};
    use crate::format::kind::Kind;
    use crate::format::layout::BLOCK_BYTES;
    use crate::format::meta::Redo;
    use crate::format::meta::{APP_BYTES_MAX, Change, FreedRange, LazyBase, Meta, USER_BYTES_MAX};
    use crate::format::ptr::Ptr;
    use tidalite_base::{TxnId, get_u16, get_u64, put_u16};

    fn ptr(addr: u64) -> Ptr {
        Ptr {
            addr,
            len: 4096,
            kind: Kind::KvLeaf,
            checksum: addr * 3,
            birth: TxnId(5),
        }
    }

    fn full() -> Meta {
        let change = |i: u64| Change {
            page: 7 * i,
            pages: 3,
            used: i.is_multiple_of(2),
        };
        let freed_ranges = |i: u64| FreedRange {
            page: 9 * i,
            pages: 2,
            birth: i,
            freed: i + 4,
        };
        Meta {
            uuid: [7; 16],
            txn: 99,
            sequence: 44,
            time_ns: -5,
            pages: 1 << 40,
            free_root: ptr(1 << 20),
            freed_directory: ptr(2 << 20),
            pins: ptr(3 << 20),
            clock: ptr(4 << 20),
            large: ptr(5 << 20),
            redo: Some(Redo {
                page: 1 << 39,
                pages: 77,
                birth: 98,
            }),
            lazy_base: LazyBase {
                sequence: 43,
                checksum: 0xabcd,
                next_checksum: 0xef,
                boot_id: [9; 16],
            },
            user: vec![0x55; USER_BYTES_MAX].into(),
            app: vec![0xaa; APP_BYTES_MAX].into(),
            changes: (0..64).map(change).collect(),
            pendings: (0..32).map(freed_ranges).collect(),
            confirmations: 3,
        }
    }

    /// Even if all fields have their maximum length, no field may overlap another.
    #[test]
    fn a_full_record_comes_back() {
        let meta = full();
        let block = meta.encode(4096);
        assert_eq!(block.len(), BLOCK_BYTES);
        assert_eq!(Meta::decode(&block, 4096, &meta.uuid).unwrap(), meta);
        // The offsets of the fields must be as in docs/format.md.
        assert_eq!(get_u64(&block, 120), 2 << 20);
        assert_eq!(get_u64(&block, 152), 3 << 20);
        assert_eq!(get_u64(&block, 184), 4 << 20);
        assert_eq!((get_u64(&block, 216), get_u64(&block, 224)), (43, 0xabcd));
        assert_eq!(get_u16(&block, 116), 128);
        assert!(block[256..384].iter().all(|&byte| byte == 0x55));
        assert!(block[384..1920].iter().all(|&byte| byte == 0xaa));
        assert_eq!(get_u64(&block, 1920), 5 << 20);
        assert_eq!(
            [1952, 1960, 1968].map(|at| get_u64(&block, at)),
            [1 << 39, 77, 98]
        );
        assert_eq!((block[1952], get_u64(&block, 2064)), (0, 7));
    }

    #[test]
    fn lengths_and_flags_that_cannot_be_are_refused() {
        for (at, value) in [
            (104, 1537),
            (106, 65),
            (108, 33),
            (116, 129),
            (1958, 0x8000),
            (1966, 0x8000),
            (1974, 0x8000),
        ] {
            let mut block = full().encode(4096);
            put_u16(&mut block, at, value);
            let header = Header::decode(&block);
            let _ = seal_block(&mut block, &header);
            let found = Meta::decode(&block, 4096, &[7; 16]);
            assert!(found.is_err(), "{value} at {at}: {found:?}");
        }
    }
}
