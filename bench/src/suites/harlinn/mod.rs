//! The suite `harlinn`: the programs of the article "An Ultrafast Light Timeseries Storage Engine", for Tidalite and
//! for the article's engine on LMDB.
//!
//! ```text
//! plan     the cases: series, rows, batches; the loop that writes them
//! digest   the consumer that touches every column
//! side     operations of a side; expected results of every pass
//! ours     Tidalite, through its public API
//! peer     the LMDB engine
//! run      rounds: both sides in turn, one file at a time
//! ```

mod digest;
mod ours;
mod peer;
mod plan;
mod run;
mod side;

pub(crate) use run::{Options, run};
