//! Named pins, which are versions of the database that stay readable until they are unpinned; and the clock, a list
//! of commit times.
//!
//! ```text
//! pins       a block (kind 17) alone in an extent, under the `pins` pointer of the meta record; then zeros
//! 0        32      36  40
//! | header | count | 0 | entries: | pointer 32 | txn u64 | time i64 | name bytes u16 | name UTF-8 |
//! |        | u32   |   |
//!
//! record     a pinned version: the meta record as that commit wrote it (kind 2), alone in an extent; its `pins` and
//!            `clock` pointers name the blocks of that commit, but have 0 as the checksum
//!
//! clock      a block (kind 18) alone in an extent, under the `clock` pointer of the meta record; then zeros
//! 0        32      36  40
//! | header | count | 0 | entries, ascending: | txn u64 | time i64 |
//! ```
//!
//! Invariants
//! 1. A pin retains its version like a reader: pages that the version uses are not reused (`Pins::live`).
//! 2. A removed pin still retains its version while a durable meta record that names the pin has not been
//!    overwritten.
//! 3. The clock's entries ascend in both columns; old entries are thinned out, so its length is bounded.

use super::header::{HEADER_BYTES, Header, seal_block};
use super::kind::Kind;
use super::layout::BLOCK_BYTES;
use super::meta::Meta;
use super::pages::{Extent, PageRef};
use super::ptr::{PTR_BYTES, Ptr};
use crate::error::{Error, Result};
use tidalite_base::{
    Corrupt, TxnId, get_i64, get_u16, get_u32, get_u64, put_i64, put_u16, put_u32, put_u64,
};

/// Maximum number of pins in a file.
pub const PINS_MAX: usize = 128;
/// Maximum length of a pin's name in bytes.
pub const PIN_NAME_BYTES_MAX: usize = 255;
/// Maximum number of entries of the clock, the list of commit times.
const CLOCK_MAX: usize = 512;

const COUNT_AT: usize = HEADER_BYTES;
const ENTRIES_AT: usize = COUNT_AT + 8;
const CLOCK_ENTRY_BYTES: usize = 16;

/// A pin: a named version of the database that stays readable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pin {
    /// The name of the pin.
    pub name: String,
    /// Transaction number of the pinned commit.
    pub txn: TxnId,
    /// Time of the pinned commit, in nanoseconds since 1970 by the wall clock.
    pub time_ns: i64,
    pub(crate) record: Ptr,
}

/// A pointer to a block that has an extent of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SoleBlock(pub(crate) Ptr);

impl SoleBlock {
    pub(crate) fn extent(&self, page_size: usize) -> Extent {
        // The extent of the clock (the list of commit times) always has room for the maximum number of entries.
        let bytes = match self.0.kind {
            Kind::Clock => CLOCK_BYTES_MAX as u64,
            _ => u64::from(self.0.len),
        };
        Extent {
            addr: self.0.addr,
            pages: bytes.div_ceil(page_size as u64),
            birth: self.0.birth,
        }
    }
}

/// Pins and commit times of the newest meta record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    pub(crate) list: Vec<Pin>,
    /// Removed pins that still retain their version: the pinned transaction, and the transaction that removed the
    /// pin.
    pub(crate) gone: Vec<(u64, u64)>,
    pub(crate) clock: Vec<(u64, i64)>,
    pub(crate) table: Ptr,
    pub(crate) clock_block: Ptr,
    /// Commit time of the meta record that was loaded. It counts as the time of the last entry of the clock if no
    /// later entry exists.
    pub(crate) since_ns: i64,
}

type Read<'r> = dyn Fn(&Ptr) -> Result<PageRef<'r>> + 'r;

impl Pins {
    pub(crate) fn load<'r>(meta: &Meta, read: &Read<'r>) -> Result<Self> {
        Ok(Self {
            list: read_table(&meta.pins, read)?,
            gone: Vec::new(),
            clock: read_clock(&meta.clock, read)?,
            table: meta.pins,
            clock_block: meta.clock,
            since_ns: meta.time_ns,
        })
    }

    /// Must be called after the pins of a lazy commit (`removed`) were loaded. Pins of the durable meta record on
    /// which the lazy commit builds retain their version until the lazy commit is durable. If such a pin is missing
    /// in the lazy commit, a commit that is not durable yet has removed it.
    pub(crate) fn keep_those_of<'r>(
        &mut self,
        durable: &Meta,
        removed: u64,
        read: &Read<'r>,
    ) -> Result<()> {
        for pin in read_table(&durable.pins, read)? {
            if !self.list.iter().any(|known| known.txn == pin.txn) {
                self.gone.push((pin.txn.0, removed));
            }
        }
        Ok(())
    }

    /// Returns the transactions whose pages pins retain. `kept` is the oldest durable transaction whose meta record
    /// is not overwritten.
    pub(crate) fn live(&mut self, kept: u64) -> impl Iterator<Item = u64> {
        self.gone.retain(|&(_, removed)| kept < removed);
        let pinned = self.list.iter().map(|pin| pin.txn.0);
        pinned.chain(self.gone.iter().map(|(txn, _)| *txn))
    }

    /// Whether moving the table of pins frees its old pages. It does not if the commit that wrote the table is
    /// pinned: a pin retains all pages of its version, including the table that the commit wrote.
    pub(crate) fn can_move_table(&self) -> bool {
        self.list.iter().all(|pin| pin.txn < self.table.birth)
    }

    /// Returns all blocks of pins and of the clock, each with the number of pages of its extent.
    pub(crate) fn extents(&self, page_size: usize) -> Vec<(Ptr, u64)> {
        let records = self.list.iter().map(|pin| pin.record);
        let blocks = records.chain([self.table, self.clock_block]);
        let blocks = blocks.filter(|ptr| !ptr.is_null());
        blocks
            .map(|ptr| (ptr, SoleBlock(ptr).extent(page_size).pages))
            .collect()
    }

    /// Length in bytes of the block with the clock, the list of commit times.
    pub(crate) fn clock_bytes(&self) -> usize {
        ENTRIES_AT + self.clock.len() * CLOCK_ENTRY_BYTES
    }

    /// Adds the time of a commit to the clock, unless an entry is as late or the commit has an entry already.
    pub(crate) fn tick(&mut self, txn: u64, time_ns: i64) {
        let behind = self
            .clock
            .last()
            .is_none_or(|&(t, time)| t < txn && time < time_ns);
        if !behind {
            return;
        }
        if self.clock.len() >= CLOCK_MAX {
            // The list is full: drops every second entry of its older half.
            let half = CLOCK_MAX / 2;
            let mut at = 0;
            self.clock.retain(|_| {
                at += 1;
                at > half || at % 2 == 1
            });
        }
        self.clock.push((txn, time_ns));
        assert!(self.clock.len() <= CLOCK_MAX, "the clock has no more room");
        debug_assert!(
            self.clock.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1),
            "the clock goes back"
        );
    }
}

fn damaged(what: &str, ptr: &Ptr, found: impl ToString, expected: impl ToString) -> Error {
    Corrupt::new(what, ptr.addr, found.to_string(), expected.to_string()).into()
}

/// Reads the block to which `ptr` points, which must be of kind `kind`; also returns its number of entries.
fn open<'r>(what: &str, ptr: &Ptr, kind: Kind, read: &Read<'r>) -> Result<(PageRef<'r>, usize)> {
    if ptr.kind != kind || ptr.len as usize > tidalite_base::limits::CHECKSUM_SPAN_MAX {
        let found = format!("{:?} of {} bytes", ptr.kind, ptr.len);
        return Err(damaged(what, ptr, found, format!("{kind:?}")));
    }
    let block = read(ptr)?;
    if block.len() < ENTRIES_AT {
        return Err(damaged(what, ptr, block.len(), "at least the fixed fields"));
    }
    let count = get_u32(&block, COUNT_AT) as usize;
    Ok((block, count))
}

pub(crate) fn read_table<'r>(ptr: &Ptr, read: &Read<'r>) -> Result<Vec<Pin>> {
    if ptr.is_null() {
        return Ok(Vec::new());
    }
    let (block, count) = open("table of pins", ptr, Kind::Pins, read)?;
    let bad = |found: String| damaged("table of pins", ptr, found, "whole entries");
    if count > PINS_MAX {
        return Err(bad(format!("{count} pins")));
    }
    let mut pins: Vec<Pin> = Vec::with_capacity(count);
    let mut at = ENTRIES_AT;
    for _ in 0..count {
        let name_at = at + PTR_BYTES + 18;
        if block.len() < name_at {
            return Err(bad(format!("an entry cut off at {at}")));
        }
        let end = name_at + usize::from(get_u16(&block, name_at - 2));
        let name = block.get(name_at..end).map(std::str::from_utf8);
        let Some(Ok(name)) = name else {
            return Err(bad(format!("a name that ends at {end}")));
        };
        let pin = Pin {
            name: name.to_owned(),
            txn: TxnId(get_u64(&block, at + PTR_BYTES)),
            time_ns: get_i64(&block, at + PTR_BYTES + 8),
            record: Ptr::decode(&block, at),
        };
        if pin.record.kind != Kind::Meta || pin.record.len as usize != BLOCK_BYTES {
            return Err(bad(format!("a record {:?}", pin.record)));
        }
        pins.push(pin);
        at = end;
    }
    if at != block.len() {
        return Err(bad(format!("{} bytes, entries up to {at}", block.len())));
    }
    Ok(pins)
}

pub(crate) fn read_clock<'r>(ptr: &Ptr, read: &Read<'r>) -> Result<Vec<(u64, i64)>> {
    if ptr.is_null() {
        return Ok(Vec::new());
    }
    let (block, count) = open("clock", ptr, Kind::Clock, read)?;
    let bad = |found: String| damaged("clock", ptr, found, "ascending entries");
    if count > CLOCK_MAX || block.len() != ENTRIES_AT + count * CLOCK_ENTRY_BYTES {
        return Err(bad(format!("{count} entries in {} bytes", block.len())));
    }
    let mut entries: Vec<(u64, i64)> = Vec::with_capacity(count);
    for i in 0..count {
        let at = ENTRIES_AT + i * CLOCK_ENTRY_BYTES;
        let entry = (get_u64(&block, at), get_i64(&block, at + 8));
        if entries
            .last()
            .is_some_and(|last| last.0 >= entry.0 || last.1 >= entry.1)
        {
            return Err(bad(format!("{entry:?} after {:?}", entries.last())));
        }
        entries.push(entry);
    }
    Ok(entries)
}

/// Encodes the table of pins as a block, whose header is still empty.
fn encode_table(pins: &[Pin]) -> Vec<u8> {
    assert!(pins.len() <= PINS_MAX, "a table of too many pins");
    let mut block = vec![0u8; ENTRIES_AT];
    put_u32(&mut block, COUNT_AT, pins.len() as u32);
    for pin in pins {
        let at = block.len();
        block.resize(at + PTR_BYTES + 18, 0);
        pin.record.encode(&mut block, at);
        put_u64(&mut block, at + PTR_BYTES, pin.txn.0);
        put_i64(&mut block, at + PTR_BYTES + 8, pin.time_ns);
        put_u16(&mut block, at + PTR_BYTES + 16, pin.name.len() as u16);
        block.extend_from_slice(pin.name.as_bytes());
    }
    block
}

/// Length in bytes of a table of pins with these names.
pub(crate) fn table_bytes<'n>(names: impl Iterator<Item = &'n str>) -> usize {
    names.fold(ENTRIES_AT, |sum, name| sum + PTR_BYTES + 18 + name.len())
}

/// Maximum length in bytes of the block with the clock, the list of commit times.
pub(crate) const CLOCK_BYTES_MAX: usize = ENTRIES_AT + CLOCK_MAX * CLOCK_ENTRY_BYTES;

fn encode_clock(clock: &[(u64, i64)]) -> Vec<u8> {
    assert!(clock.len() <= CLOCK_MAX, "a clock of too many entries");
    let mut block = vec![0u8; ENTRIES_AT + clock.len() * CLOCK_ENTRY_BYTES];
    put_u32(&mut block, COUNT_AT, clock.len() as u32);
    for (i, (txn, time_ns)) in clock.iter().enumerate() {
        let at = ENTRIES_AT + i * CLOCK_ENTRY_BYTES;
        put_u64(&mut block, at, *txn);
        put_i64(&mut block, at + 8, *time_ns);
    }
    block
}

/// Seals a block and extends it with zeros to the end of its extent; returns the pointer and the extended bytes.
pub(crate) fn sealed(
    kind: Kind,
    mut block: Vec<u8>,
    extent: &Extent,
    page_size: usize,
) -> (Ptr, Vec<u8>) {
    let header = Header {
        kind,
        flags: 0,
        owner: 0,
        address: extent.addr,
        birth: extent.birth,
    };
    assert!(
        block.len() <= extent.pages as usize * page_size,
        "a block is longer than its extent"
    );
    let ptr = seal_block(&mut block, &header);
    block.resize(extent.pages as usize * page_size, 0);
    (ptr, block)
}

impl Pins {
    pub(crate) fn table_block(&self, extent: &Extent, page_size: usize) -> (Ptr, Vec<u8>) {
        sealed(Kind::Pins, encode_table(&self.list), extent, page_size)
    }

    pub(crate) fn clock_block(&self, extent: &Extent, page_size: usize) -> (Ptr, Vec<u8>) {
        sealed(Kind::Clock, encode_clock(&self.clock), extent, page_size)
    }
}

/// Encodes the meta record of a pinned version as a sealed block for its own extent.
pub(crate) fn record_block(meta: &Meta, extent: &Extent, page_size: usize) -> (Ptr, Vec<u8>) {
    let mut block = meta.encode(extent.addr);
    assert!(
        block.len() <= extent.pages as usize * page_size,
        "a meta record is longer than its extent"
    );
    let ptr = Ptr {
        addr: extent.addr,
        len: BLOCK_BYTES as u32,
        kind: Kind::Meta,
        checksum: get_u64(&block, 0),
        birth: TxnId(meta.txn),
    };
    block.resize(extent.pages as usize * page_size, 0);
    (ptr, block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_thinned_and_stays_in_order() {
        let mut pins = Pins::default();
        for txn in 1..20_000u64 {
            pins.tick(txn, txn as i64 * 60);
            // A time that goes back is not recorded, and a commit is recorded only once.
            pins.tick(txn, 5);
        }
        assert!(pins.clock.len() <= CLOCK_MAX && pins.clock.len() > CLOCK_MAX / 4);
        assert!(pins.clock.is_sorted() && pins.clock[0] == (1, 60));
        let newest: Vec<u64> = pins
            .clock
            .iter()
            .rev()
            .take(100)
            .map(|entry| entry.0)
            .collect();
        assert!(
            newest.windows(2).all(|pair| pair[0] == pair[1] + 1),
            "the newest are whole"
        );
        assert!(encode_clock(&pins.clock).len() <= CLOCK_BYTES_MAX);
    }
}
