//! The log that is being written, and what a commit gives it.

use super::area::{Area, COMMIT_BYTES_MAX, REPLAY_BYTES_MAX};
use super::block::{self, Place, Stand};
use super::record::{PageOf, Recorder};
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use std::sync::Arc;
use tidalite_base::TxnId;

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    area: Area,
    stand: Stand,
    next: Place,
    /// The newest commit that is in it or waits to be.
    top: u64,
    /// Bytes of the pages that it leads to.
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

/// What a flush is to write: the blocks are made of it without the lock that the log is under.
pub(crate) struct Appended {
    area: Area,
    stand: Stand,
    place: Place,
    next: Place,
    tip: TxnId,
    copies: u8,
    /// The records of commits.
    payload: Vec<u8>,
}

impl Appended {
    /// The blocks, and where in the file they go.
    pub(crate) fn blocks(&self) -> (u64, Vec<u8>) {
        let at = self.area.at + self.place.position * BLOCK_BYTES as u64;
        let place = (&self.area, self.place, self.stand);
        let bytes = block::encode(&self.payload, place, (self.tip, self.copies));
        (at, bytes)
    }
}

impl Log {
    /// The log that begins with a durable record; `None` when that names no place. `older`: the log before, whose commits may be newer.
    pub(crate) fn begin(
        record: &Meta,
        checksum: u64,
        page_size: usize,
        older: Option<Self>,
    ) -> Option<Self> {
        let area = Area::of(record, page_size)?;
        let mut log = Self {
            area,
            stand: Stand {
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
        Some(log)
    }

    /// Whether a commit on top of this one may go to the log.
    pub(crate) fn takes(&self, base: u64) -> bool {
        self.top == base && self.replay_bytes < REPLAY_BYTES_MAX / 2
    }

    /// A record of this commit is being written, and the log will stand on that: commits on top of this one may go to it, although some before are
    /// not in it. They wait until the record is durable, since one flush goes on at a time.
    pub(crate) fn go_on_from(&mut self, txn: u64) {
        if self.top < txn {
            self.top = txn;
            // Commits that wait are in the record: the log that begins with it leaves them out.
            self.replay_bytes = 0;
        }
    }

    /// A commit that goes to the log with the next flush; not if another one came between.
    pub(crate) fn push(&mut self, base: u64, entry: Entry) {
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
    }

    /// The blocks that make all commits up to `tip` durable; `None` when some of them are not in the log, or when it is full.
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
        let mut payload = Vec::with_capacity(used);
        for waiting in &self.waiting {
            payload.extend_from_slice(&waiting.bytes);
        }
        Some(Appended {
            area: self.area,
            stand: self.stand,
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

    /// What `flush` gave is on the medium; `tip` is what it was asked for.
    pub(crate) fn flushed(&mut self, appended: &Appended, tip: u64) {
        self.next = appended.next;
        self.waiting.retain(|waiting| waiting.txn > tip);
    }
}

/// What the log gets of a commit.
#[derive(Debug)]
pub(crate) struct Entry {
    txn: u64,
    bytes: Vec<u8>,
    page_bytes: u64,
    twice: bool,
}

impl Entry {
    /// Bytes of the blocks that it fills by itself.
    pub(crate) fn bytes_written(&self) -> u64 {
        let blocks = block::blocks_for(self.bytes.len()) * (1 + u64::from(self.twice));
        blocks * BLOCK_BYTES as u64
    }

    /// Of a commit with the first of these records on top of the one with the second; `None` when it is too much for the log.
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
