//! The log: small durable commits with one barrier.
//!
//! ```text
//! delta    a page as what differs from another one
//! record   what the log holds of a commit
//! block    blocks of the log, each once or twice
//! replay   what is found in the log at opening; making it a durable record
//! ```
//!
//! The pages of such a commit are written as those of a lazy one: to the system's cache, and no sync follows. What a power cut would take
//! is kept in the log: the meta record and, for each page, what differs from the page that it was copied from. One write of a few
//! blocks side by side, with one barrier that covers nothing else, makes a commit durable, or all that wait. When the log is full, and
//! at the end, an ordinary flush of two barriers makes a record, and the log begins anew.
//!
//! Physical redo logging after a fuzzy checkpoint, as in J. Gray and A. Reuter, "Transaction Processing" (1993), chapters 9 to 11; since pages
//! are copied on write, the checkpoint is a state that nobody writes to, and nothing need be undone.
//!
//! Invariants
//! 1. The log stands on the newest durable record, which names its place and which its blocks name; it is written only when that record
//!    is known to be on the medium, by the handle that put it there, and while no other handle has had the turn.
//! 2. It holds all commits from that record up to the newest acknowledged one, without a gap.
//! 3. Blocks are only appended: one that was acknowledged is not written again before a newer record is durable.
//! 4. A page of a record in the log differs from one of the state that the commit before it left. What the durable record shows is not
//!    written over (`Writer::live`), so from it and the log every later state can be made anew, whatever became of the pages
//!    that were written.
//! 5. Each block of a `Durable` commit stands there twice: no single damaged block undoes it. That of a `OneFlush` commit once.

mod block;
mod delta;
mod record;
mod replay;

pub(crate) use block::{Place, Stand};
pub(crate) use record::{PageOf, Recorder};
pub(crate) use replay::{Logged, Replayed, read, settle};

use crate::error::lost_commits::LostCommits;
use crate::format::layout::BLOCK_BYTES;
use crate::format::meta::Meta;
use std::sync::Arc;
use tidalite_base::TxnId;

/// The log is so long at least, unless the options allow less ...
pub(crate) const BYTES_MIN: u64 = 2 << 20;
/// ... and at most this part of the file.
pub(crate) const PART_OF_FILE: u64 = 2;
/// A log is never longer: it is read whole.
pub(crate) const BYTES_MAX: u64 = 64 << 20;
/// A commit that changes more of the file does not go to the log: what two barriers cost is little beside the rest of it, and the log would be
/// full after a few of them.
pub(crate) const COMMIT_PAGE_BYTES_MAX: u64 = 256 << 10;
/// The record of a commit in the log is no longer.
pub(crate) const COMMIT_BYTES_MAX: usize = 32 << 10;
/// Pages that one log leads to, in bytes: what opening may need.
pub(crate) const REPLAY_BYTES_MAX: u64 = 64 << 20;

/// Where the log is: pages of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) at: u64,
    pub(crate) bytes: u64,
}

impl Area {
    pub(crate) fn of(meta: &Meta, page_size: usize) -> Option<Self> {
        let redo = meta.redo?;
        Some(Self {
            at: redo.page.checked_mul(page_size as u64)?,
            bytes: redo.pages.checked_mul(page_size as u64)?,
        })
    }

    fn blocks(&self) -> u64 {
        self.bytes / BLOCK_BYTES as u64
    }
}

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

/// What opening had to do to find a state that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Commits that were found in the log.
    pub replayed: u64,
    /// Durable commits that cannot be found any more. A handle for writing has them only with
    /// [`Options::accept_lost_commits`](crate::Options::accept_lost_commits).
    pub lost: Option<LostCommits>,
    /// The newest commit that the lock file named and of which pages are not in the file: it was dropped. No durable commit is lost by that.
    pub dropped_unrecorded: Option<TxnId>,
    /// Bytes read to verify what the lock file named.
    pub verified_bytes: u64,
}
