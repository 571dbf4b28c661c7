//! Ordered tables: copy-on-write B+trees on slotted pages.
//!
//! ```text
//! page        the bytes of one page
//!  ├ layout       page layout: header, slots, cells, tags; its invariants
//!  ├ header       the checked header fields
//!  ├ key          keys, and the rest of a key that is too long for a page
//!  ├ overflow     large values and long keys in extents of their own
//!  ├ node, search, point_get, row       reading: a page as a whole, searching a key, point gets, scans
//!  ├ edit         changing a page in place
//!  ├ entries      entries taken out of pages: sizes, split points, writing them back
//!  ├ row_count    the number of rows that an entry stands for
//! └ prefetch, read_ahead    fetching bytes into the processor's cache, and pages from the file
//! value       Value, Stored                inline in the leaf, or in an extent
//! inline      a nested table (inline_table) or a set (packed_set, fixed_width) inside a leaf cell
//! table       the B+tree
//!  ├ tree         Tree: root, height, count, id           a catalog stores it in 64 bytes
//!  ├ get, get_many, cached_get        point lookups: of one key, of many, with a path from an earlier lookup
//!  ├ path         descent paths, and copying their pages for the transaction
//!  ├ insert       in place, redistribute (with a neighbour), sequential, split
//!  ├ remove       merge, rebalance, reduce the height; range_delete cuts branches off
//!  └ free         freeing the extents and pages below rows and branches
//! bulk        ascending rows: leaf by leaf (append, leaf_builder), one by one (append_cursor)
//! cursor      Cursor (tree_cursor)         seeks with all five relations, both directions
//!  ├ forward, steps, row_key          steps in a leaf and from leaf to leaf
//!  ├ prefetcher, sequential_range     leaves read ahead of a scan
//!  └ select       rows by number, and keys that divide a table into equal parts
//! nested      TableReader, TableWriter: a table in pages or in a cell (table_repr), and changes between them (conversion);
//!             parts: tables under keys of one byte
//! sets        tables of sets: PairWriter (set_table), PairCursor (set_cursor), Values; append, append_cursor
//! visit       whole tables: check (every rule of the format), walk, relocate, stat, read_leaves
//! ```
//!
//! ```text
//!                  ┌──────────────────────────────┐
//!          branch  │ (-inf)·40  "k"·37  "ta"·52   │   separator · rows below
//!                  └────┬─────────┬────────┬──────┘
//!            ┌──────────┘         │        └──────────┐
//!     leaf  a..j                 k..sz              ta..zz  ──> extent of a large value
//! ```
//!
//! A tree is a small `Copy` value; an operation on it takes a page reader or a page writer. The caller
//! stores the value: in a catalog, in the meta block, in another tree.
//!
//! Errors are the pager's `Error`. This crate itself creates `Corrupt`, `Limit`, `IsTable` and `Refused`.

mod bulk;
mod cursor;
mod error;
mod inline;
mod nested;
mod page;
mod sets;
mod table;
mod value;
mod visit;

pub use bulk::append::PutRow;
pub use bulk::append_cursor::AppendCursor;
pub use cursor::tree_cursor::Cursor;
pub use nested::parts::{change_part, part};
pub use nested::table_reader::TableReader;
pub use nested::table_writer::{MissingTable, TableWriter};
pub use page::key::KEY_BYTES_MAX;
pub use page::layout::key_bytes_max;
pub use page::overflow::{Chunks, PageSlice, VALUE_BYTES_MAX, VALUE_CHUNK_BYTES};
pub use sets::set_cursor::PairCursor;
pub use sets::set_table::{AllowedPosition, PairWriter};
pub use sets::values::Values;
pub use table::cached_get::{CachedLookup, CachedPath};
pub use table::tree::{DEPTH_MAX, HEIGHT_MAX, TREE_BYTES, Tree};
pub use tidalite_pager::{Error, Result};
pub use value::Value;
pub use visit::check::{Damage, UsedPages};
pub use visit::relocate::Relocation;
pub use visit::stat::TableShape;
pub use visit::walk::{OnRange, PageVisitor, VisitedPage};

#[cfg(test)]
mod tests;
