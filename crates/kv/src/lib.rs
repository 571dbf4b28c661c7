//! Ordered tables: copy-on-write B+trees on slotted pages.
//!
//! ```text
//! tree      Tree: root, height, count, id           what a catalog stores of a table (64 bytes)
//!  ├ get       get, contains                        the way of one key down, through lent pages
//!  ├ insert    put                                  descent, in-place edit, split, new root
//!  ├ ending    insert_near_end                      ascending rows, one by one
//!  ├ append    append                               ascending rows, leaf by leaf (filling)
//!  ├ remove    remove, clear                        descent, edit, merge or even out, lower root
//!  ├ cut       remove_range                         branches cut off
//!  ├ batch     get_many, split, append, reserve     many keys, places
//!  ├ share     full leaves and their neighbours     two share, two become three
//!  └ seal      checksums bottom-up before a commit
//! cursor    Cursor                                  seeks with all five relations, both directions
//! work, sub  Work, Absent, Sub                  a table, nested or not, for changing and for reading
//! pairs     Pairs, PairCursor (pair_cursor)         multi-values: a set under each key
//!  ├ pair_ending  append                            ascending pairs, one by one
//!  └ pair_append  extend                            ascending pairs, set by set
//! sets      Values                                  of many keys; the places of pairs
//! packed    a place in a set that lies in its row
//!  └ even    its values: keys of one length
//! range     Range                                   double-ended iterator of known length
//! value     Value                                   inline, or chunks of an extent
//! check     Claim, Damage                           every rule of the format, every page reached
//! leaves    read_leaves                          ahead of who comes for the rows
//! ahead     Runs                                 pages asked for ahead, those side by side in one call
//! walk      Walk, PageAt                            page by page, by birth, around damage
//! way       Way, Again                              a get that remembers the pages it went through
//! stat      TableShape                              levels, and pages by what they hold
//!
//! key       keys that are too long for a page
//! small     a nested table inside a leaf cell
//! node      the bytes of a page: reading            header, heads, offsets, cells, search
//! edit      the bytes of a page: changing in place
//! group     entries taken out of pages: sizes, split points, writing them back
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
//! keeps the value: in a catalog, in the meta block, in another tree.
//!
//! Errors are the pager's: this room adds no failure of its own, only `Corrupt` and `Limit`.

mod bulk;
mod cursor;
mod inline;
mod nested;
mod page;
mod sets;
mod table;
mod value;
mod visit;

pub use bulk::append::PutRow;
pub use bulk::append_cursor::Ending;
pub use cursor::range::Range;
pub use cursor::tree_cursor::Cursor;
pub use nested::table_reader::Sub;
pub use nested::table_writer::{Absent, Work};
pub use page::key::KEY_BYTES_MAX;
pub use page::node::key_bytes_max;
pub use sets::set_cursor::PairCursor;
pub use sets::set_table::Pairs;
pub use sets::values::Values;
pub use table::cached_get::{Again, Way};
pub use table::tree::{DEPTH_MAX, HEIGHT_MAX, TREE_BYTES, Tree};
pub use tidalite_pager::{Error, Result};
pub use value::{Chunks, Piece, VALUE_BYTES_MAX, VALUE_CHUNK_BYTES, Value};
pub use visit::check::{Claim, Damage};
pub use visit::relocate::Relocation;
pub use visit::stat::TableShape;
pub use visit::walk::{OnRange, PageAt, Walk};

#[cfg(test)]
mod tests;
