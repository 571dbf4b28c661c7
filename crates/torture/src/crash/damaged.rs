//! Damages one sector of a file just after a commit was acknowledged.

use super::history::History;
use super::open::{HEAD_BYTES, Judged, checked, open, options, storage_of, text};
use super::plan::Plan;
use super::tally::Tally;
use std::ops::Range;
use std::sync::Arc;
use tidalite::storage::LockMemory;
use tidalite_base::get_u64;
use tidalite_testkit::rng::Rng;
use tidalite_testkit::{Crash, SECTOR_BYTES, SimDisk};

/// Size in bytes of a block of the redo log.
const BLOCK: usize = 4096;

/// Damages one sector just after a commit was acknowledged. The file must not lose any commit, unless the sector is in
/// a block of the redo log that is stored only once.
pub(super) fn damaged(
    crash: Crash<'_>,
    plan: &Plan,
    tally: &Tally,
    history: &History,
    rng: &mut Rng,
) -> Judged {
    let mut image = crash.image;
    let sectors = (image.len() - HEAD_BYTES) / SECTOR_BYTES;
    if sectors == 0 {
        return Ok(());
    }
    let opened = |image: Vec<u8>| {
        let disk = Arc::new(SimDisk::from_image(image));
        let second = storage_of(crash.second.as_ref());
        open(
            disk,
            second,
            &LockMemory::new(),
            options(plan.page_size).accept_lost_commits(true),
        )
    };
    // Half of the damaged sectors are in the redo log.
    let log = log_of(&image, plan.page_size);
    let at = match &log {
        Some(log) if rng.one_in(2) => {
            log.start + rng.index(log.len() / SECTOR_BYTES) * SECTOR_BYTES
        }
        _ => HEAD_BYTES + rng.index(sectors) * SECTOR_BYTES,
    };
    // These values of kind and flags in the block's header mark a block of the redo log that is stored only once; see
    // docs/format.md sections 1 and 5.
    let once = log.is_some_and(|log| {
        let block = log
            .contains(&at)
            .then(|| log.start + (at - log.start) / BLOCK * BLOCK);
        block.is_some_and(|block| image[block + 8..block + 10] == [21, 1])
    });
    let whole = opened(image.clone())?;
    let expected = whole.begin_read().map_err(text)?.txn();
    drop(whole);
    rng.fill(&mut image[at..at + SECTOR_BYTES]);
    let place = |error: String| format!("one damaged sector at {at}: {error}");
    let db = opened(image).map_err(place)?;
    tally.opened(&db, crash.cut, false);
    // Damage in a page to which the meta record refers is reported when the page is read.
    let Ok(snap) = db.begin_read() else {
        return Ok(());
    };
    let back = db.recovery().lost.map(|lost| lost.newest);
    let shown = snap.txn();
    drop(snap);
    match back {
        None if shown == expected => Ok(()),
        _ if once && shown < expected && back.is_none_or(|from| from == expected) => {
            history.identify(&db, |_| true).map_err(place)?;
            checked(&db).map_err(place)
        }
        _ => Err(place(format!(
            "{shown} is shown, went back from {back:?}; {expected} without the damage"
        ))),
    }
}

/// Position in the file of the redo log that the newest meta record names, as in docs/format.md section 3.
fn log_of(image: &[u8], page_size: usize) -> Option<Range<usize>> {
    let newest = [4096, 8192].into_iter();
    let newest = newest.max_by_key(|at| get_u64(image, at + 48))?;
    let [page, pages] = [1952, 1960].map(|at| get_u64(image, newest + at) as usize * page_size);
    let log = page..page + pages;
    (pages > 0 && log.end <= image.len()).then_some(log)
}
