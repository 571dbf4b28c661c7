//! Work counters of the delta: they prove its bounds without a clock.

/// Work of the delta since it was loaded or since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Buffered rows that were flushed.
    pub rows_flushed: u64,
    /// Raw bytes of those rows (8 for the series, 8 for the time, 8 per column).
    pub bytes_flushed: u64,
    /// Rows passed to the sink directly from the write buffer.
    pub rows_linked: u64,
    /// Number of rows of `rows_linked` that helper threads encoded as vectors.
    pub rows_encoded_by_helpers: u64,
    /// Rows encoded as run blocks by helper threads.
    pub rows_in_blocks: u64,
    /// Rows passed to the sink by compactions.
    pub rows_linked_by_compaction: u64,
    /// Rows read by compactions.
    pub rows_compacted: u64,
    /// Blocks written, by new runs, compactions and deletes.
    pub blocks_written: u64,
    /// Pages of extents written, for blocks and the record.
    pub extent_pages_written: u64,
    /// Runs written from the write buffer and the tail.
    pub runs_written: u64,
    /// Merges completed.
    pub compactions_ended: u64,
    /// Input blocks that were freed while their compaction was still open.
    pub blocks_passed: u64,
    /// Logs lent to other threads when everything was to be flushed.
    pub logs_lent: u64,
    /// Merges that had to be completed at once because their tier was full.
    pub compactions_forced: u64,
}
