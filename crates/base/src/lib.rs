//! Foundation shared by all crates: ids, checked little-endian access, checksums, named limits and the description of
//! damage. Depends on no other crate of the project.
//!
//! ```text
//! id        TxnId, SeriesId                         newtypes, so that they cannot be confused
//! bytes     get and put little-endian fields        the only place that slices headers
//! checksum  XXH3-64                                 pages, blocks, vectors
//! corrupt   Corrupt                                 item, address, found and expected value of damage
//! type_name names of types, as recorded with tables
//! varint    integers in a variable number of bytes
//! order     keys that sort like numbers, texts and tuples
//! prefetch  prefetching memory before it is used
//! limits    every bound on which several crates rely
//! worker    the threads of the library: named, woken, stopped and joined in one way
//! ```

mod bytes;
mod checksum;
mod corrupt;
mod id;
pub mod limits;
mod order;
mod prefetch;
mod type_name;
pub mod varint;
mod worker;

pub use bytes::{get_i64, get_u16, get_u32, get_u64, put_i64, put_u16, put_u32, put_u64};
pub use checksum::checksum;
pub use corrupt::Corrupt;
pub use id::{SeriesId, TxnId};
pub use order::{
    Ordered, Reversed, after_prefix, encode_bytes, json_integer_key, json_number_key, text_key,
};
pub use prefetch::{prefetch, prefetch_at};
pub use type_name::TypeName;
pub use worker::{Signal, Worker};
