//! Questions beyond one interval of one series: filters, candlesticks, records, many series at once, functions.

pub(crate) mod abreast;
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
pub(crate) mod windows;
