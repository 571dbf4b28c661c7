//! Opening and closing a file, and its public handle.

pub(crate) mod data_file;
pub(crate) mod flusher;
pub(crate) mod handle;
pub(crate) mod inspect;
pub(crate) mod open_pager;
pub(crate) mod recover;
pub(super) mod unsynced_state;
