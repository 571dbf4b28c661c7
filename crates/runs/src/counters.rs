//! Counters of the work of the front: they prove its bounds without a clock.

/// What the front did since it was loaded or since the last commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Rows given: staged rows that were handed over.
    pub rows_given: u64,
    /// Bytes of those rows, raw (8 for the series, 8 for the time, 8 a column).
    pub bytes_given: u64,
    /// Rows handed to the sink straight from staging.
    pub rows_linked: u64,
    /// Those of them that were encoded as vectors by threads beside the writer.
    pub rows_linked_beside: u64,
    /// Rows encoded as blocks of a run by threads beside the writer.
    pub rows_in_blocks: u64,
    /// Rows handed to the sink by merges.
    pub rows_linked_by_merges: u64,
    /// Rows read by merges.
    pub rows_merged: u64,
    /// Blocks written, by new runs, merges and deletes.
    pub blocks_written: u64,
    /// Pages of extents written, blocks and record.
    pub extent_pages_written: u64,
    /// Runs written from staging and tail.
    pub runs_written: u64,
    /// Merges that ended.
    pub merges_ended: u64,
    /// Blocks of inputs that were freed while their merge went on.
    pub blocks_passed: u64,
    /// Logs of rows given to other threads when all was to be handed over.
    pub logs_lent: u64,
    /// Merges that had to be driven to their end because their tier was full.
    pub merges_forced: u64,
}
