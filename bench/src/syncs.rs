//! Counts waits on the disk. The C library's `fsync`, `fdatasync`, `msync` and `sync_file_range` are defined
//! here once more: the linker takes these for every engine that is linked into the program, in whatever
//! language, and each counts and makes the system call.
//!
//! A `write` to a descriptor with `O_DSYNC` waits too and is not seen here; engines that do that say so
//! (`Engine::silent_syncs`).

#![expect(
    unsafe_code,
    reason = "stands in for functions of the C library, calls of the operating system"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// Waits on the disk since the program began.
pub(crate) fn count() -> u64 {
    SYNCS.load(Ordering::Relaxed)
}

fn seen() {
    SYNCS.fetch_add(1, Ordering::Relaxed);
}

/// As the C library has it.
// SAFETY: same name, arguments and effect as the function that it stands in for.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fsync(fd: c_int) -> c_int {
    seen();
    // SAFETY: a system call that takes a descriptor; `syscall` sets `errno` as the wrapper does.
    unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int }
}

/// As the C library has it.
// SAFETY: same name, arguments and effect as the function that it stands in for.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fdatasync(fd: c_int) -> c_int {
    seen();
    // SAFETY: as in `fsync`.
    unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int }
}

/// As the C library has it.
///
/// # Safety
/// As there: the range is mapped.
// SAFETY: same name, arguments and effect as the function that it stands in for.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn msync(at: *mut c_void, bytes: usize, flags: c_int) -> c_int {
    if flags & libc::MS_SYNC != 0 {
        seen();
    }
    // SAFETY: the caller's range; nothing is read or written by this process.
    unsafe { libc::syscall(libc::SYS_msync, at, bytes, flags) as c_int }
}

/// As the C library has it.
// SAFETY: same name, arguments and effect as the function that it stands in for.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sync_file_range(fd: c_int, from: i64, len: i64, flags: c_uint) -> c_int {
    // Without these it only begins to write, and waits for nothing.
    if flags & (libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER) != 0 {
        seen();
    }
    // SAFETY: as in `fsync`.
    unsafe { libc::syscall(libc::SYS_sync_file_range, fd, from, len, flags) as c_int }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    #[test]
    fn a_sync_of_the_standard_library_is_seen() {
        let dir = crate::os::TempDir::new("syncs").unwrap();
        let mut file = std::fs::File::create(dir.path().join("file")).unwrap();
        file.write_all(b"x").unwrap();
        let before = super::count();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        // Other tests of this process may sync meanwhile.
        assert!(super::count() >= before + 2);
    }
}
