//! Import of files, in four stages: bytes, records, rows, series.
//!
//! ```text
//! source      a file, plain, gzipped or in zstd, or standard input; counts the bytes read
//! ahead       decompression on a thread of its own
//! record      CSV or JSON lines as records of texts
//! layout      roles of the columns: time, tags, values
//! field       a field as a text or a value, or null
//! number      lossless numbers, and the type in which a series stores them
//! blocks      splits the bytes where records end
//! rows        converts a record to a time, tags and values, or an error with its line number
//! advice      recognises inputs that cannot be imported as they are
//! texts       texts of rows, by number
//! local_times local times that clocks repeat or skip
//! batch       rows of a block
//! readers     converts blocks to batches on several threads
//! resolver    resolves repeated local times from the order of the rows
//! load        stores batches in series of a database
//! replaced    points that replace others, counted before a commit
//! progress    a progress bar on the terminal
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
