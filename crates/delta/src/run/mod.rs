//! Runs on disk: blocks of rows, the directory that lists them, the tail page of the newest rows.

pub(crate) mod block;
pub(crate) mod cursor;
pub(crate) mod descriptor;
pub(crate) mod directory;
pub(crate) mod tail;
pub(crate) mod writer;
