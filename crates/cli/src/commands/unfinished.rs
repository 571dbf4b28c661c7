//! Removes a newly created database if a signal ends the import before the first commit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The path of the new database until its first commit begins; then `None`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfinished(Arc<Mutex<Option<PathBuf>>>);

impl Unfinished {
    /// From now on, removes this database and its lock file if Ctrl-C or another signal ends the program before the
    /// first commit.
    pub(crate) fn watch(path: &Path) -> Self {
        let own = Self(Arc::new(Mutex::new(Some(path.to_owned()))));
        #[cfg(target_os = "linux")]
        own.listen();
        own
    }

    /// Called before the first commit: from now on a signal does not remove the database.
    pub(crate) fn keep(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Handles the signals that end the program. Signals that the program's parent has set to be ignored, as `nohup`
    /// does, remain ignored. Only on Linux can these be listed without calling the C library; on other systems an empty
    /// database remains.
    #[cfg(target_os = "linux")]
    fn listen(&self) {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let signals = [SIGHUP, SIGINT, SIGTERM];
        let signals = signals.into_iter().filter(|signal| !is_ignored(*signal));
        let Ok(mut signals) = signal_hook::iterator::Signals::new(signals) else {
            return;
        };
        let own = self.clone();
        std::thread::spawn(move || {
            for signal in &mut signals {
                // The lock is held until the program ends, so that no commit can begin.
                let mut path = own.0.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(path) = path.take() {
                    remove(&path);
                }
                // The program then ends as it would have without this handler.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
}

/// Removes a database file and its lock file.
pub(crate) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let mut lock = path.to_owned().into_os_string();
    lock.push("-lock");
    let _ = std::fs::remove_file(lock);
}

/// True if this process ignores a signal, for example because its parent requested this.
#[cfg(target_os = "linux")]
pub(crate) fn is_ignored(signal: i32) -> bool {
    ignored_signals() >> (signal - 1) & 1 != 0
}

/// A bit mask of the signals that this process ignores, with all bits set if these cannot be determined.
#[cfg(target_os = "linux")]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(u64::MAX)
}
