//! Containers in memory: documents by time, without any index. Every question is answered by looking at all messages.
//!
//! ```text
//! document  size of an encoded document, and the numbers that go to the series
//! options   the options and the rules of thinning that containers of the workload have
//! table     Containers: messages, deletions, dropped containers, latest values
//! append    messages arrive
//! edit      messages are replaced, deleted and restored; containers are dropped and restored
//! due       messages that expire or are too many
//! thin      older messages become fewer
//! ledger    the content as rows of the ledger
//! lines     the answers that follow from the content, and the same answers of a snapshot
//! ```

pub(crate) mod append;
mod document;
mod due;
mod edit;
mod ledger;
mod lines;
pub(crate) mod options;
pub(crate) mod table;
mod thin;

pub(crate) use due::left_of;
pub(crate) use ledger::{add_rows, put_rows};
pub(crate) use lines::{answers, missing_row};
pub(crate) use table::{Containers, Key};
