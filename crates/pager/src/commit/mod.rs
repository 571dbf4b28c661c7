//! The path of a commit until it is durable: the newest meta record, the redo log, and the pipeline that flushes
//! commits.

pub(crate) mod files;
pub(crate) mod found;
pub(crate) mod heal;
pub(crate) mod lost_commits;
pub(crate) mod metrics;
pub(crate) mod page_reads;
pub(crate) mod pipeline;
pub(crate) mod redo;
pub(crate) mod second_file;
pub(crate) mod shared;
pub(crate) mod unwritten_pages;
pub(crate) mod verified_pages;
pub(crate) mod versions;
