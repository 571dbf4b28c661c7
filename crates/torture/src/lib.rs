//! Programs and tests that try to break a database, with a limited number of attempts and a seed.
//!
//! ```text
//! arguments    `--name number`
//! model        the expected content as plain maps, and a digest computed on both sides
//! workload     seeded transactions over tables and series, applied to database and model
//! crash        power cuts after every operation of a recorded run, judged against the model
//! seeded       deliberate bugs, and how many seeds it takes to find them
//! flips        every single bit of a file, flipped
//! hostile      valid files changed under correct checksums; no panic, hang or memory exhaustion
//! powercut     real power cuts: ext4 on a FUSE disk that loses unflushed writes
//! inject       system calls of a real process that fail or kill it, through strace
//! kills        readers and writers killed and frozen at random instants
//! long_reader  file size while one snapshot is held during many overwrites
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
