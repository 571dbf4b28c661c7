//! Detection of forked child processes without a system call (by a page that the system empties in a forked child),
//! and the release of the parent's locks in the child.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

static LAST: AtomicU64 = AtomicU64::new(0);
static PAGE: OnceLock<&'static AtomicU64> = OnceLock::new();
static WITHOUT_PAGE: AtomicU64 = AtomicU64::new(0);

/// Returns a number that stays the same within a process and is different in a forked child.
#[inline]
pub(super) fn generation() -> u64 {
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
    // SAFETY: a new private map at an address chosen by the system; it is never unmapped, so its first word, zero and
    // aligned, may be lent as `'static`.
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

/// Watched descriptors of lock files, each plus one; 0 marks a free entry. A forked child must not keep the locks of
/// these files alive.
static WATCHED: [AtomicI32; WATCHED_MAX] = [const { AtomicI32::new(0) }; WATCHED_MAX];
/// Maximum number of watched lock files in a process. A forked child keeps the locks of further lock files until it
/// ends or executes another program.
const WATCHED_MAX: usize = 1024;
/// A descriptor of a harmless file, which a forked child puts in place of the watched descriptors; -1 until it is
/// opened.
#[cfg(not(miri))]
static NOTHING: AtomicI32 = AtomicI32::new(-1);
static ARMED: Once = Once::new();

/// Watches the descriptor of a lock file. A forked child shares its parent's locks. It gives up the locks of watched
/// descriptors at once, so that the locks end when the parent dies.
pub(super) fn watch(descriptor: i32) {
    ARMED.call_once(arm);
    for place in &WATCHED {
        let taken = place.compare_exchange(0, descriptor + 1, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            return;
        }
    }
}

/// Stops watching a descriptor. Must be called before the descriptor is closed.
pub(super) fn unwatch(descriptor: i32) {
    for place in &WATCHED {
        let found = place.compare_exchange(descriptor + 1, 0, Ordering::AcqRel, Ordering::Relaxed);
        if found.is_ok() {
            return;
        }
    }
}

#[cfg(miri)]
fn arm() {}

#[cfg(not(miri))]
fn arm() {
    use std::os::fd::IntoRawFd;
    let Ok(nothing) = std::fs::File::open("/dev/null") else {
        return;
    };
    NOTHING.store(nothing.into_raw_fd(), Ordering::Release);
    // SAFETY: the handler only calls `dup3`, which is permitted after a fork, on numbers in static memory.
    #[expect(unsafe_code, reason = "what a forked child does first")]
    unsafe {
        libc::pthread_atfork(None, None, Some(let_go));
    }
}

/// Runs in a forked child. Makes the watched descriptors refer to the harmless file, so that the child no longer
/// shares the parent's locks; the descriptors stay valid.
#[cfg(not(miri))]
extern "C" fn let_go() {
    let nothing = NOTHING.load(Ordering::Acquire);
    for place in &WATCHED {
        let descriptor = place.load(Ordering::Acquire) - 1;
        if descriptor >= 0 && nothing >= 0 {
            // SAFETY: `watch` was given a descriptor that is open until `unwatch`; the child's copy is never read,
            // written or locked again (`Lock::is_here`), only closed.
            #[expect(unsafe_code, reason = "lets go of the parent's locks")]
            unsafe {
                libc::dup3(nothing, descriptor, libc::O_CLOEXEC);
            }
            place.store(0, Ordering::Release);
        }
    }
}
