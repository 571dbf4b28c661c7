//! Containers: messages of many sources, each a document with fields, ordered by time.
//!
//! ```text
//! name          the name of a container's series
//! rows          rows of that series: the numbers of messages
//! open          containers of a snapshot and of a write transaction
//! read          Containers: messages, latest values, totals
//! found         filters, and the messages that queries find
//! compare       compares the rows of series with the messages
//! follow        keeps the rows of a container's series in step with its messages
//! append        ContainersMut: appends messages
//! edit          ContainersMut: replaces, deletes and restores messages
//! manage        ContainersMut: creates, renames and drops containers; maintenance
//! mend          makes series match the messages that a salvage has found
//! thin          ContainersMut: replaces older messages by fewer ones
//! aggregate     figures of fields, by steps of time and by values of a field
//! hand_over     moves messages of a queue to containers
//! ```
//!
//! Invariants
//! 1. The series of a container has a row for each stored message with a number, with the numbers that fit its columns.
//!    It changes in the call that changes the messages.
//! 2. The messages are the truth: rows are made from them, and never read to find a message.

pub(crate) mod aggregate;
pub(crate) mod append;
pub(crate) mod compare;
pub(crate) mod edit;
pub(crate) mod follow;
pub(crate) mod found;
pub(crate) mod hand_over;
pub(crate) mod manage;
pub(crate) mod mend;
pub(crate) mod name;
pub(crate) mod open;
pub(crate) mod read;
pub(crate) mod rows;
pub(crate) mod thin;
