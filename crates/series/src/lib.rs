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

mod extents;
mod leaf;
mod link;
mod node;
mod packer;
mod read;
mod tree;
mod visit;

pub use crate::extents::ExtentRecord;
pub use crate::leaf::sealed::Sealed;
pub use crate::link::Link;
pub use crate::packer::Packer;
pub use crate::read::candles::{Candle, CandleSize};
pub use crate::read::collect::Window;
pub use crate::read::cursor::{Cursor, Found};
pub use crate::read::filter::{Direction, ValueRange};
pub use crate::read::lines::Lines;
pub use crate::read::matching::Matching;
pub use crate::read::scan::{ReverseScan, Scan, Stretch, Vector};
pub use crate::read::view::{Row, View};
pub use crate::tree::cool::Cooling;
pub use crate::tree::series_tree::{PENDING_MAX, SeriesTree, Shape};
pub use crate::visit::check::{Check, Damage, Report};
pub use crate::visit::relocate::Moving;
pub use crate::visit::salvage::{LoneLeaf, leaf_rows, leaf_types, lone_leaf};
pub use crate::visit::walk::Walk;

#[cfg(test)]
mod tests;
