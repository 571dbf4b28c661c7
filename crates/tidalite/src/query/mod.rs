//! Questions beyond the rows of an interval: filters, records, many series at once, functions.
//!
//! ```text
//! filter, matching                             rows whose values lie in ranges
//! text_matches                                 rows by what their text says
//! candles                                      candlesticks
//! records                                      rows as structs
//! names                                        which metrics, tags, values and units there are
//! selection                                    Selection, Group: which series, and which belong together
//! units                                        nanoseconds to the unit of each series and back
//! windows, window_rows, fill                   windows of a group; of several metrics side by side; of gaps
//! merge, join                                  rows of many series in order of time; side by side
//! functions                                    rates, means, sums, row by row; leaders among series and values
//! ```

pub(crate) mod candles;
pub(crate) mod fill;
pub(crate) mod filter;
pub(crate) mod functions;
pub(crate) mod join;
pub(crate) mod matching;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod records;
pub(crate) mod selection;
pub(crate) mod text_matches;
pub(crate) mod units;
pub(crate) mod window_rows;
pub(crate) mod windows;
