//! A second reader of the file format. It was written from the pages that docs/format.md lists and shares no code with
//! the engine: so it proves that the description suffices. It is simple and slow: it holds whole files in memory,
//! verifies the checksum of every byte, and decodes everything at once.
//!
//! ```text
//! export     everything in a file as text
//! series     leaves, nodes, records                statistics of rows                            (section 8)
//! delta      tail page and runs                                                                  (section 7)
//! chunk      encoded columns                       cold       pages of Pco                       (section 6)
//! topics, queue, bucket, containers                                               (sections 9.11 to 9.14)
//!                                                  message_text  these as text
//! relation   relations                         relation_cells  their cells                    (section 9.15)
//! document   values of messages                    parts      rows of such tables
//! runs       runs of hash tables and buffered tables                                        (sections 9.9, 9.10)
//! hash_table records and their index                                                             (section 9.9)
//! tag_index  series by metric and tags                                                           (section 9.8)
//! shown      bytes and lines as text
//! texts      strings, bytes and GUIDs of rows      catalog    names, schemas, types, policies    (section 9)
//! space      pages in use                                                                        (section 4)
//! table      ordered tables                                                                      (section 5)
//! image      pages of the newest state, the second file, pins                                    (section 4)
//! redo       the log                               head       superblock, meta records           (section 3)
//! block      headers and pointers                  bytes      numbers, checksums                 (section 2)
//! ```
//!
//! Damaged input gives an [`Error`], never a panic.

pub mod block;
pub mod bucket;
pub mod bytes;
pub mod catalog;
pub mod chunk;
pub mod cold;
pub mod containers;
pub mod delta;
pub mod document;
pub mod error;
pub mod export;
pub mod hash_table;
pub mod head;
pub mod image;
mod message_text;
mod parts;
pub mod queue;
pub mod redo;
pub mod relation;
pub mod relation_cells;
mod runs;
pub mod series;
mod shown;
pub mod space;
pub mod statistics;
pub mod table;
pub mod tag_index;
pub mod texts;
pub mod topics;

pub use error::{Error, Result};
pub use export::Contents;
pub use head::Meta;
pub use image::{Image, Pin};
