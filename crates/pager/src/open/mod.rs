//! Opens and closes a file, and defines the public handle of an open file.

pub(crate) mod data_file;
pub(crate) mod flusher;
pub(crate) mod handle;
pub(crate) mod inspect;
pub(crate) mod open_pager;
pub(crate) mod recover;
pub(super) mod unsynced_state;
