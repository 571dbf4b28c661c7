//! Topics, a queue, a bucket of objects and containers of documents in the model.
//!
//! ```text
//! topics    retained messages and the feed of changes
//! queue     messages and their states in each group; queue_groups: time, purges, groups
//! bucket    objects and uploads
//! containers/  containers of documents with their series
//! state     all of them together
//! row       rows of the ledger
//! ledger    state that the database does not tell, as rows of an ordinary table
//! expected  the answers that follow from the model
//! answers   the same answers, read from a snapshot
//! ```

mod answers;
pub(crate) mod bucket;
pub(crate) mod containers;
mod expected;
mod ledger;
pub(crate) mod queue;
mod queue_groups;
mod row;
pub(crate) mod state;
pub(crate) mod topics;

pub(crate) use answers::{add_to_model, answers};
pub(crate) use ledger::LEDGER;
pub(crate) use ledger::rows_of;
pub use state::Messages;
pub(crate) use state::{BROKER, DEVICES, FILES, JOBS};
