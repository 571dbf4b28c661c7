//! Eviction of readers that retain much space.
//!
//! A reader that borrows pages (`begin_read`) is never evicted: the writer can only wait for it. A reader that copies
//! its reads (`begin_read_evictable`), or is parked, may lose its snapshot in three cases: the disk is full, the
//! snapshot is older than `Options::evictable_age_max`, or `Options::on_long_reader` decides so.

use super::Writer;
use crate::commit::shared::Shared;
use crate::options::event::Event;
use crate::options::long_reader::{LongReader, LongReaderAction, OnLongReader};
use std::time::Duration;
use tidalite_disk::lock::{Lock, protocol};

/// Time after which the writer tries to allocate again if the callback decided to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Writer {
    /// Stores in the reader table how many pages each reader retains.
    pub(crate) fn note_retained(&self, lock: &Lock) {
        if !lock.has_readers() {
            return;
        }
        let retained = self.space.retained_by_snapshot();
        lock.note_retained(|txn| {
            let found = retained.binary_search_by_key(&txn, |&(snapshot_txn, _)| snapshot_txn);
            found.map_or(0, |index| retained[index].1)
        });
    }

    /// Evicts readers that retain many pages, or waits for them, because no free page is left. Returns whether the
    /// caller should try to allocate again.
    pub(crate) fn wait_for_long_reader(
        &mut self,
        shared: &Shared,
        retries: u32,
        disk_full: bool,
    ) -> bool {
        let options = &shared.files.options;
        let nobody_asks = options.on_long_reader.is_none() && options.logger.is_none();
        if !disk_full && options.evictable_age_max.is_none() && nobody_asks {
            return false;
        }
        self.note_retained(&shared.files.lock);
        let mut seen = Vec::new();
        shared.files.lock.for_each_reader(|reader| {
            if reader.retained_pages > 0 {
                seen.push(*reader);
            }
        });
        let mut evicted = false;
        for reader in &seen {
            let age = shared.reader(reader).age;
            let old = options.evictable_age_max.is_some_and(|max| age > max);
            if disk_full || old {
                evicted |= shared.evict(reader);
            }
        }
        if evicted {
            self.reclaim(shared);
            return true;
        }
        let Some(worst) = seen.iter().max_by_key(|reader| reader.retained_pages) else {
            return false;
        };
        let reader = shared.reader(worst);
        if !disk_full && reader.retained_bytes < options.long_reader_bytes {
            return false;
        }
        let long_reader = LongReader {
            reader,
            retries,
            disk_full,
        };
        shared.files.log(&Event::LongReader(long_reader));
        let Some(OnLongReader(ask)) = &options.on_long_reader else {
            return false;
        };
        let go_on = match ask(&long_reader) {
            LongReaderAction::Wait => {
                std::thread::sleep(LOOK_AGAIN);
                true
            }
            LongReaderAction::Evict => {
                let mut may_lose: Vec<_> = seen.iter().collect();
                may_lose.retain(|reader| protocol::may_be_evicted(reader.word));
                may_lose.sort_unstable_by_key(|reader| std::cmp::Reverse(reader.retained_pages));
                may_lose.into_iter().any(|reader| shared.evict(reader))
            }
            LongReaderAction::GiveUp => false,
        };
        if go_on {
            self.reclaim(shared);
        }
        go_on
    }
}
