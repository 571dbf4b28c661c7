//! Import of files, in four stages: bytes, records, rows, series.
//!
//! ```text
//! source      a file, plain, gzipped or in zstd, or standard input; counts the bytes read
//! ahead       decompression on a thread of its own
//! typed_file  Parquet and Arrow as records of CSV with types (feature sql)
//! encoding    text in other encodings as UTF-8
//! json_values JSON arrays, and objects over several lines, as one value per line
//! head        lines before the names of the columns, and units after them
//! record      CSV or JSON lines as records of texts
//! options     the options of an import, as its parts need them
//! open        recognises the format of an input, and reads a sample
//! table       the sample as a table
//! time_columns, dates  the column with the time, and formats of dates
//! digits      decimal commas and separators of thousands
//! layout      roles of the columns: time, tags, values
//! given       the types that an input gives its columns
//! field       a field as a text or a value, or null
//! number      lossless numbers, and the type in which a series stores them
//! file_tags   tags that the user gives, or that are in the name of a file
//! report      the columns of an input for a dry run
//! blocks      splits the bytes where records end
//! rows        converts a record to a time, tags and values, or an error with its line number
//! known_series lines without names into a series that exists
//! line_rows   converts lines of the line protocol to rows
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
pub(crate) mod dates;
pub(crate) mod digits;
pub(crate) mod encoding;
pub(crate) mod field;
pub(crate) mod file_tags;
pub(crate) mod given;
pub(crate) mod head;
pub(crate) mod json_values;
pub(crate) mod known_series;
pub(crate) mod layout;
pub(crate) mod line_rows;
pub(crate) mod load;
pub(crate) mod local_times;
pub(crate) mod number;
pub(crate) mod open;
pub(crate) mod options;
pub(crate) mod progress;
pub(crate) mod readers;
pub(crate) mod record;
pub(crate) mod replaced;
pub(crate) mod report;
pub(crate) mod resolver;
pub(crate) mod rows;
pub(crate) mod source;
pub(crate) mod table;
pub(crate) mod texts;
pub(crate) mod time_columns;
#[cfg(feature = "sql")]
pub(crate) mod typed_file;
