//! What the writer does about readers that hold much space.
//!
//! A reader that lends pages (`begin_read`) is never disturbed: the writer can only wait for it. A reader that
//! copies what it reads (`begin_read_evictable`), and one that is parked, may lose their snapshot: when the disk is
//! full, when they are older than `Options::evictable_age_max`, or when `Options::on_laggard` says so.

use super::Writer;
use crate::lock::protocol;
use crate::lock::readers::{Reader, ReaderKind};
use crate::lock::slots::Seen;
use crate::options::event::Event;
use crate::options::laggard::{Laggard, LaggardAction, OnLaggard};
use crate::system::clock::now_ns;
use crate::txn::inner::Inner;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidalite_base::TxnId;

/// The writer looks again this long after it was told to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Inner {
    pub(crate) fn reader(&self, seen: &Seen) -> Reader {
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
            age: Duration::from_nanos(now_ns().saturating_sub(seen.since_ns)),
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
