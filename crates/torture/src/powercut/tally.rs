//! What was seen.

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Power cuts.
    pub cuts: u64,
    /// Cuts while the file system replayed its journal, not counted in `cuts`.
    pub replays_cut: u64,
    /// Commits acknowledged as durable.
    pub acknowledged: u64,
    /// Lazy commits acknowledged.
    pub lazy: u64,
    /// Cuts after which a commit was found that had begun and was not acknowledged.
    pub later_found: u64,
    /// Cuts after which the lock file was that of the same run of the system.
    pub same_boot: u64,
    /// Those of them after which it was that of the cut, or of an instant before or after, the writer killed.
    pub lock_files: u64,
    /// Cuts after which it named a lazy commit of which pages were lost.
    pub dropped: u64,
    /// Those after which it named a lazy commit that was all there.
    pub lazy_found: u64,
    /// Cuts before the file's making was acknowledged.
    pub before_opened: u64,
    /// Sectors that were not flushed at a cut.
    pub sectors_unsynced: u64,
    /// Those that did not keep what was written last.
    pub sectors_lost: u64,
    /// File systems of the experimental kind that did not come back themselves.
    pub file_systems_lost: u64,
    /// Writers that were killed at the cut.
    pub killed: u64,
    /// Writers that ended with a typed error.
    pub typed_errors: u64,
    /// Writers that the system ended because their map had lost its disk.
    pub bus_errors: u64,
}
