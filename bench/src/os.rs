//! What a benchmark must know of its machine: memory touched beforehand, free space, blocks that
//! a file really takes, dropping a file from the page cache, and whether anyone else is busy.

#![expect(unsafe_code, reason = "calls of the operating system")]

use std::ffi::CString;
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A directory that goes when this goes.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// A fresh directory under the system's own place for such things.
    #[cfg(test)]
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), name)
    }

    /// A fresh directory under `parent`, which is created if need be.
    pub(crate) fn within(parent: &Path, name: &str) -> io::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("tidalite-{name}-{}-{n}", std::process::id()));
        fs::create_dir_all(parent)?;
        fs::create_dir(&dir)?;
        Ok(Self(dir))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // Nothing is lost but space, and the path tells whose it is.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// From now on this process keeps what it frees, and takes all from its heap, so that memory
/// which was touched is the memory that is used.
pub(crate) fn keep_heap() {
    // SAFETY: sets two numbers of the allocator; -1 is its way to say "never trim".
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
    }
}

/// Touches memory for files in the page cache and for the heap: a guest whose host has taken
/// its free memory away gets it back at less than 0.5 GB/s, and that must not happen inside a
/// measurement. At most four fifths of what is free, so that no cached page is pushed out.
pub(crate) fn touch_memory(cache_bytes: u64, heap_bytes: u64) {
    let mut heap: Vec<u8> = Vec::new();
    if heap.try_reserve_exact(heap_bytes as usize).is_ok() {
        heap.spare_capacity_mut()
            .iter_mut()
            .step_by(4096)
            .for_each(|page| {
                page.write(1);
            });
        black_box(&mut heap);
    }
    let bytes = cache_bytes.min(memory_free() / 5 * 4) as usize;
    if bytes == 0 {
        return;
    }
    // SAFETY: a fresh private anonymous map, written and unmapped here; nothing else knows it.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let at = libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return;
        }
        for page in (0..bytes).step_by(4096) {
            at.cast::<u8>().add(page).write_volatile(1);
        }
        libc::munmap(at, bytes);
    }
}

/// Bytes that no one uses, not even as a cache.
pub(crate) fn memory_free() -> u64 {
    proc_field("/proc/meminfo", "MemFree:").unwrap_or(0) * 1024
}

/// Bytes of memory of this machine.
pub(crate) fn memory_total() -> u64 {
    proc_field("/proc/meminfo", "MemTotal:").unwrap_or(0) * 1024
}

fn proc_field(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The processor's name as the kernel tells it.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split_once(':'))
        .map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}

/// Average number of busy tasks over the last minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

/// Bytes that may still be written below `dir`.
pub(crate) fn disk_free(dir: &Path) -> io::Result<u64> {
    let path = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: all-zero bytes are a valid `statvfs`, which the call fills.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and an out-parameter.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat.f_bavail * stat.f_frsize)
}

/// Fails when less than `needed` bytes may still be written below `dir`: a run on a short disk would measure that, or fill it.
pub(crate) fn expect_disk(dir: &Path, needed: u64) -> Result<(), String> {
    let free = disk_free(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    if free >= needed {
        return Ok(());
    }
    let (free, needed) = (free >> 20, needed >> 20);
    Err(format!(
        "needs {needed} MiB of disk at {}, where {free} are free",
        dir.display()
    ))
}

/// Bytes of disk that the files below `dir` take: holes and ends of blocks as they are.
pub(crate) fn disk_used(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            disk_used(&entry.path())?
        } else {
            entry.metadata()?.blocks() * 512
        };
    }
    Ok(bytes)
}

/// What was written since some beginning, counted in three places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Bytes that this process handed to `write` and its like. Not those that it stored through a map.
    pub(crate) handed: u64,
    /// Calls of `write` and its like.
    pub(crate) calls: u64,
    /// Bytes of the page cache that this process made dirty (`write_bytes` of `/proc/self/io`). On file systems
    /// with large folios one changed byte counts as its whole folio, which may be 2 MiB.
    pub(crate) dirtied: u64,
    /// Bytes that the disk was given, whoever gave them.
    pub(crate) disk: u64,
}

/// Reads the kernel's accounts; zeros where it keeps none.
pub(crate) fn written(dir: &Path) -> Written {
    let field = |name| proc_field("/proc/self/io", name).unwrap_or(0);
    Written {
        handed: field("wchar:"),
        calls: field("syscw:"),
        dirtied: field("write_bytes:"),
        disk: disk_written(dir).unwrap_or(0),
    }
}

/// Bytes written to the block device that `dir` is on, since the machine started.
fn disk_written(dir: &Path) -> Option<u64> {
    let device = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    let sectors: u64 = text.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * 512)
}

/// Seconds of processor time that this process took so far, in all its threads and in the kernel.
pub(crate) fn cpu_seconds() -> f64 {
    let spent = Spent::so_far();
    spent.user + spent.system
}

/// What this process took of the processors, in all its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    user: f64,
    system: f64,
    /// Pages that the kernel had to give or to map.
    faults: i64,
}

impl Spent {
    /// Since it began.
    pub(crate) fn so_far() -> Self {
        // SAFETY: all-zero bytes are a valid `rusage`, which the call fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: an out-parameter.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Self {
            user: seconds(usage.ru_utime),
            system: seconds(usage.ru_stime),
            faults: usage.ru_minflt,
        }
    }

    /// Since then.
    pub(crate) fn since(then: &Self) -> Self {
        let now = Self::so_far();
        Self {
            user: now.user - then.user,
            system: now.system - then.system,
            faults: now.faults - then.faults,
        }
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            user,
            system,
            faults,
        } = self;
        write!(f, "user {user:.3} s, system {system:.3}, {faults} faults")
    }
}

/// Waits until all that was written to the file system of `dir` is on the disk, so that one measurement does
/// not pay for another. Other file systems stay out of it: `sync` waits even for one that hangs.
pub(crate) fn settle(dir: &Path) -> io::Result<()> {
    let dir = File::open(dir)?;
    // SAFETY: the descriptor is open.
    match unsafe { libc::syncfs(dir.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes the files below `dir` to disk and drops them from the page cache. An error when more than
/// a hundredth stays: a "cold" read would not be one.
pub(crate) fn make_cold(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            make_cold(&path)?;
            continue;
        }
        let file = File::open(&path)?;
        file.sync_all()?;
        // SAFETY: the descriptor is open.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        let (cached, pages) = cached_pages(&file)?;
        if cached > 16 && cached * 100 > pages {
            // The whole cache, for which one must be root.
            fs::write("/proc/sys/vm/drop_caches", "1")?;
        }
        let (cached, pages) = cached_pages(&file)?;
        if cached > 16 && cached * 100 > pages {
            let path = path.display();
            let what = format!("{path}: {cached} of {pages} pages stay in the page cache");
            return Err(io::Error::other(what));
        }
    }
    Ok(())
}

/// How many pages of the file are in memory, and how many it has.
fn cached_pages(file: &File) -> io::Result<(usize, usize)> {
    let bytes = file.metadata()?.len() as usize;
    let pages = bytes.div_ceil(4096);
    if bytes == 0 {
        return Ok((0, 0));
    }
    let mut resident = vec![0u8; pages];
    // SAFETY: a shared read-only map of the whole file that is never read, only asked about;
    // `resident` has a byte for each of its pages.
    unsafe {
        let fd = file.as_raw_fd();
        let at = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ,
            libc::MAP_SHARED,
            fd,
            0,
        );
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let code = libc::mincore(at, bytes, resident.as_mut_ptr().cast());
        libc::munmap(at, bytes);
        if code != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok((
        resident.iter().filter(|page| **page & 1 == 1).count(),
        pages,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_can_be_made_cold_and_is_warm_again_after_a_read() {
        let dir = TempDir::new("cold").unwrap();
        let path = dir.path().join("file");
        fs::write(&path, vec![7u8; 4 << 20]).unwrap();
        make_cold(dir.path()).unwrap();
        let file = File::open(&path).unwrap();
        assert!(cached_pages(&file).unwrap().0 <= 16);
        fs::read(&path).unwrap();
        assert_eq!(cached_pages(&file).unwrap(), (1024, 1024));
        assert!(disk_used(dir.path()).unwrap() >= 4 << 20);
    }

    #[test]
    fn a_disk_that_is_short_is_refused() {
        let dir = std::env::temp_dir();
        expect_disk(&dir, 1).unwrap();
        let free = disk_free(&dir).unwrap();
        // Others may write or delete meanwhile.
        let refused = expect_disk(&dir, 2 * free + (1 << 40)).unwrap_err();
        let needed = (2 * free + (1 << 40)) >> 20;
        assert!(
            refused.starts_with(&format!("needs {needed} MiB of disk at "))
                && refused.ends_with(" are free"),
            "{refused}"
        );
        assert!(expect_disk(Path::new("/nowhere/to/be/found"), 1).is_err());
    }

    #[test]
    fn the_machine_answers() {
        touch_memory(8 << 20, 8 << 20);
        assert!(memory_total() > 0);
        assert!(disk_free(&std::env::temp_dir()).unwrap() > 0);
    }
}
