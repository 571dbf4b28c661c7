//! Functions of the operating system that a benchmark needs: touching memory in advance, free space, disk blocks of a
//! file, emptying the page cache, and the load from other processes.

#![expect(unsafe_code, reason = "calls of the operating system")]

use std::ffi::CString;
use std::fs::{self, File};
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A directory that is removed when this value is dropped.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// Creates a new directory in the system's temporary directory.
    #[cfg(test)]
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        Self::within(&std::env::temp_dir(), name)
    }

    /// Creates a new directory under `parent`, which is created if it does not exist.
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
        // A failure is ignored: it only wastes space, and the path shows where the directory comes from.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// From now on this process keeps freed memory and takes all memory from its heap, so that later allocations reuse
/// memory that was touched before.
pub(crate) fn keep_heap() {
    // SAFETY: the calls set two numbers of the allocator; -1 means "never trim".
    unsafe {
        libc::mallopt(libc::M_MMAP_MAX, 0);
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
    }
}

/// Gives freed memory of the heap back to the system, so that it does not count as memory of this process.
pub(crate) fn trim_heap() {
    // SAFETY: the call has no preconditions, and changes only which free memory the allocator keeps.
    unsafe { libc::malloc_trim(0) };
}

/// Touches memory for the page cache and for the heap. A virtual machine whose host has taken away free memory gets
/// this memory back at less than 0.5 GB/s, which must not happen inside a measurement. Touches at most four fifths of
/// the free memory, so that no cached page is evicted.
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
    // SAFETY: the private anonymous map is created, written and unmapped here; no other code has its address.
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

/// Unused memory of the machine in bytes, without caches.
pub(crate) fn memory_free() -> u64 {
    proc_field("/proc/meminfo", "MemFree:").unwrap_or(0) * 1024
}

/// Total memory of the machine in bytes.
pub(crate) fn memory_total() -> u64 {
    proc_field("/proc/meminfo", "MemTotal:").unwrap_or(0) * 1024
}

/// Anonymous memory of this process in bytes: its heap and stacks, without the pages of files.
pub(crate) fn memory_anonymous() -> u64 {
    proc_field("/proc/self/status", "RssAnon:").unwrap_or(0) * 1024
}

fn proc_field(file: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Name of the processor, as the kernel reports it.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    let name = line
        .and_then(|line| line.split_once(':'))
        .map(|(_, name)| name.trim().to_owned());
    name.unwrap_or_else(|| "unknown processor".to_owned())
}

/// Average number of tasks that were running or waiting to run in the last minute.
pub(crate) fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace()
        .next()
        .and_then(|load| load.parse().ok())
        .unwrap_or(0.0)
}

/// Free disk space for files below `dir`, in bytes.
pub(crate) fn disk_free(dir: &Path) -> io::Result<u64> {
    let path = CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: all-zero bytes are a valid `statvfs`, which the call fills.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `path` is a C string, and the call sets `stat`.
    if unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(stat.f_bavail * stat.f_frsize)
}

/// Returns an error if less than `needed` bytes are free below `dir`: a run on a nearly full disk would measure the
/// effects of the lack of space, or fill the disk.
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

/// Disk space in bytes that the files below `dir` take: without holes, but with the whole of partly used blocks.
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

/// Amounts written since some earlier time, counted in three places.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Number of bytes that this process has passed to `write` and similar calls, without bytes stored through a memory
    /// map.
    pub(crate) handed: u64,
    /// Number of calls of `write` and similar functions.
    pub(crate) calls: u64,
    /// Number of bytes in the page cache that this process has made dirty (`write_bytes` of `/proc/self/io`). On file
    /// systems with large folios one changed byte counts as its whole folio, which may be 2 MiB.
    pub(crate) dirtied: u64,
    /// Number of bytes that any process has written to the disk.
    pub(crate) disk: u64,
}

/// Reads the kernel's counters of written amounts; zeros if the kernel has no such counters.
pub(crate) fn written(dir: &Path) -> Written {
    let field = |name| proc_field("/proc/self/io", name).unwrap_or(0);
    Written {
        handed: field("wchar:"),
        calls: field("syscw:"),
        dirtied: field("write_bytes:"),
        disk: disk_written(dir).unwrap_or(0),
    }
}

/// Number of bytes written to the block device of `dir` since the machine started.
fn disk_written(dir: &Path) -> Option<u64> {
    let device = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let text = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    let sectors: u64 = text.split_whitespace().nth(6)?.parse().ok()?;
    Some(sectors * 512)
}

/// Processor time of this process so far in seconds, including all threads and the kernel.
pub(crate) fn cpu_seconds() -> f64 {
    let spent = Spent::so_far();
    spent.user + spent.system
}

/// Processor use of this process, including all threads and the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    user: f64,
    system: f64,
    /// Number of page faults.
    faults: i64,
}

impl Spent {
    /// Processor use since the process started.
    pub(crate) fn so_far() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    /// Processor use of all child processes that have ended, and of theirs.
    pub(crate) fn of_children() -> Self {
        Self::of(libc::RUSAGE_CHILDREN)
    }

    /// Seconds in user mode and in the kernel.
    pub(crate) fn seconds(&self) -> f64 {
        self.user + self.system
    }

    fn of(who: libc::c_int) -> Self {
        // SAFETY: all-zero bytes are a valid `rusage`, which the call fills.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: the call sets `usage`.
        unsafe { libc::getrusage(who, &raw mut usage) };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Self {
            user: seconds(usage.ru_utime),
            system: seconds(usage.ru_stime),
            faults: usage.ru_minflt,
        }
    }

    /// Processor use since the moment `then`.
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

/// Waits until all writes to the file system of `dir` are on the disk, so that one measurement does not pay for the
/// writes of another measurement. Other file systems are excluded, because `sync` would wait even for one that hangs.
pub(crate) fn settle(dir: &Path) -> io::Result<()> {
    let dir = File::open(dir)?;
    // SAFETY: the descriptor is open.
    match unsafe { libc::syncfs(dir.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Writes the files below `dir` to disk and drops them from the page cache. Returns an error if more than a hundredth
/// of a file remains cached, because a "cold" read would then not be cold.
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
            // Drops the page cache of the whole system, which requires root.
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

/// Number of pages of the file that are in memory, and total number of pages of the file.
fn cached_pages(file: &File) -> io::Result<(usize, usize)> {
    let bytes = file.metadata()?.len() as usize;
    let pages = bytes.div_ceil(4096);
    if bytes == 0 {
        return Ok((0, 0));
    }
    let mut resident = vec![0u8; pages];
    // SAFETY: the shared read-only map of the whole file is never read, only queried; `resident` has a byte for each
    // page.
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
        // Other processes may write or delete files meanwhile, so the free space is compared only roughly.
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
