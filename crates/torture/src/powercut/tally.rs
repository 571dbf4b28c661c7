//! Counts of a run.

/// Counts of a run.
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
    /// Cuts after which an unacknowledged commit that had begun was found.
    pub later_found: u64,
    /// Cuts with a lock file from the same boot of the system.
    pub same_boot: u64,
    /// Cuts with the lock file of the cut, or of an earlier or later moment, with the writer killed.
    pub lock_files: u64,
    /// Cuts after which the lock file named a lazy commit with lost pages.
    pub dropped: u64,
    /// Cuts after which the lock file named a complete lazy commit.
    pub lazy_found: u64,
    /// Cuts before the creation of the file was acknowledged.
    pub before_opened: u64,
    /// Unflushed sectors at the cuts.
    pub sectors_unsynced: u64,
    /// Unflushed sectors without their last version.
    pub sectors_lost: u64,
    /// Lost file systems of the experimental kind.
    pub file_systems_lost: u64,
    /// Writers killed at the cut.
    pub killed: u64,
    /// Writers that ended with a typed error.
    pub typed_errors: u64,
    /// Writers ended by SIGBUS because the disk under their map had failed.
    pub bus_errors: u64,
}
