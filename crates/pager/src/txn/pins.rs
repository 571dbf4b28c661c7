//! Pins in a write transaction, and the clock (the list of commit times), to which its commit may add an entry.

use super::WriteTxn;
use super::dirty::write;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use crate::format::pages::{Extent, PageWrite};
use crate::format::pins::{
    CLOCK_BYTES_MAX, PIN_NAME_BYTES_MAX, PINS_MAX, Pin, SoleBlock, record_block, table_bytes,
};
use crate::format::ptr::Ptr;

impl WriteTxn {
    /// Pins the version that this transaction will commit, under the name `name`. The version stays readable, and its
    /// pages are not reused, until it is unpinned. The commit is always durable, whatever durability is requested. An
    /// existing pin with that name moves to the new version.
    ///
    /// # Errors
    /// `Limit` if the name is empty or too long, or if there are too many pins; the error that failed the transaction
    /// earlier.
    pub fn pin(&mut self, name: &str) -> Result<()> {
        self.check()?;
        if name.is_empty() || name.len() > PIN_NAME_BYTES_MAX {
            return Err(Error::Limit {
                what: "bytes of a pin's name, at least 1",
                found: name.len() as u64,
                limit: PIN_NAME_BYTES_MAX as u64,
            });
        }
        let known = self.pin_names();
        if !known.iter().any(|known| known == name) && known.len() >= PINS_MAX {
            return Err(Error::Limit {
                what: "pins of a file",
                found: known.len() as u64 + 1,
                limit: PINS_MAX as u64,
            });
        }
        self.unpin(name)?;
        self.pins.names.add.push(name.to_owned());
        Ok(())
    }

    /// Removes a pin; returns false if no pin has that name. Pages that only this pin retains become free with later
    /// commits. The commit is always durable, whatever durability is requested.
    ///
    /// # Errors
    /// The error that failed the transaction earlier.
    pub fn unpin(&mut self, name: &str) -> Result<bool> {
        self.check()?;
        let there = self.pin_names().iter().any(|known| known == name);
        self.pins.names.add.retain(|known| known != name);
        if there && !self.pins.names.remove.iter().any(|gone| gone == name) {
            self.pins.names.remove.push(name.to_owned());
        }
        Ok(there)
    }

    /// Returns the names of all pins as this transaction leaves them.
    #[must_use]
    pub fn pin_names(&self) -> Vec<String> {
        let stored = self.writer.iter().flat_map(|writer| &writer.pins.list);
        let stored = stored.map(|pin| pin.name.clone());
        let kept = stored.filter(|name| !self.pins.names.remove.contains(name));
        kept.chain(self.pins.names.add.iter().cloned()).collect()
    }

    /// Allocates the pages for changed pins and for a new entry of the clock (the list of commit times), and frees
    /// the old pages. Must be called before the ranges that the commit frees are listed.
    pub(super) fn plan_pins(&mut self, durable: bool) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let page_size = self.inner.files.page_size;
        let old = writer.pins.clone();
        let last = old
            .clock
            .last()
            .map_or(old.since_ns, |(_, time)| (*time).max(old.since_ns));
        let step =
            i64::try_from(self.inner.files.options.clock_step.as_nanos()).unwrap_or(i64::MAX);
        let due = durable
            && self
                .inner
                .files
                .options
                .clock
                .wall_ns()
                .saturating_sub(last)
                >= step;
        // A transaction that compacts the file rewrites the clock and the table of pins only to move them away from
        // the end of the file, where they would prevent truncation.
        let boundary = self.space.boundary;
        let is_beyond = |ptr: &Ptr| !ptr.is_null() && ptr.addr / page_size as u64 >= boundary;
        let moves = self.space.compacts && durable;
        let moves_table = moves && old.can_move_table() && is_beyond(&old.table);
        let due = if self.space.compacts {
            moves && is_beyond(&old.clock_block)
        } else {
            due
        };
        let pages = |bytes: usize| bytes.div_ceil(page_size) as u64;
        if self.pins.any() || moves_table {
            let names = self.pin_names();
            if !names.is_empty() {
                let bytes = table_bytes(names.iter().map(String::as_str));
                self.pins.table_at = Some(self.alloc_extent(pages(bytes))?);
            }
            for _ in 0..self.pins.names.add.len() {
                let extent = self.alloc_extent(pages(BLOCK_BYTES))?;
                self.pins.records_at.push(extent);
            }
            let removed: Vec<Ptr> = old
                .list
                .iter()
                .filter(|pin| self.pins.names.remove.contains(&pin.name))
                .map(|pin| pin.record)
                .chain([old.table])
                .collect();
            for ptr in removed {
                self.free_standalone(&ptr);
            }
        }
        if due || moves_table || self.pins.any() {
            self.pins.clock_at = Some(self.alloc_extent(pages(CLOCK_BYTES_MAX))?);
            self.free_standalone(&old.clock_block);
        }
        self.check()
    }

    fn free_standalone(&mut self, ptr: &Ptr) {
        if ptr.is_null() {
            return;
        }
        let extent = SoleBlock(*ptr).extent(self.inner.files.page_size);
        self.free_extent(&extent);
    }

    /// Writes the blocks that `plan_pins` has allocated, and stores pointers to them in the meta record.
    pub(super) fn record_pins(&mut self, meta: &mut Meta) -> Result<()> {
        let changes = &mut self.pins;
        if changes.clock_at.is_none() {
            return Ok(());
        }
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let storage = &*self.inner.files.storage;
        let page_size = self.inner.files.page_size;
        let mut next = writer.pins.clone();
        next.tick(meta.txn, meta.time_ns);
        if changes.any() || changes.table_at.is_some() {
            for gone in next
                .list
                .iter()
                .filter(|pin| changes.names.remove.contains(&pin.name))
            {
                next.gone.push((gone.txn.0, meta.txn));
            }
            next.list
                .retain(|pin| !changes.names.remove.contains(&pin.name));
            let mut pinned = meta.clone();
            let names = next
                .list
                .iter()
                .map(|pin| &pin.name)
                .chain(&changes.names.add);
            let table_len = table_bytes(names.map(String::as_str));
            pinned.pins = place_of(Kind::Pins, changes.table_at.as_ref(), table_len);
            pinned.clock = place_of(Kind::Clock, changes.clock_at.as_ref(), next.clock_bytes());
            assert_eq!(
                changes.names.add.len(),
                changes.records_at.len(),
                "each new pin has an extent for its record"
            );
            for (name, extent) in changes.names.add.iter().zip(&changes.records_at) {
                let (record, bytes) = record_block(&pinned, extent, page_size);
                write(storage, extent.addr, &bytes)?;
                next.list.push(Pin {
                    name: name.clone(),
                    txn: tidalite_base::TxnId(meta.txn),
                    time_ns: meta.time_ns,
                    record,
                });
            }
            next.table = Ptr::NULL;
            if let Some(extent) = &changes.table_at {
                let (table, bytes) = next.table_block(extent, page_size);
                write(storage, extent.addr, &bytes)?;
                next.table = table;
            }
        }
        if let Some(extent) = &changes.clock_at {
            let (clock, bytes) = next.clock_block(extent, page_size);
            write(storage, extent.addr, &bytes)?;
            next.clock_block = clock;
        }
        (meta.pins, meta.clock) = (next.table, next.clock_block);
        changes.next = Some(next);
        Ok(())
    }
}

/// Returns a pointer to the future address of a block. It lacks the checksum, since the meta record of the pin that
/// contains the pointer is encoded before the block.
fn place_of(kind: Kind, extent: Option<&Extent>, len: usize) -> Ptr {
    extent.map_or(Ptr::NULL, |extent| Ptr {
        addr: extent.addr,
        len: len as u32,
        kind,
        checksum: 0,
        birth: extent.birth,
    })
}
