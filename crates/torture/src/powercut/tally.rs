//! Counts the events of a run.

/// Counters of the events in a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of power cuts while the file system replayed its journal; they are not included in `cuts`.
    pub replays_cut: u64,
    /// Number of commits acknowledged as durable.
    pub acknowledged: u64,
    /// Number of lazy commits that were acknowledged.
    pub lazy: u64,
    /// Number of cuts after which a commit was found that had begun but was not acknowledged.
    pub later_found: u64,
    /// Number of cuts after which the lock file was from the same boot of the system.
    pub same_boot: u64,
    /// Number of cuts at which the writer was killed and a lock file of that, an earlier or a later moment was put
    /// back.
    pub lock_files: u64,
    /// Number of cuts after which the lock file named a lazy commit with lost pages.
    pub dropped: u64,
    /// Number of cuts after which the lock file named a complete lazy commit.
    pub lazy_found: u64,
    /// Number of cuts before the creation of the file was acknowledged.
    pub before_opened: u64,
    /// Number of sectors that were not flushed at the cuts.
    pub sectors_unsynced: u64,
    /// Number of sectors that lost their last version at the cuts.
    pub sectors_lost: u64,
    /// Number of lost file systems, of the kind that is known to be lost.
    pub file_systems_lost: u64,
    /// Number of writers that were killed at the cut.
    pub killed: u64,
    /// Number of writers that ended with an error of the database.
    pub typed_errors: u64,
    /// Number of writers that SIGBUS ended, because the disk under their memory map had failed.
    pub bus_errors: u64,
}
