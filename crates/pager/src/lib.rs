//! One file: pages, extents, snapshots, commit, durability, check.
//!
//! ```text
//! ptr       Ptr: address, length, checksum, birth   a Merkle pointer, 32 bytes
//! header    the 32 bytes that begin every page and block
//! pages     PageRead, PageWrite                     what the structures above see
//! error     Error
//! ```

mod error;
mod header;
mod pages;
mod ptr;

pub use error::{Error, Result};
pub use header::{HEADER_BYTES, Header, Kind, seal_block, verify_block};
pub use pages::{Counters, Extent, PageRead, PageRef, PageWrite};
pub use ptr::{PTR_BYTES, Ptr};
