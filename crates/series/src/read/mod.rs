//! Reading a series: the tree and the late rows as one.
//!
//! ```text
//! view      View                                   first, last, aggregate, windows, candles
//! vector_cursor  steps over vectors                directories; decodes one vector
//! segments  steps over stretches of rows           vectors, late rows between and within them
//! scan      scan, for_each_vector                  segments, cut to an interval
//! vector    Vector                                 what these hand out
//! lines     rows that rise by constant steps       made one by one, for for_each
//! cursor    Cursor                                 a row of a segment
//! fold      aggregate, windows, count              statistics where they do, rows where they do not
//! collect   what these make of them                counts, windows
//! candles   candlesticks                           the same, cut where the tree is
//! filter    rows with values in ranges             subtrees whose extremes rule it out are passed by
//! matching  Matching                               all of these questions, of such rows only
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
