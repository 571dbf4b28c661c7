//! The suite `harlinn`: the programs of the article, ours against its engine on LMDB.
//!
//! ```text
//! plan     the cases: series, rows, batches; the loop that writes them
//! digest   the consumer that touches every column
//! side     what a side can do; what every pass must come to
//! ours     Tidalite, by its public face
//! peer     the LMDB engine
//! run      rounds: ours and peer in turn, one file at a time
//! ```

mod digest;
mod ours;
mod peer;
mod plan;
mod run;
mod side;

pub(crate) use run::{Options, run};
