//! Topics, a queue and a bucket of objects in the model.
//!
//! ```text
//! topics    retained messages and the feed of changes
//! queue     messages and their states in each group; queue_groups: time, purges, groups
//! bucket    objects and uploads
//! state     all of them together
//! ledger    state that the database does not tell, as rows of an ordinary table
//! expected  the answers that follow from the model
//! answers   the same answers, read from a snapshot
//! ```

mod answers;
pub(crate) mod bucket;
mod expected;
mod ledger;
pub(crate) mod queue;
mod queue_groups;
pub(crate) mod state;
pub(crate) mod topics;

pub(crate) use answers::{add_to_model, answers};
pub(crate) use ledger::LEDGER;
pub(crate) use ledger::rows_of;
pub use state::Messages;
pub(crate) use state::{BROKER, FILES, JOBS};
