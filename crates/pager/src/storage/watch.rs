//! Where tests put a watcher around every storage that is opened, files too (`tidalite_testkit::watch`). Compiled in
//! with the feature `seeded-bugs` only; in a shipped build `watched` gives back the storage as it is.

use super::Storage;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "seeded-bugs")]
use std::sync::OnceLock;

/// A storage that is being opened.
#[cfg(feature = "seeded-bugs")]
pub struct Opened<'a> {
    /// It.
    pub storage: Arc<dyn Storage>,
    /// Its file; not one when it is no file.
    pub path: &'a Path,
    /// Nobody else has it open.
    pub first: bool,
}

#[cfg(feature = "seeded-bugs")]
static WRAP: OnceLock<fn(Opened<'_>) -> Arc<dyn Storage>> = OnceLock::new();

/// From now on each storage that this process opens is what `wrap` makes of it. The first call counts.
#[cfg(feature = "seeded-bugs")]
pub fn wrap_opened(wrap: fn(Opened<'_>) -> Arc<dyn Storage>) {
    WRAP.get_or_init(|| wrap);
}

/// As tests want to have it watched; without them it stays what it is. One that has an observer is watched already.
pub(crate) fn watched(storage: Arc<dyn Storage>, path: &Path, first: bool) -> Arc<dyn Storage> {
    #[cfg(feature = "seeded-bugs")]
    if let Some(wrap) = WRAP.get()
        && storage.observer().is_none()
    {
        return wrap(Opened {
            storage,
            path,
            first,
        });
    }
    let _ = (path, first);
    storage
}
