//! Programs and tests that try to break a database, with a budget and a seed.
//!
//! ```text
//! model      plain maps, and a digest that model and database share
//! workload   seeded transactions over tables and series
//! table_work  those of them that use the rarer calls of tables
//! appending  those of them that are lent to appenders
//! wide       those with series of many columns, and what the model has of them
//! turns      those that feed series in turn while other threads encode
//! questions  a few queries, answered by the model too
//! crash      power cuts after every operation of a recorded run, judged against the model
//! flips      every single bit of a file, flipped
//! seeded     deliberate bugs, and how many seeds it takes to find them
//! hostile    sound files changed under right checksums; nothing may panic, hang or take memory
//! inject     system calls of a real process that fail or kill it, by strace
//! kills      readers and writers killed and frozen at random instants
//! ledger     numbered transactions for a process that writes, and the oracle that knows what each leaves
//! powercut   real power cuts: ext4 on a disk behind FUSE that loses what was not flushed
//! long_reader  one snapshot held during many overwrites: what the file keeps
//! arguments  `--name number`
//! ```

mod appending;
pub mod arguments;
pub mod crash;
pub mod flips;
pub mod hostile;
pub mod inject;
pub mod kills;
pub mod ledger;
pub mod long_reader;
pub mod model;
pub mod powercut;
mod questions;
pub mod seeded;
mod table_work;
mod turns;
pub mod wide;
pub mod workload;
