//! The delta on disk: runs with their blocks of rows and directories, and the tail page with the newest rows.

pub(crate) mod block;
pub(crate) mod cursor;
pub(crate) mod descriptor;
pub(crate) mod directory;
pub(crate) mod tail;
pub(crate) mod writer;
