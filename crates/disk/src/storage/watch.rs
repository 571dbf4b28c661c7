//! Lets tests wrap every storage that is opened, files too, in an observer (`tidalite_testkit::watch`). Compiled only
//! with the feature `seeded-bugs`; in a shipped build `watched` returns the storage unchanged.

use super::Storage;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "test-hooks")]
use std::{cell::Cell, sync::OnceLock};

/// A storage that is being opened.
#[cfg(feature = "test-hooks")]
pub struct Opened<'a> {
    /// The storage.
    pub storage: Arc<dyn Storage>,
    /// Path of the storage's file. It does not denote a file if the storage is not one.
    pub path: &'a Path,
    /// Whether no other handle has the storage open.
    pub first: bool,
}

#[cfg(feature = "test-hooks")]
static WRAP: OnceLock<fn(Opened<'_>) -> Arc<dyn Storage>> = OnceLock::new();

/// From now on, `wrap` wraps each storage that this process opens. Only the first call has an effect.
#[cfg(feature = "test-hooks")]
pub fn wrap_opened(wrap: fn(Opened<'_>) -> Arc<dyn Storage>) {
    WRAP.get_or_init(|| wrap);
}

/// A function that makes a storage around the given one. It may pass calls on or handle them itself.
#[cfg(feature = "test-hooks")]
type Wrapper = fn(Arc<dyn Storage>) -> Arc<dyn Storage>;

#[cfg(feature = "test-hooks")]
thread_local! {
    static WRAP_HERE: Cell<Option<Wrapper>> = const { Cell::new(None) };
}

/// From now on, `wrap` wraps each storage that this thread opens, outside all other wrappers; `None` ends that.
#[cfg(feature = "test-hooks")]
pub fn wrap_opened_here(wrap: Option<Wrapper>) {
    WRAP_HERE.set(wrap);
}

/// Wraps the storage in an observer if a test requested it (`wrap_opened`). A storage that already has an observer gets
/// no second one.
pub fn watched(storage: Arc<dyn Storage>, path: &Path, first: bool) -> Arc<dyn Storage> {
    #[cfg(feature = "test-hooks")]
    let storage = {
        let storage = match WRAP.get() {
            Some(wrap) if storage.observer().is_none() => wrap(Opened {
                storage,
                path,
                first,
            }),
            _ => storage,
        };
        match WRAP_HERE.get() {
            Some(wrap) => wrap(storage),
            None => storage,
        }
    };
    let _ = (path, first);
    storage
}
