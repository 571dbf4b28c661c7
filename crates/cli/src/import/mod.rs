//! Files in: bytes, records, rows, series.
//!
//! ```text
//! source      a file, plain, gzipped or in zstd, or standard input; counts what was read
//! ahead       unpacking on a thread of its own
//! record      CSV or JSON lines as records of texts
//! layout      which column is the time, which are tags, which are values
//! field       a field as a text or a value, or nothing
//! number      numbers without a loss, and what a series of them stores
//! blocks      the bytes taken apart where records end
//! rows        a record becomes a time, tags and values, or a complaint with its line number
//! advice      what an input seems to be that cannot be used as it is
//! texts       texts of rows, by their numbers
//! local_times local times that clocks repeat or skip
//! batch       rows of a block
//! readers     blocks become batches on some threads
//! resolver    decides on local times that come twice, from the order of the rows
//! load        batches into series of a database
//! replaced    points that take the place of others, counted before a commit
//! progress    a bar on the terminal meanwhile
//! ```

pub(crate) mod advice;
pub(crate) mod ahead;
pub(crate) mod batch;
pub(crate) mod blocks;
pub(crate) mod field;
pub(crate) mod layout;
pub(crate) mod load;
pub(crate) mod local_times;
pub(crate) mod number;
pub(crate) mod progress;
pub(crate) mod readers;
pub(crate) mod record;
pub(crate) mod replaced;
pub(crate) mod resolver;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod texts;
