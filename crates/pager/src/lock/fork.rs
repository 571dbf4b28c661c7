//! Fork detection without a system call (by a page that the system empties in a forked child), and the release of the
//! parent's locks in the child.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Once, OnceLock};

static LAST: AtomicU64 = AtomicU64::new(0);
static PAGE: OnceLock<&'static AtomicU64> = OnceLock::new();
static WITHOUT_PAGE: AtomicU64 = AtomicU64::new(0);

/// A number that stays constant in a process and differs in a forked child.
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

/// Descriptors whose locks a forked child must not keep alive, plus one; 0 marks a free entry.
static WATCHED: [AtomicI32; WATCHED_MAX] = [const { AtomicI32::new(0) }; WATCHED_MAX];
/// Maximum number of watched lock files in a process. A forked child keeps the locks of further ones until it ends or
/// executes another program.
const WATCHED_MAX: usize = 1024;
/// A harmless descriptor that stays open; -1 until it is opened.
#[cfg(not(miri))]
static NOTHING: AtomicI32 = AtomicI32::new(-1);
static ARMED: Once = Once::new();

/// A forked child shares its parent's locks. From now on it releases the locks of this descriptor at once, so that they
/// die with the parent alone.
pub(super) fn watch(descriptor: i32) {
    ARMED.call_once(arm);
    for place in &WATCHED {
        let taken = place.compare_exchange(0, descriptor + 1, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_ok() {
            return;
        }
    }
}

/// Must be called before the descriptor is closed.
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

/// Runs in the child: the descriptors stay valid, but refer to the harmless file.
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

#[cfg(all(test, not(miri)))]
mod tests {
    use crate::{Durability, Error, Kind, Options, PageWrite, Pager};
    use std::time::{Duration, Instant};

    /// A child neither finishes nor changes the work of its parent.
    #[test]
    fn a_forked_child_commits_and_flushes_nothing_of_its_parent() {
        let folder = std::env::temp_dir().join(format!("tidalite-forked-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("plant.tdl");
        let pager = Pager::open(&path, &Options::default()).expect("a new file");
        let begin = || {
            let mut txn = pager.begin_write().expect("the writer lock");
            let ptr = txn.new_page(Kind::KvLeaf, 1).expect("a page");
            txn.seal_page(&ptr).expect("sealed");
            txn
        };
        let ticket = begin().commit_ticket(b"one", Durability::Durable);
        let ticket = ticket.expect("a commit");
        let snapshot = pager.begin_read().expect("a snapshot");
        let mut txn = begin();
        let before = std::fs::read(&path).expect("the file");
        let child = fork();
        if child == 0 {
            let forked = |result: Option<Error>| matches!(result, Some(Error::Forked));
            let mut wrong = i32::from(!forked(ticket.wait().err()));
            wrong |= i32::from(!forked(ticket.wait_for(Duration::ZERO).err())) << 1;
            wrong |= i32::from(!forked(txn.new_page(Kind::KvLeaf, 1).err())) << 2;
            wrong |= i32::from(!forked(txn.commit(b"two", Durability::Durable).err())) << 3;
            drop((snapshot.park(), ticket, pager));
            leave(wrong);
        }
        assert_eq!(wait(child), 0);
        assert!(std::fs::read(&path).expect("the file") == before, "written");
        let readers = pager.readers().expect("a listing");
        assert_eq!(readers[0].kind, crate::ReaderKind::Read);
        ticket.wait().expect("the parent's flush");
        let info = txn.commit(b"two", Durability::Durable);
        assert_eq!(info.expect("the parent's commit").txn.0, 3);
        drop((snapshot, ticket, pager));
        std::fs::remove_dir_all(&folder).expect("removed");
    }

    /// Faults found by a child, as bits; 0 means none.
    fn in_child(pager: &Pager, path: &std::path::Path) -> i32 {
        let mut wrong = 0;
        let forked = |result: Option<Error>| matches!(result, Some(Error::Forked));
        wrong |= i32::from(!forked(pager.begin_read().err()));
        wrong |= i32::from(!forked(pager.begin_write().err())) << 1;
        wrong |= i32::from(!forked(pager.stat().err())) << 2;
        match Pager::open(path, &Options::default()) {
            // The parent is writing.
            Ok(own) => {
                wrong |= i32::from(own.begin_read().is_err()) << 3;
                wrong |= i32::from(!matches!(own.try_begin_write(), Ok(None))) << 4;
            }
            Err(_) => wrong |= 32,
        }
        wrong
    }

    #[expect(unsafe_code, reason = "the test forks")]
    fn fork() -> i32 {
        // SAFETY: the children below allocate, which glibc permits after a fork, and end with `_exit`.
        unsafe { libc::fork() }
    }

    #[expect(unsafe_code, reason = "the test forks")]
    fn leave(status: i32) -> ! {
        // SAFETY: ends a child without running the exit handlers of the parent.
        unsafe { libc::_exit(status) }
    }

    #[expect(unsafe_code, reason = "the test forks")]
    fn wait(child: i32) -> i32 {
        let mut status = 0;
        // SAFETY: the status is written to a live variable.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(waited, child);
        status
    }

    #[test]
    fn a_forked_child_neither_uses_nor_keeps_what_its_parent_opened() {
        let folder = std::env::temp_dir().join(format!("tidalite-fork-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("plant.tdl");
        let pager = Pager::open(&path, &Options::default()).expect("a new file");
        let snapshot = pager.begin_read().expect("a snapshot");
        let mut txn = pager.begin_write().expect("the writer lock");
        let child = fork();
        if child == 0 {
            let wrong = in_child(&pager, &path);
            // Dropped in the child: the parent keeps its slot and the writer lock.
            drop((snapshot, txn, pager));
            leave(wrong);
        }
        assert_eq!(wait(child), 0);
        assert_eq!(pager.readers().expect("the parent's own").len(), 1);
        let ptr = txn.new_page(Kind::KvLeaf, 1).expect("a page");
        txn.seal_page(&ptr).expect("sealed");
        txn.commit(b"one", Durability::Durable).expect("a commit");
        drop((snapshot, pager));

        // A process that holds the writer lock and a snapshot forks and dies; the child lives on.
        let parent = fork();
        if parent == 0 {
            let pager = Pager::open(&path, &Options::default()).ok();
            let held = pager
                .as_ref()
                .map(|p| (p.begin_read().ok(), p.begin_write().ok()));
            if fork() == 0 {
                std::thread::sleep(Duration::from_secs(3));
            }
            std::mem::forget(held);
            leave(0);
        }
        assert_eq!(wait(parent), 0);
        let begun = Instant::now();
        let pager = Pager::open(&path, &Options::default()).expect("the file");
        // The grandchild releases the inherited locks when it first runs, possibly a moment after its parent's end.
        while !pager.readers().expect("a listing").is_empty() {
            assert!(begun.elapsed() < Duration::from_secs(2), "still a reader");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(pager.begin_write().expect("the writer lock"));
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "waited for the child"
        );
        drop(pager);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
