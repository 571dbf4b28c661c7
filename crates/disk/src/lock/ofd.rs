//! Locks of open file descriptions (`fcntl` with `F_OFD_*`). The system releases them when the description is closed or
//! its processes die, and never because of another descriptor of the same file.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Mode of a lock on a range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Shared,
    Alone,
}

fn call(file: &File, command: i32, from: u64, len: u64, kind: i32) -> io::Result<libc::flock> {
    let too_far = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let mut lock = libc::flock {
        l_type: kind as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: i64::try_from(from).map_err(too_far)?,
        l_len: i64::try_from(len).map_err(too_far)?,
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor stays open during the call, and the system reads and writes one `flock`, which lives
        // as long.
        #[expect(unsafe_code, reason = "no safe wrapper knows these locks")]
        let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
        if result == 0 {
            return Ok(lock);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

pub(super) fn try_lock(file: &File, from: u64, len: u64, mode: Mode) -> io::Result<bool> {
    let kind = match mode {
        Mode::Shared => libc::F_RDLCK,
        Mode::Alone => libc::F_WRLCK,
    };
    match call(file, libc::F_OFD_SETLK, from, len, kind) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

pub(super) fn unlock(file: &File, from: u64, len: u64) -> io::Result<()> {
    call(file, libc::F_OFD_SETLK, from, len, libc::F_UNLCK).map(drop)
}

pub(super) fn taken(file: &File, from: u64, len: u64) -> io::Result<bool> {
    let lock = call(file, libc::F_OFD_GETLK, from, len, libc::F_WRLCK)?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}
