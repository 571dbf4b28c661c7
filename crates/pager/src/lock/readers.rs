//! Who reads what, how much it holds, and what the writer may do about it.
//!
//! A reader that lends pages (`begin_read`) is never disturbed: the writer can only wait for it. A reader that
//! copies what it reads (`begin_read_evictable`), and one that is parked, may lose their snapshot: when the disk is
//! full, when they are older than `Options::evictable_age_max`, or when `Options::on_laggard` says so.

use crate::error::Result;
use crate::lock::protocol;
use crate::lock::slots::{Seen, clock_ns};
use crate::open::handle::Pager;
use crate::options::event::Event;
use crate::txn::inner::Inner;
use crate::txn::writer::Writer;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidalite_base::TxnId;

/// The writer looks again this long after it was told to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What kind of reader it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderKind {
    /// It lends pages and keeps them for as long as it lives.
    Read,
    /// It copies pages and may lose its snapshot.
    Evictable,
    /// It reads nothing now and may lose its snapshot.
    Parked,
}

/// A snapshot that somebody holds, in whatever process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reader {
    /// Which slot of the reader table it has.
    pub slot: usize,
    /// What kind of reader it is.
    pub kind: ReaderKind,
    /// Its process, as numbered where it runs (another PID namespace has other numbers).
    pub process: u32,
    /// Its thread, when it began.
    pub thread: u32,
    /// Whether it belongs to the handle that was asked.
    pub own: bool,
    /// The commit that it sees.
    pub txn: TxnId,
    /// How many transactions that is behind the newest one.
    pub lag_txns: u64,
    /// For how long it has been there, to a few milliseconds.
    pub age: Duration,
    /// Bytes of the file that could be used again without it, as of the newest write transaction. What several
    /// readers hold is counted with one of them.
    pub held_bytes: u64,
    /// Bytes that all commits since it began have freed: it holds no more than that.
    pub freed_bytes: u64,
}

/// A reader that is in the writer's way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Laggard {
    /// Who it is, and what it holds.
    pub reader: Reader,
    /// How often the writer has asked within this need for space.
    pub retries: u32,
    /// The disk is full; otherwise the file would grow.
    pub disk_full: bool,
}

/// What the writer does about a laggard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaggardAction {
    /// Looks again a few milliseconds later.
    Wait,
    /// Takes its snapshot away, if it is evictable or parked; otherwise that of the one of these that holds most; without any, as for
    /// `GiveUp`.
    Evict,
    /// Lets the file grow; with a full disk, the transaction fails.
    GiveUp,
}

/// Is asked what to do about a laggard; see [`Options::on_laggard`](crate::Options::on_laggard).
#[derive(Clone)]
pub struct OnLaggard(pub Arc<dyn Fn(&Laggard) -> LaggardAction + Send + Sync>);

impl fmt::Debug for OnLaggard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnLaggard(..)")
    }
}

/// Is told, once a second, for whom a writer waits; see [`Options::on_wait`](crate::Options::on_wait).
#[derive(Clone)]
pub struct OnWait(pub Arc<dyn Fn(&WriterSeen) + Send + Sync>);

impl fmt::Debug for OnWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnWait(..)")
    }
}

/// Who has the write transaction, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterSeen {
    /// Its process, as numbered where it runs.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// For how long it has had it, to a few milliseconds.
    pub since: Duration,
}

impl Pager {
    /// The snapshots that are held now, in all processes, by slot. Reads the reader table: some nanoseconds a slot
    /// that was ever used, and a system call a process.
    ///
    /// # Errors
    /// `Forked`.
    pub fn readers(&self) -> Result<Vec<Reader>> {
        self.inner.lock.check_process()?;
        let mut readers = Vec::new();
        let inner = &self.inner;
        inner
            .lock
            .for_each_reader(|seen| readers.push(inner.reader(seen)));
        Ok(readers)
    }

    /// Who is writing now, in whatever process. Waits for nobody.
    #[must_use]
    pub fn writer(&self) -> Option<WriterSeen> {
        self.inner.lock.writer_now()
    }
}

impl Inner {
    fn reader(&self, seen: &Seen) -> Reader {
        let kind = match seen.word {
            word if word & protocol::PARKED != 0 => ReaderKind::Parked,
            word if word & protocol::EVICTABLE != 0 => ReaderKind::Evictable,
            _ => ReaderKind::Read,
        };
        let published = self.lock.area.published().load(Ordering::SeqCst);
        let newest = published.max(self.local.load(Ordering::SeqCst));
        let freed = self.lock.area.freed_pages().load(Ordering::Relaxed);
        let page_bytes = self.page_size as u64;
        Reader {
            slot: seen.slot,
            kind,
            process: seen.process,
            thread: seen.thread,
            own: seen.own,
            txn: TxnId(seen.txn),
            lag_txns: newest.saturating_sub(seen.txn),
            age: Duration::from_nanos(clock_ns().saturating_sub(seen.since_ns)),
            held_bytes: seen.held_pages.saturating_mul(page_bytes),
            freed_bytes: freed
                .saturating_sub(seen.freed_before)
                .saturating_mul(page_bytes),
        }
    }
}

impl Inner {
    fn oust(&self, reader: &Seen) -> bool {
        let ousted = self.lock.oust(reader);
        if ousted {
            self.log(&Event::Ousted {
                process: reader.process,
                txn: TxnId(reader.txn),
            });
        }
        ousted
    }
}

impl Writer {
    /// Says in the reader table how much each reader holds.
    pub(crate) fn note_held(&self, inner: &Inner) {
        if !inner.lock.has_readers() {
            return;
        }
        let held = self.space.held_by_holder();
        inner.lock.note_held(|txn| {
            let found = held.binary_search_by_key(&txn, |&(holder, _)| holder);
            found.map_or(0, |index| held[index].1)
        });
    }

    /// There is no free page: does something about readers that hold many. True when it is worth looking again.
    pub(crate) fn relieve(&mut self, inner: &Inner, retries: u32, disk_full: bool) -> bool {
        let options = &inner.options;
        let nobody_asks = options.on_laggard.is_none() && options.logger.is_none();
        if !disk_full && options.evictable_age_max.is_none() && nobody_asks {
            return false;
        }
        self.note_held(inner);
        let mut seen = Vec::new();
        inner.lock.for_each_reader(|reader| {
            if reader.held_pages > 0 {
                seen.push(*reader);
            }
        });
        let mut ousted = false;
        for reader in &seen {
            let age = inner.reader(reader).age;
            let old = options.evictable_age_max.is_some_and(|max| age > max);
            if disk_full || old {
                ousted |= inner.oust(reader);
            }
        }
        if ousted {
            self.reclaim(inner);
            return true;
        }
        let Some(worst) = seen.iter().max_by_key(|reader| reader.held_pages) else {
            return false;
        };
        let reader = inner.reader(worst);
        if !disk_full && reader.held_bytes < options.laggard_bytes {
            return false;
        }
        let laggard = Laggard {
            reader,
            retries,
            disk_full,
        };
        inner.log(&Event::Laggard(laggard));
        let Some(OnLaggard(ask)) = &options.on_laggard else {
            return false;
        };
        let go_on = match ask(&laggard) {
            LaggardAction::Wait => {
                std::thread::sleep(LOOK_AGAIN);
                true
            }
            LaggardAction::Evict => {
                let mut may_lose: Vec<_> = seen.iter().collect();
                may_lose.retain(|reader| protocol::can_be_ousted(reader.word));
                may_lose.sort_unstable_by_key(|reader| std::cmp::Reverse(reader.held_pages));
                may_lose.into_iter().any(|reader| inner.oust(reader))
            }
            LaggardAction::GiveUp => false,
        };
        if go_on {
            self.reclaim(inner);
        }
        go_on
    }
}
