//! A kernel memory group (cgroup) below the group of this process. It limits the memory of the processes in it,
//! including their page cache. Dropping `Group` removes the group; its processes must have ended by then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Environment variable with the path of the group that a child process has to enter.
pub(super) const VARIABLE: &str = "TIDALITE_BENCH_MEMORY_GROUP";

/// A cgroup with a memory limit.
pub(super) struct Group(PathBuf);

impl Group {
    /// Creates a group below the group of this process, so that limits of the parent also apply.
    pub(super) fn with_memory(bytes: u64) -> io::Result<Self> {
        let (parent, bound) = parent()?;
        let path = parent.join(format!("tidalite-bench-{}", std::process::id()));
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        fs::create_dir(&path).map_err(named)?;
        let group = Self(path.clone());
        fs::write(group.0.join(bound), bytes.to_string()).map_err(named)?;
        Ok(group)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            eprintln!("warning: {} stays: {error}", self.0.display());
        }
    }
}

/// The cgroup directory of this process, and the name of the file that sets the limit.
fn parent() -> io::Result<(PathBuf, &'static str)> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let path_of = |controller: &str| {
        text.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?);
            let has = controllers.split(',').any(|name| name == controller);
            has.then(|| path.trim_start_matches('/').to_owned())
        })
    };
    // cgroup v1 has a directory tree for each resource, v2 has one tree for all resources.
    if let Some(path) = path_of("memory") {
        let root = Path::new("/sys/fs/cgroup/memory");
        return Ok((root.join(path), "memory.limit_in_bytes"));
    }
    match path_of("") {
        Some(path) => Ok((Path::new("/sys/fs/cgroup").join(path), "memory.max")),
        None => Err(io::Error::other("this kernel has no memory groups")),
    }
}

/// Moves this process into the group that its parent process has created, if there is one.
pub(super) fn enter() -> io::Result<()> {
    match std::env::var_os(VARIABLE) {
        Some(path) => fs::write(
            Path::new(&path).join("cgroup.procs"),
            std::process::id().to_string(),
        ),
        None => Ok(()),
    }
}
