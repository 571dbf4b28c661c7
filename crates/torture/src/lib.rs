//! Programs and tests that try to break a database, with a budget and a seed.
//!
//! ```text
//! arguments    `--name number`
//! model        plain maps, and a digest that model and database share
//! workload     seeded transactions over tables and series, applied to the model too
//! crash        power cuts after every operation of a recorded run, judged against the model
//! seeded       deliberate bugs, and how many seeds it takes to find them
//! flips        every single bit of a file, flipped
//! hostile      sound files changed under right checksums; nothing may panic, hang or take memory
//! powercut     real power cuts: ext4 on a disk behind FUSE that loses what was not flushed
//! inject       system calls of a real process that fail or kill it, by strace
//! kills        readers and writers killed and frozen at random instants
//! long_reader  one snapshot held during many overwrites: what the file keeps
//! ```

pub mod arguments;
pub mod crash;
pub mod flips;
pub mod hostile;
pub mod inject;
pub mod kills;
pub mod long_reader;
pub mod model;
pub mod powercut;
pub mod seeded;
pub mod workload;
