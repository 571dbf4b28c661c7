//! Eviction of readers that hold much space.
//!
//! A reader that borrows pages (`begin_read`) is never disturbed: the writer can only wait for it. A reader that
//! copies its reads (`begin_read_evictable`), or is parked, may lose its snapshot: when the disk is
//! full, when it is older than `Options::evictable_age_max`, or when `Options::on_laggard` decides so.

use super::Writer;
use crate::commit::shared::Shared;
use crate::lock::protocol;
use crate::options::event::Event;
use crate::options::laggard::{Laggard, LaggardAction, OnLaggard};
use std::time::Duration;

/// The writer retries after this time if it was told to wait.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

impl Writer {
    /// Writes into the reader table how many pages each reader holds.
    pub(crate) fn note_held(&self, shared: &Shared) {
        if !shared.files.lock.has_readers() {
            return;
        }
        let held = self.space.held_by_holder();
        shared.files.lock.note_held(|txn| {
            let found = held.binary_search_by_key(&txn, |&(holder, _)| holder);
            found.map_or(0, |index| held[index].1)
        });
    }

    /// Called when no free page is left: acts on readers that hold many. True if a retry makes sense.
    pub(crate) fn relieve(&mut self, shared: &Shared, retries: u32, disk_full: bool) -> bool {
        let options = &shared.files.options;
        let nobody_asks = options.on_laggard.is_none() && options.logger.is_none();
        if !disk_full && options.evictable_age_max.is_none() && nobody_asks {
            return false;
        }
        self.note_held(shared);
        let mut seen = Vec::new();
        shared.files.lock.for_each_reader(|reader| {
            if reader.held_pages > 0 {
                seen.push(*reader);
            }
        });
        let mut ousted = false;
        for reader in &seen {
            let age = shared.reader(reader).age;
            let old = options.evictable_age_max.is_some_and(|max| age > max);
            if disk_full || old {
                ousted |= shared.oust(reader);
            }
        }
        if ousted {
            self.reclaim(shared);
            return true;
        }
        let Some(worst) = seen.iter().max_by_key(|reader| reader.held_pages) else {
            return false;
        };
        let reader = shared.reader(worst);
        if !disk_full && reader.held_bytes < options.laggard_bytes {
            return false;
        }
        let laggard = Laggard {
            reader,
            retries,
            disk_full,
        };
        shared.files.log(&Event::Laggard(laggard));
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
                may_lose.into_iter().any(|reader| shared.oust(reader))
            }
            LaggardAction::GiveUp => false,
        };
        if go_on {
            self.reclaim(shared);
        }
        go_on
    }
}
