//! Which process this is, without a system call: a page that the system empties in a forked child.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

static LAST: AtomicU64 = AtomicU64::new(0);
static PAGE: OnceLock<&'static AtomicU64> = OnceLock::new();
static WITHOUT_PAGE: AtomicU64 = AtomicU64::new(0);

/// A number that is the same as long as the process is, and another one in a forked child.
#[inline]
pub(crate) fn generation() -> u64 {
    let word = PAGE.get_or_init(page);
    match word.load(Ordering::Relaxed) {
        0 => begin(word),
        generation => generation,
    }
}

#[cold]
fn begin(word: &AtomicU64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    match word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => next,
        Err(generation) => generation,
    }
}

#[cfg(miri)]
fn page() -> &'static AtomicU64 {
    &WITHOUT_PAGE
}

#[cfg(not(miri))]
fn page() -> &'static AtomicU64 {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    const BYTES: usize = 4096;
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh private map at an address of the system's choice; it is never unmapped, so its first
    // word, zero and aligned, may be lent for good.
    #[expect(unsafe_code, reason = "the page that a fork empties")]
    unsafe {
        let Ok(start) = mmap_anonymous(std::ptr::null_mut(), BYTES, prot, MapFlags::PRIVATE) else {
            return &WITHOUT_PAGE;
        };
        if madvise(start, BYTES, Advice::LinuxWipeOnFork).is_err() {
            return &WITHOUT_PAGE;
        }
        &*start.cast::<AtomicU64>()
    }
}
