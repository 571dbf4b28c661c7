//! Queries beyond the rows of an interval: filters, records, many series at once, functions.
//!
//! ```text
//! text_matches                                 rows by their text
//! candles                                      candlesticks
//! records                                      rows as structs
//! names                                        metrics, tags, values and units in use
//! selection, many                              Selection: chosen series; SelectionQuery: their query, grouped
//! units                                        nanoseconds to the unit of each series and back
//! windows, window_rows, fill                   windows of a group; of several metrics side by side; gap filling
//! combine, history                             figures of parts; windows across the border of downsampling
//! merge, join                                  rows of many series in order of time; side by side
//! functions                                    rates, means, sums, row by row; leaders among series and values
//! ```

pub(crate) mod candles;
pub(crate) mod combine;
pub(crate) mod fill;
pub(crate) mod functions;
pub(crate) mod history;
pub(crate) mod join;
pub(crate) mod many;
pub(crate) mod merge;
pub(crate) mod names;
pub(crate) mod records;
pub(crate) mod selection;
pub(crate) mod text_matches;
pub(crate) mod units;
pub(crate) mod window_rows;
pub(crate) mod windows;

pub use crate::catalog::tags::listing::{Cardinality, TagCardinality, TagCount};
pub use crate::series::figures::AllFigures;
pub use crate::types::grid::Windows;
pub use crate::types::interpolation::Interpolation;
pub use candles::{Candle, CandleSize};
pub use fill::{Fill, Filled};
pub use history::History;
pub use join::{Join, Joined, JoinedRow};
pub use many::SelectionQuery;
pub use merge::{MergedRow, MergedRows};
pub use names::Names;
pub use text_matches::TextMatches;
pub use tidalite_codec::Stats;
pub use window_rows::WindowRow;
pub use windows::GroupWindow;
