//! The model: the expected content of the database as plain maps, and a digest that is computed from both model and
//! database.
//!
//! ```text
//! reading   how thoroughly a content is read
//! digest    parts of a content folded into one number
//! wide      series of many columns
//! hash      hash tables
//! buffered  buffered tables
//! relation  relations
//! messages  topics, a queue, a bucket and containers
//! clock     the time of leases and expiry
//! content   expected content of a database
//! database  content of a database, read through its public API
//! ```

mod buffered;
pub mod clock;
mod content;
mod database;
mod digest;
mod hash;
pub(crate) mod messages;
mod pairs;
mod reading;
mod relation;
pub mod wide;

pub use content::{Model, Rows, TOPICS};
pub use database::{Digests, digest_of, digest_of_snapshot, digests_of, model_of};
pub(crate) use hash::layout_of;
pub use hash::{Hash, VERSIONS};
pub use messages::Messages;
pub use pairs::Pairs;
pub use reading::Reading;
pub use relation::{HIDDEN, Relation};
