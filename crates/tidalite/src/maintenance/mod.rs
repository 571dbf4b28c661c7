//! Work on a whole database.
//!
//! ```text
//! watch                  progress, pace, cancelling
//! check                  everything that is reached is sound
//! salvage                what is intact of a damaged file
//! copy, read_ahead       a packed copy; leaves read ahead for it
//! backup                 streams of pages, and the file that is made of them
//! compact, close         the file gets shorter
//! retention, policies    policies for what is kept; removing what is not
//! cold                   old leaves in cold form
//! diff                   what changed between two versions
//! stat, page_map         figures; which structure takes which pages
//! ```

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod close;
pub(crate) mod cold;
pub(crate) mod compact;
pub(crate) mod copy;
pub(crate) mod diff;
pub(crate) mod page_map;
pub(crate) mod policies;
pub(crate) mod read_ahead;
pub(crate) mod retention;
pub(crate) mod salvage;
pub(crate) mod stat;
pub(crate) mod watch;
