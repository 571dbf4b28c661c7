//! Test hook that wraps every storage that is opened, including files, in an observer (`tidalite_testkit::watch`).
//! Without the feature `test-hooks`, `watched` returns the storage unchanged.

use super::Storage;
use std::path::Path;
use std::sync::Arc;
#[cfg(feature = "test-hooks")]
use std::{cell::Cell, sync::OnceLock};

/// A storage that is just being opened, for the function that wraps it.
#[cfg(feature = "test-hooks")]
pub struct Opened<'a> {
    /// The storage to wrap.
    pub storage: Arc<dyn Storage>,
    /// Path of the data file. If the storage is not a file, no file need exist at this path.
    pub path: &'a Path,
    /// Whether no other handle has the storage open.
    pub first: bool,
}

#[cfg(feature = "test-hooks")]
static WRAP: OnceLock<fn(Opened<'_>) -> Arc<dyn Storage>> = OnceLock::new();

/// Makes this process wrap each storage that it opens from now on with `wrap`. Only the first call has an effect.
#[cfg(feature = "test-hooks")]
pub fn wrap_opened(wrap: fn(Opened<'_>) -> Arc<dyn Storage>) {
    WRAP.get_or_init(|| wrap);
}

/// Function that returns a storage around the given storage. The returned storage may pass calls on or handle them
/// itself.
#[cfg(feature = "test-hooks")]
type Wrapper = fn(Arc<dyn Storage>) -> Arc<dyn Storage>;

#[cfg(feature = "test-hooks")]
thread_local! {
    static WRAP_HERE: Cell<Option<Wrapper>> = const { Cell::new(None) };
}

/// Makes this thread wrap each storage that it opens from now on with `wrap`, outside of all other wrappers; `None`
/// ends the wrapping.
#[cfg(feature = "test-hooks")]
pub fn wrap_opened_here(wrap: Option<Wrapper>) {
    WRAP_HERE.set(wrap);
}

/// Wraps a storage that is being opened if a test requested this (`wrap_opened`, `wrap_opened_here`). A storage that
/// already has an observer gets no second observer.
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
