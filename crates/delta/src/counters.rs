//! Counters of the work that the delta does. Tests use them to prove bounds on the work without measuring time.

/// Work done by the delta since it was loaded or since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Number of buffered rows that were flushed.
    pub rows_flushed: u64,
    /// Size in bytes of the rows in `rows_flushed`, without compression: 8 for the series, 8 for the time, 8 per
    /// column.
    pub bytes_flushed: u64,
    /// Number of rows that became leaves directly from the write buffer.
    pub rows_linked: u64,
    /// Number of rows of `rows_linked` that helper threads encoded as vectors.
    pub rows_encoded_by_helpers: u64,
    /// Number of rows that helper threads encoded as blocks of a run.
    pub rows_in_blocks: u64,
    /// Number of rows that became leaves during compactions.
    pub rows_linked_by_compaction: u64,
    /// Number of rows that compactions read.
    pub rows_compacted: u64,
    /// Number of pages in the extents written for blocks and for the record of the delta.
    pub extent_pages_written: u64,
    /// Number of runs written from the rows of the write buffer and the tail page.
    pub runs_written: u64,
    /// Number of compactions that ended.
    pub compactions_ended: u64,
    /// Number of input blocks that were freed while their compaction was still open.
    pub blocks_passed: u64,
    /// Number of logs of the write buffer that were lent to helper threads to flush all rows.
    pub logs_lent: u64,
    /// Number of compactions that had to be completed at once because their tier was full.
    pub compactions_forced: u64,
}
