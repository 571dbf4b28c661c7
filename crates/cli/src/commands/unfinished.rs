//! A database that an import has created and not committed to: what a signal that ends the import leaves of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The file, until the first commit is about to be made.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unfinished(Arc<Mutex<Option<PathBuf>>>);

impl Unfinished {
    /// Removes this file, and its lock file, should Ctrl-C or another signal end the program before the first commit.
    pub(crate) fn watch(path: &Path) -> Self {
        let own = Self(Arc::new(Mutex::new(Some(path.to_owned()))));
        #[cfg(target_os = "linux")]
        own.listen();
        own
    }

    /// From now on the file stays, whatever happens.
    pub(crate) fn keep(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A signal that the caller of the program ignores, as `nohup` does, stays ignored. Only Linux tells which these are without a call
    /// of the C library, so elsewhere an empty database is left.
    #[cfg(target_os = "linux")]
    fn listen(&self) {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let ignored = ignored_signals();
        let signals = [SIGHUP, SIGINT, SIGTERM];
        let signals = signals
            .into_iter()
            .filter(|signal| ignored >> (signal - 1) & 1 == 0);
        let Ok(mut signals) = signal_hook::iterator::Signals::new(signals) else {
            return;
        };
        let own = self.clone();
        std::thread::spawn(move || {
            for signal in &mut signals {
                // Held to the end: no commit begins meanwhile.
                let mut path = own.0.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(path) = path.take() {
                    remove(&path);
                }
                // The program ends as it would have without this.
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
}

/// Removes a database and its lock file.
pub(crate) fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
    let mut lock = path.to_owned().into_os_string();
    lock.push("-lock");
    let _ = std::fs::remove_file(lock);
}

/// A bit for each signal that is ignored; all of them if that cannot be found out.
#[cfg(target_os = "linux")]
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(u64::MAX)
}
