//! Objects: named byte sequences of any size, stored in buckets.
//!
//! ```text
//! parts          the tables of a bucket
//! keys           keys of these tables, the division of contents into chunks
//! fields         decoding of rows
//! content_hash   the hash of an object
//! options, state, attributes, manifest, upload     rows
//! condition      conditions of changes, and their outcomes
//! read, cursor, list, verify                       reading
//! bucket         a bucket in a write transaction
//! chunks         storing, sharing and freeing contents
//! room           limits and rotation; replacing an object
//! uploads        begin, extend and abort an upload; append, multipart: add bytes; complete: create the object
//! put            putting an object from memory or from a stream
//! change         delete, rename, copy, attributes
//! links          random ids under which objects can be read
//! maintain       expiry, abandoned uploads, freeing chunks, in bounded steps
//! check          checks every rule of the format
//! recover        rebuilding a bucket after a loss
//! ```
//!
//! ```text
//! name ──> manifest: content id, size, hash ──> chunks: content id, 0 .. n - 1
//! ```
//!
//! Invariants:
//! 1. Contents never change. An object is replaced by a manifest with another content id, which is stored after the
//!    chunks. So readers see the old contents or the new ones.
//! 2. All chunks of the same contents have the same size, except the last one, which may be shorter but not empty.
//! 3. An object that expires and is not protected has a row in the order of expiry; an object that is not protected has
//!    one in the order of age.
//! 4. Every chunk belongs to an object, an upload or an orphan (`chunks.rs`).

pub(crate) mod append;
pub(crate) mod attributes;
pub(crate) mod bucket;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod chunks;
pub(crate) mod complete;
pub(crate) mod condition;
pub(crate) mod content_hash;
pub(crate) mod cursor;
pub(crate) mod fields;
pub(crate) mod keys;
pub(crate) mod leaves;
pub(crate) mod links;
pub(crate) mod list;
pub(crate) mod maintain;
pub(crate) mod manifest;
pub(crate) mod multipart;
pub(crate) mod options;
pub(crate) mod parts;
pub(crate) mod put;
pub(crate) mod read;
pub(crate) mod recover;
pub(crate) mod room;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod upload;
pub(crate) mod uploads;
pub(crate) mod verify;
