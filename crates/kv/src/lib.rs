//! Ordered tables: copy-on-write B+trees on slotted pages.
//!
//! ```text
//! tree      Tree: root, height, count, id           what a catalog stores of a table (64 bytes)
//!  ├ insert    put, append                          descent, in-place edit, split, new root
//!  ├ remove    remove, remove_range, clear          descent, edit, merge or even out, lower root
//!  └ seal      checksums bottom-up before a commit
//! cursor    Cursor                                  seeks with all five relations, both directions
//! range     Range                                   double-ended iterator of known length
//! value     Value                                   inline, or chunks of an extent
//! check     Claim, Damage                           every rule of the format, every page reached
//! walk      Walk, PageAt                            page by page, by birth, around damage
//!
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

mod check;
mod cursor;
mod edit;
mod group;
mod insert;
mod node;
mod range;
mod remove;
mod tree;
mod value;
mod walk;

pub use check::{Claim, Damage};
pub use cursor::Cursor;
pub use node::key_bytes_max;
pub use range::Range;
pub use tidalite_pager::{Error, Result};
pub use tree::{HEIGHT_MAX, TREE_BYTES, Tree};
pub use value::{Chunks, Piece, VALUE_BYTES_MAX, VALUE_CHUNK_BYTES, Value};
pub use walk::{PageAt, Walk};

#[cfg(test)]
mod tests;
