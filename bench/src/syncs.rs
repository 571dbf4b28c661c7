//! Counts waits for the disk. This file redefines `fsync`, `fdatasync`, `msync` and `sync_file_range` of the C library.
//! The linker uses these functions for every engine in the program, in any language; each function counts the call and
//! makes the system call.
//!
//! A `write` to a descriptor with `O_DSYNC` also waits for the disk but is not counted here; engines that use it report
//! such waits (`Engine::silent_syncs`).

#![expect(
    unsafe_code,
    reason = "stands in for functions of the C library, calls of the operating system"
)]

use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// Number of waits for the disk since the program started.
pub(crate) fn count() -> u64 {
    SYNCS.load(Ordering::Relaxed)
}

fn seen() {
    SYNCS.fetch_add(1, Ordering::Relaxed);
}

/// Behaves like `fsync` of the C library, and counts the call.
// SAFETY: same name, arguments and effect as the function that it replaces.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fsync(fd: c_int) -> c_int {
    seen();
    // SAFETY: this system call takes only a descriptor; `syscall` sets `errno` as the C library does.
    unsafe { libc::syscall(libc::SYS_fsync, fd) as c_int }
}

/// Behaves like `fdatasync` of the C library, and counts the call.
// SAFETY: same name, arguments and effect as the function that it replaces.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn fdatasync(fd: c_int) -> c_int {
    seen();
    // SAFETY: this system call takes only a descriptor; `syscall` sets `errno` as the C library does.
    unsafe { libc::syscall(libc::SYS_fdatasync, fd) as c_int }
}

/// Behaves like `msync` of the C library, and counts the call.
///
/// # Safety
/// As for `msync` of the C library: the range must be mapped.
// SAFETY: same name, arguments and effect as the function that it replaces.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn msync(at: *mut c_void, bytes: usize, flags: c_int) -> c_int {
    if flags & libc::MS_SYNC != 0 {
        seen();
    }
    // SAFETY: the caller guarantees that the range is mapped; this process reads and writes nothing in it.
    unsafe { libc::syscall(libc::SYS_msync, at, bytes, flags) as c_int }
}

/// Behaves like `sync_file_range` of the C library, and counts the call if it waits.
// SAFETY: same name, arguments and effect as the function that it replaces.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sync_file_range(fd: c_int, from: i64, len: i64, flags: c_uint) -> c_int {
    // Without these flags the call only starts writing and does not wait.
    if flags & (libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WAIT_AFTER) != 0 {
        seen();
    }
    // SAFETY: this system call takes only a descriptor and numbers; `syscall` sets `errno` as the C library does.
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
        // Other tests of this process may sync at the same time, so the counter may be higher.
        assert!(super::count() >= before + 2);
    }
}
