//! The redo log that a handle is writing, and the entries that commits add to it.

use super::area::{Area, COMMIT_BYTES_MAX, REPLAY_BYTES_MAX};
use super::block::{self, LogBase, Place};
use super::record::{PageOf, Recorder};
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use std::sync::Arc;
use tidalite_base::TxnId;

/// A redo log that this handle is writing.
#[derive(Debug)]
pub(crate) struct Log {
    area: Area,
    log_base: LogBase,
    next: Place,
    /// Transaction number of the newest commit that is in the redo log or waits for the next flush to it.
    top: u64,
    /// Number of bytes of the pages that a replay of the redo log would rebuild.
    replay_bytes: u64,
    waiting: Vec<Waiting>,
}

/// The log entry of a commit that waits for a flush.
#[derive(Debug)]
struct Waiting {
    txn: u64,
    bytes: Vec<u8>,
    page_bytes: u64,
    twice: bool,
}

/// Input of a flush to the redo log. Its blocks are encoded from this copy, so that this does not need the lock of
/// the pipeline.
pub(crate) struct Appended {
    area: Area,
    log_base: LogBase,
    place: Place,
    next: Place,
    tip: TxnId,
    copies: u8,
    /// Log entries of the commits that the flush makes durable.
    payload: Vec<u8>,
}

impl Appended {
    /// Encodes the blocks; returns their byte offset in the file and their bytes.
    pub(crate) fn blocks(&self) -> (u64, Vec<u8>) {
        let at = self.area.at + self.place.position * BLOCK_BYTES as u64;
        let place = (&self.area, self.place, self.log_base);
        let bytes = block::encode(&self.payload, place, (self.tip, self.copies));
        (at, bytes)
    }
}

impl Log {
    /// Asserts that the commits wait in ascending order and that the redo log ends inside its area.
    fn check(&self) {
        assert!(
            self.next.position <= self.area.blocks(),
            "the log ends outside its area"
        );
        assert!(
            u64::from(self.next.number) <= self.next.position,
            "a log has more numbers than blocks"
        );
        assert!(
            self.waiting.last().is_none_or(|last| last.txn <= self.top),
            "a commit waits that is newer than the newest"
        );
        debug_assert!(
            self.waiting.is_sorted_by(|a, b| a.txn < b.txn),
            "commits wait for the log out of order"
        );
    }

    /// Returns the newest commit that is in the redo log or waits for the next flush to it.
    pub(crate) fn top(&self) -> u64 {
        self.top
    }

    /// Begins a redo log that builds on a durable meta record. Returns `None` if the meta record reserves no pages
    /// for a redo log. `older` is the previous redo log; commits that wait in it and are newer than the meta record
    /// move to the new log.
    pub(crate) fn begin(
        record: &Meta,
        checksum: u64,
        page_size: usize,
        older: Option<Self>,
    ) -> Option<Self> {
        let area = Area::of(record, page_size)?;
        let mut log = Self {
            area,
            log_base: LogBase {
                sequence: record.sequence,
                checksum,
            },
            next: Place::default(),
            top: record.txn,
            replay_bytes: 0,
            waiting: Vec::new(),
        };
        if let Some(mut older) = older.filter(|older| older.top > record.txn) {
            older.waiting.retain(|waiting| waiting.txn > record.txn);
            log.replay_bytes = older.waiting.iter().map(|waiting| waiting.page_bytes).sum();
            (log.top, log.waiting) = (older.top, older.waiting);
        }
        log.check();
        Some(log)
    }

    /// Whether a commit that builds on commit `base` may go to this redo log.
    pub(crate) fn takes(&self, base: u64) -> bool {
        self.top == base && self.replay_bytes < REPLAY_BYTES_MAX / 2
    }

    /// Must be called when the meta record of commit `txn` is being written. The next redo log will build on that
    /// meta record, so commits after `txn` may go to the log even if some earlier commits are not in it. They wait
    /// until the meta record is durable, since only one flush runs at a time.
    pub(crate) fn go_on_from(&mut self, txn: u64) {
        if self.top < txn {
            self.top = txn;
            // The commits that wait now are covered by the meta record, so the next redo log omits them.
            self.replay_bytes = 0;
        }
    }

    /// Queues a commit for the next flush, unless the commit `base` on which it builds is not the newest in this redo
    /// log.
    pub(crate) fn push(&mut self, base: u64, entry: Entry) {
        assert!(entry.txn > base, "a commit is newer than the one below it");
        if self.top == base {
            self.top = entry.txn;
            self.replay_bytes += entry.page_bytes;
            self.waiting.push(Waiting {
                txn: entry.txn,
                bytes: entry.bytes,
                page_bytes: entry.page_bytes,
                twice: entry.twice,
            });
        }
        self.check();
    }

    /// Returns the blocks that make all commits up to `tip` durable. Returns `None` if some of these commits are not
    /// in the redo log, or if the log is full.
    pub(crate) fn flush(&self, tip: u64) -> Option<Appended> {
        if self.waiting.last().is_none_or(|last| last.txn != tip) {
            return None;
        }
        let copies = 1 + u8::from(self.waiting.iter().any(|waiting| waiting.twice));
        let used: usize = self.waiting.iter().map(|waiting| waiting.bytes.len()).sum();
        let blocks = block::blocks_for(used);
        let end = self.next.position + blocks * u64::from(copies);
        if end > self.area.blocks() || u16::try_from(blocks).is_err() {
            return None;
        }
        assert!(blocks > 0, "a flush of the log has blocks");
        let mut payload = Vec::with_capacity(used);
        for waiting in &self.waiting {
            payload.extend_from_slice(&waiting.bytes);
        }
        Some(Appended {
            area: self.area,
            log_base: self.log_base,
            place: self.next,
            next: Place {
                number: self.next.number + blocks as u32,
                position: end,
            },
            tip: TxnId(tip),
            copies,
            payload,
        })
    }

    /// Records that the blocks that `flush(tip)` returned are on the medium.
    pub(crate) fn flushed(&mut self, appended: &Appended, tip: u64) {
        assert_eq!(appended.place, self.next, "the log has a gap");
        assert_eq!(appended.log_base, self.log_base, "blocks of another log");
        assert_eq!(appended.tip, TxnId(tip), "blocks of another flush");
        self.next = appended.next;
        self.waiting.retain(|waiting| waiting.txn > tip);
        self.check();
    }
}

/// The entry of one commit for the redo log.
#[derive(Debug)]
pub(crate) struct Entry {
    txn: u64,
    bytes: Vec<u8>,
    page_bytes: u64,
    twice: bool,
}

impl Entry {
    /// Number of bytes of blocks that the entry takes if it is flushed alone.
    pub(crate) fn bytes_written(&self) -> u64 {
        let blocks = block::blocks_for(self.bytes.len()) * (1 + u64::from(self.twice));
        blocks * BLOCK_BYTES as u64
    }

    /// Encodes the log entry of a commit. `records` are the meta record of the commit and the meta record of the
    /// commit on which it builds. Returns `None` if the entry is too large for the redo log.
    pub(crate) fn of<'a>(
        records: (&Arc<Meta>, &Arc<Meta>),
        pages: impl ExactSizeIterator<Item = PageOf<'a>>,
        recorder: &mut Recorder,
        page_size: usize,
        twice: bool,
    ) -> Option<Self> {
        let page_bytes = (pages.len() * page_size) as u64;
        let bytes = recorder.encode(records, pages, COMMIT_BYTES_MAX)?;
        Some(Self {
            txn: records.0.txn,
            bytes,
            page_bytes,
            twice,
        })
    }
}
