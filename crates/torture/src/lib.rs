//! Programs and tests that try to break a database, with a budget and a seed.
//!
//! ```text
//! model      plain maps, and a digest that model and database share
//! workload   seeded transactions over tables and series
//! crash      power cuts after every operation of a recorded run, judged against the model
//! flips      every single bit of a file, flipped
//! seeded     deliberate bugs, and how many seeds it takes to find them
//! ```

pub mod crash;
pub mod flips;
pub mod model;
pub mod seeded;
pub mod workload;
