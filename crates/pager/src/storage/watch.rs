//! Where tests put a watcher around every storage that is opened, files too (`tidalite_testkit::watch`). Compiled in
//! with the feature `seeded-bugs` only; a shipped build holds none of this.

use super::Storage;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// A storage that is being opened.
pub struct Opened<'a> {
    /// It.
    pub storage: Arc<dyn Storage>,
    /// Its file; not one when it is no file.
    pub path: &'a Path,
    /// Nobody else has it open.
    pub first: bool,
}

static WRAP: OnceLock<fn(Opened<'_>) -> Arc<dyn Storage>> = OnceLock::new();

/// From now on each storage that this process opens is what `wrap` makes of it. The first call counts.
pub fn wrap_opened(wrap: fn(Opened<'_>) -> Arc<dyn Storage>) {
    WRAP.get_or_init(|| wrap);
}

/// One that has an observer is watched already.
pub(crate) fn wrapped(opened: Opened<'_>) -> Arc<dyn Storage> {
    match WRAP.get() {
        Some(wrap) if opened.storage.observer().is_none() => wrap(opened),
        _ => opened.storage,
    }
}
