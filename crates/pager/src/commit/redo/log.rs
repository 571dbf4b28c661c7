//! The log being written, and the entries that commits add to it.

use super::area::{Area, COMMIT_BYTES_MAX, REPLAY_BYTES_MAX};
use super::block::{self, LogBase, Place};
use super::record::{PageOf, Recorder};
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use std::sync::Arc;
use tidalite_base::TxnId;

/// A log being written.
#[derive(Debug)]
pub(crate) struct Log {
    area: Area,
    log_base: LogBase,
    next: Place,
    /// The newest commit that is in the log or waits for it.
    top: u64,
    /// Bytes of the pages that a replay of the log rebuilds.
    replay_bytes: u64,
    waiting: Vec<Waiting>,
}

/// The record of a commit that waits for a flush.
#[derive(Debug)]
struct Waiting {
    txn: u64,
    bytes: Vec<u8>,
    page_bytes: u64,
    twice: bool,
}

/// Input of a flush. Its blocks are encoded from this copy, without holding the lock of the pipeline.
pub(crate) struct Appended {
    area: Area,
    log_base: LogBase,
    place: Place,
    next: Place,
    tip: TxnId,
    copies: u8,
    /// The records of commits.
    payload: Vec<u8>,
}

impl Appended {
    /// The blocks, and their address in the file.
    pub(crate) fn blocks(&self) -> (u64, Vec<u8>) {
        let at = self.area.at + self.place.position * BLOCK_BYTES as u64;
        let place = (&self.area, self.place, self.log_base);
        let bytes = block::encode(&self.payload, place, (self.tip, self.copies));
        (at, bytes)
    }
}

impl Log {
    /// Asserts that commits wait in order and that the log ends inside its area.
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

    /// The newest commit that is in the log or waits for it.
    pub(crate) fn top(&self) -> u64 {
        self.top
    }

    /// The log that begins with a durable record; `None` if the record names no place for a log. `older`: the previous
    /// log; its waiting commits that are newer than the record move to the new log.
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

    /// Whether a commit on top of `base` may go to the log.
    pub(crate) fn takes(&self, base: u64) -> bool {
        self.top == base && self.replay_bytes < REPLAY_BYTES_MAX / 2
    }

    /// Called when the record of this commit is being written. The next log will build on that record, so commits on
    /// top of it may go to the log even if some earlier commits are not in the log. They wait until the record is
    /// durable, since only one flush runs at a time.
    pub(crate) fn go_on_from(&mut self, txn: u64) {
        if self.top < txn {
            self.top = txn;
            // Waiting commits are covered by the record: the log that begins with it omits them.
            self.replay_bytes = 0;
        }
    }

    /// Queues a commit for the next flush, unless its base is no longer the top of the log.
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

    /// The blocks that make all commits up to `tip` durable; `None` if some of these are not in the log, or if the log
    /// is full.
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

    /// Notes that the blocks returned by `flush` are on the medium; `tip` is the argument of that call.
    pub(crate) fn flushed(&mut self, appended: &Appended, tip: u64) {
        assert_eq!(appended.place, self.next, "the log has a gap");
        assert_eq!(appended.log_base, self.log_base, "blocks of another log");
        assert_eq!(appended.tip, TxnId(tip), "blocks of another flush");
        self.next = appended.next;
        self.waiting.retain(|waiting| waiting.txn > tip);
        self.check();
    }
}

/// The log entry of a commit.
#[derive(Debug)]
pub(crate) struct Entry {
    txn: u64,
    bytes: Vec<u8>,
    page_bytes: u64,
    twice: bool,
}

impl Entry {
    /// Bytes of the blocks that the entry takes if it is flushed alone.
    pub(crate) fn bytes_written(&self) -> u64 {
        let blocks = block::blocks_for(self.bytes.len()) * (1 + u64::from(self.twice));
        blocks * BLOCK_BYTES as u64
    }

    /// The entry of a commit: `records` are its meta record and that of the commit it builds on. `None` if it is too
    /// large for the log.
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
