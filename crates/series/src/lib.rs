//! Series of measurements: packed compressed leaves under a tree that carries statistics.
//!
//! ```text
//! record      what is stored of a series            types, root, up to 8 links that wait
//! tree        SeriesTree: link, delete, save        the decoded record and the changes to it
//!  └ edit     copy-on-write from leaf to root       merge, split, cut
//! node        a spine of links, statistics apart    an extent of its own
//! link        pointer, span, count                  72 bytes
//! leaf        up to 16 vectors of 1024 rows         directory, payloads
//! packer      a transaction's stream of leaves      extents of up to 1 MiB, 64-byte aligned
//! sealed      vectors encoded before their leaf is known, by any thread
//! extents     how much of each extent is alive      an ordered table
//! read        View: vectors, cursor, aggregate,     the tree and the late rows as one
//!             windows, candles, filter, count
//! cold        old leaves in cold form               joined, and smaller
//! walk        Walk: by links, around damage; what differs between two versions
//! salvage     leaves without a tree
//! check       every rule of the format, every byte
//! ```
//!
//! ```text
//!  record ──root──> node ──> node ──> leaf leaf leaf ...      a node: begin, end, count and a
//!     └──waiting──────────────────────────────> leaf leaf     column's statistics for each link
//!  late rows (the front's, given by the caller)  · ·· ·  ·
//! ```
//!
//! The caller keeps the records, the root of the extents table and the front. Errors are the pager's.

mod check;
mod cold;
mod edit;
mod extents;
mod leaf;
mod link;
mod node;
mod packer;
mod read;
mod record;
mod relocate;
mod salvage;
mod sealed;
mod tree;
mod walk;

pub use check::{Check, Damage, Report};
pub use cold::Cooling;
pub use extents::ExtentRecord;
pub use link::Link;
pub use packer::Packer;
pub use read::candles::{Candle, CandleSize};
pub use read::collect::Window;
pub use read::cursor::{Cursor, Found};
pub use read::filter::{Direction, ValueRange};
pub use read::lines::Lines;
pub use read::matching::Matching;
pub use read::scan::{ReverseScan, Scan, Stretch, Vector};
pub use read::{Row, View};
pub use relocate::Moving;
pub use salvage::{LoneLeaf, leaf_rows, leaf_types, lone_leaf};
pub use sealed::Sealed;
pub use tree::{PENDING_MAX, SeriesTree, Shape};
pub use walk::Walk;

#[cfg(test)]
mod tests;
