//! Reads of a series: the tree merged with the late rows.
//!
//! ```text
//! view      View                                   first, last, aggregate, windows, candles
//! vector_cursor  iterates over vectors             directories; decodes one vector
//! segments  iterates over segments of rows         vectors, late rows between and within them
//! scan      scan, for_each_vector                  segments, cut to an interval
//! vector    Vector                                 the rows that scans deliver
//! lines     rows with constant steps               computed one by one, for for_each
//! cursor    Cursor                                 a row of a segment
//! fold      aggregate, windows, count              statistics where possible, rows elsewhere
//! collect   collectors of a fold                   counts, windows
//! candles   candlesticks                           statistics of parts of the tree
//! filter    rows with values in ranges             skips subtrees whose extremes rule out a match
//! matching  Matching                               all of these queries, on matching rows only
//! ```

pub(crate) mod candles;
pub(crate) mod collect;
pub(crate) mod cursor;
pub(crate) mod filter;
pub(crate) mod fold;
pub(crate) mod lines;
pub(crate) mod matching;
pub(crate) mod scan;
pub(crate) mod segments;
pub(crate) mod vector;
pub(crate) mod vector_cursor;
pub(crate) mod view;
