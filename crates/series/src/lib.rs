//! Series of measurements: packed compressed leaves under a tree that carries statistics.
//!
//! ```text
//! row         Row
//! link        pointer, span, count                  72 bytes
//! leaf        up to 16 vectors of 1024 rows         directory, payloads
//!  ├ layout, directory, entry, capacity     the byte format
//!  ├ reader, stats                          Leaf: vectors, and their statistics without decoding
//!  ├ writer, open_vector, assemble, cold    OpenLeaf: encodes rows into leaf bytes; cold form
//!  └ encoded                                vectors encoded by any thread before their leaf is known
//! node        a spine of links, separate statistics     an extent of its own
//! extents     live bytes per extent                     an ordered table
//! packer      a transaction's stream of leaves      extents of up to 1 MiB, 64-byte aligned
//! tree        SeriesTree (series_tree): link, delete, save      the decoded record and the changes to it
//!  ├ record       the stored record of a series     types, root, up to 8 pending links
//!  ├ edit         copy-on-write from leaf to root   merge, split, range delete
//!  ├ link_encoded  links vectors that other threads encoded
//!  ├ leaf_cursor  iterates over links to leaves
//!  ├ walk         visits nodes and links            for check, salvage, relocation and cold form
//!  └ cool         rewrites old leaves in cold form  joined, and smaller
//! read        View: vectors, cursor, aggregate,     the tree merged with the late rows
//!             windows, candles, filter, count
//! visit       check: every rule of the format, every byte; relocate; salvage: leaves around damage, and leaves
//!             without a tree; diff: the difference between two versions
//! ```
//!
//! ```text
//!  record ──root──> node ──> node ──> leaf leaf leaf ...      a node: begin, end, count and
//!     └──pending──────────────────────────────> leaf leaf     column statistics for each link
//!  late rows (from the delta, passed in by the caller)  · ·· ·  ·
//! ```
//!
//! The caller stores the records, the root of the extents table and the delta (rows that are in no leaf yet). Errors
//! are the pager's `Error`.

mod extents;
mod leaf;
mod link;
mod node;
mod packer;
mod read;
mod row;
mod tree;
mod visit;

pub use extents::ExtentRecord;
pub use leaf::encoded::EncodedVectors;
pub use link::Link;
pub use packer::Packer;
pub use read::candles::{Candle, CandleSize};
pub use read::collect::{Window, WindowGrid};
pub use read::cursor::{Cursor, Found};
pub use read::filter::{Direction, ValueRange};
pub use read::lines::Lines;
pub use read::matching::Matching;
pub use read::scan::{ReverseScan, Scan};
pub use read::vector::{NextRows, Vector};
pub use read::view::View;
pub use row::Row;
pub use tree::cool::{Cooling, KeptHot};
pub use tree::series_tree::{PENDING_MAX, SeriesTree};
pub use visit::check::{Check, Damage, Report};
pub use visit::relocate::Moving;
pub use visit::salvage::{OrphanLeaf, ReachableLeaves, leaf_rows, leaf_types, orphan_leaf};

#[cfg(test)]
mod tests;
