//! Containers: messages of many sources, each a document with fields, ordered by time.
//!
//! ```text
//! name          the series of a container
//! rows          rows of that series: the numbers of messages
//! open          containers of a snapshot and of a write transaction
//! read          Containers: messages, latest values, totals
//! found         a message that was found
//! compare       the rows of a series are compared with the messages
//! follow        the rows of a container's series follow its messages
//! append        ContainersMut: messages are appended
//! edit          ContainersMut: messages are replaced, deleted, restored
//! manage        ContainersMut: containers are created, renamed, dropped; maintenance
//! mend          the series of containers that a salvage has found
//! thin          ContainersMut: older messages become fewer
//! aggregate     figures of fields over steps of time, and over values of a field
//! hand_over     messages of a queue go to containers
//! ```
//!
//! Invariants
//! 1. The series of a container has a row for each stored message with a number, with the numbers that fit its columns. It
//!    changes in the call that changes the messages.
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
