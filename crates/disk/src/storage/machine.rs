//! The memory that this process may use: the memory of the machine, or less if control groups (cgroups) limit it, as in
//! containers.

use std::fs;
use std::sync::OnceLock;

/// Directory at which control groups are usually mounted.
const GROUPS: &str = "/sys/fs/cgroup";

/// Returns the memory in bytes that this process may use; determined once per process.
pub(super) fn memory_bytes() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let info = rustix::system::sysinfo();
        let machine = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit));
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        machine.min(bound(&own, |path| fs::read_to_string(path).ok()))
    })
}

/// The lowest memory limit of the control groups to which a process belongs; `u64::MAX` if there is no limit. `own`
/// is the content of `/proc/self/cgroup`, with lines `number:controllers:path`; `read` reads a file.
fn bound(own: &str, read: impl Fn(&str) -> Option<String>) -> u64 {
    let mut least = u64::MAX;
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        // Version 1 of control groups has one directory tree for each controller; version 2 has one tree for all
        // controllers.
        let (tree, file) = match controllers {
            "" => ("", "memory.max"),
            named if named.split(',').any(|name| name == "memory") => {
                ("/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // Inside a container, the path may be the path that the group has outside the container, so the limits of the
        // parent groups are read as well.
        let mut path = path.trim_end_matches('/');
        loop {
            let text = read(&format!("{GROUPS}{tree}{path}/{file}"));
            // If the file contains "max", parsing fails, and no limit applies.
            let bytes = text.and_then(|text| text.trim().parse().ok());
            least = least.min(bytes.unwrap_or(u64::MAX));
            match path.rfind('/') {
                Some(slash) => path = &path[..slash],
                None => break,
            }
        }
    }
    least
}

#[cfg(test)]
mod tests {
    use super::{bound, memory_bytes};

    #[test]
    fn the_least_bound_of_all_groups_above_holds() {
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".to_owned()),
            "/sys/fs/cgroup/a/memory.max" => Some("4096\n".to_owned()),
            "/sys/fs/cgroup/memory.max" => Some("8192\n".to_owned()),
            "/sys/fs/cgroup/memory/x/memory.limit_in_bytes" => Some("2048\n".to_owned()),
            _ => None,
        };
        assert_eq!(bound("0::/a/b\n", read), 4096);
        assert_eq!(bound("5:cpu:/a\n0::/\n", read), 8192);
        assert_eq!(bound("4:hugetlb,memory:/x/y\n0::/a\n", read), 2048);
        assert_eq!(bound("0::/c\n", |_| None), u64::MAX);
        assert_eq!(bound("5:cpu:/x\n\nnothing", read), u64::MAX);
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the system")]
    fn a_machine_has_memory() {
        assert!(memory_bytes() > 1 << 20);
    }
}
