//! Decides how a commit is made, from facts alone: without a file, a clock or a lock, except for the lock of the
//! pipeline, which says whether the redo log has room. `commit.rs` carries the plan out.
//!
//! ```text
//! durability  changed pages                    meta record                      acknowledged
//! Durable     to the file, then synced         both blocks, or a log entry      after the flush
//! OneFlush    the same                         the same, log blocks stored once after the flush
//! Lazy        to the system's cache            in the lock file                 at once, to all processes
//! None        in memory, while they fit        none                             at once, to this process
//! ```
//!
//! Invariants of a plan
//! 1. Pages stay in memory only if the commit has no meta record, since a meta record points to pages in the file.
//! 2. A commit goes to the redo log only if it is durable, keeps the redo log, and changes nothing that a log entry
//!    cannot describe.
//! 3. A commit creates the redo log, or frees its pages, or neither, but never both.

use super::dirty::WriteHint;
use super::durability::Durability;
use crate::commit::pipeline::LogUse;
use crate::format::layout::BLOCK_BYTES;

/// Maximum number of consecutive commits without a meta record for which the changes of the free space are listed.
/// The next meta record could not contain a longer list; after more commits, the free-space structure is rewritten
/// instead.
const LONG_CHAIN: u64 = 64;

/// Facts about a transaction and its file that decide how it is committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitFacts {
    /// The durability of the commit, as [`granted`] has determined it.
    pub(super) durability: Durability,
    pub(super) changes_pins: bool,
    /// Whether the commit will hardly fit into the redo log, or is too large for it.
    pub(super) is_large: bool,
    /// Whether the commit has written pages of the second file.
    pub(super) writes_second_file: bool,
    /// Whether the commit moves pages to make the file shorter.
    pub(super) compacts: bool,
    /// Whether the commit uses the reserve, or the file grew since the last sync. After a power failure, the pages of
    /// the commit could lie beyond the end of the file.
    pub(super) space_unsynced: bool,
    pub(super) log_is_enabled: bool,
    pub(super) has_log: bool,
    /// Whether the redo log lies where the file could end, or has become too small for the file.
    pub(super) log_is_in_the_way: bool,
    /// Whether a meta record would make much space reusable.
    pub(super) needs_meta: bool,
    /// Size in bytes of the changed pages in memory that are not written to the file, of this commit and of earlier
    /// commits.
    pub(super) bytes_kept: usize,
    pub(super) bytes_kept_max: usize,
    /// Number of consecutive commits, including this one, whose pages may not be in the file.
    pub(super) commits_unwritten: u64,
}

/// Destination of the changed pages of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageDestination {
    /// The pages stay in memory until a later commit writes them. If `rewrites_space` is set, that commit rewrites
    /// the free-space structure.
    Memory {
        rewrites_space: bool,
    },
    File(WriteHint),
}

/// Plan that determines how a commit is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitPlan {
    pub(super) durability: Durability,
    /// Whether the commit frees the pages of the redo log.
    pub(super) leaves_log: bool,
    pub(super) creates_log: bool,
    pub(super) log: LogUse,
    /// Whether the next flush writes a meta record. The commit is added to the redo log as well, so that commits
    /// which arrive during that flush can continue the redo log.
    pub(super) wants_meta: bool,
    pub(super) pages: PageDestination,
}

/// Returns the durability with which a commit is made. A commit that adds or removes pins is always durable, whatever
/// was requested: a pin promises that its version stays readable, even after a power failure.
pub(super) fn granted(requested: Durability, changes_pins: bool) -> Durability {
    if changes_pins {
        Durability::Durable
    } else {
        requested
    }
}

impl CommitFacts {
    fn leaves_log(&self) -> bool {
        let durable = self.durability.is_durable();
        self.has_log
            && self.durability.has_meta()
            && (self.compacts || durable && self.log_is_in_the_way)
    }

    /// Whether an entry of the redo log can carry the commit.
    fn may_be_logged(&self) -> bool {
        self.durability.is_durable()
            && self.log_is_enabled
            && !self.leaves_log()
            && !self.compacts
            && !self.is_large
            && !self.space_unsynced
            && !self.changes_pins
            && !self.writes_second_file
    }

    fn destination(&self, logged: bool) -> PageDestination {
        let has_meta = self.durability.has_meta();
        if !has_meta && self.bytes_kept <= self.bytes_kept_max {
            let rewrites_space = self.commits_unwritten > LONG_CHAIN;
            return PageDestination::Memory { rewrites_space };
        }
        PageDestination::File(match self.durability {
            Durability::None => WriteHint::Plain,
            Durability::Lazy => WriteHint::Passing,
            Durability::Durable | Durability::OneFlush if logged => WriteHint::Passing,
            Durability::Durable | Durability::OneFlush => WriteHint::ForSync,
        })
    }
}

impl CommitPlan {
    /// Decides how to make the commit. `log_use` returns how the pipeline would use the redo log for this commit; its
    /// argument says whether a redo log is created without counting small flushes first. `log_use` is called only if
    /// an entry of the redo log can describe the commit.
    pub(super) fn of(facts: &CommitFacts, log_use: impl FnOnce(bool) -> LogUse) -> Self {
        let may_be_logged = facts.may_be_logged();
        let log = if may_be_logged {
            log_use(facts.durability == Durability::OneFlush)
        } else {
            LogUse::None
        };
        let plan = Self {
            durability: facts.durability,
            leaves_log: facts.leaves_log(),
            creates_log: log == LogUse::Wanted && !facts.has_log,
            log,
            wants_meta: may_be_logged && facts.needs_meta,
            pages: facts.destination(log == LogUse::Append),
        };
        plan.check();
        plan
    }

    /// Asserts the invariants of a plan.
    fn check(&self) {
        assert!(
            self.writes_pages() || !self.durability.has_meta(),
            "a meta record leads to pages of the file"
        );
        assert!(
            self.log == LogUse::None || self.durability.is_durable(),
            "only durable commits use the log"
        );
        assert!(
            !(self.leaves_log && (self.creates_log || self.is_logged())),
            "a commit that frees the log does not use it"
        );
        assert!(
            !self.wants_meta || self.durability.is_durable(),
            "only durable commits ask for a meta record"
        );
        assert!(
            !self.writes_for_sync() || self.durability.is_durable() && !self.is_logged(),
            "pages are written for a sync that does not follow"
        );
    }

    pub(super) fn is_logged(&self) -> bool {
        self.log == LogUse::Append
    }

    /// Whether each block of the redo log is written twice.
    pub(super) fn writes_log_twice(&self) -> bool {
        self.durability != Durability::OneFlush
    }

    /// Whether this commit writes its changed pages to the file.
    pub(super) fn writes_pages(&self) -> bool {
        matches!(self.pages, PageDestination::File(_))
    }

    /// Whether the pages are written in such a way that a sync can follow at once.
    pub(super) fn writes_for_sync(&self) -> bool {
        self.pages == PageDestination::File(WriteHint::ForSync)
    }

    /// Number of bytes that the meta record or log entry of the commit takes. `entry` is the length of its log entry,
    /// if it has one.
    pub(super) fn meta_bytes(&self, entry: Option<u64>) -> u64 {
        match self.durability {
            Durability::Durable | Durability::OneFlush => entry.unwrap_or(2 * BLOCK_BYTES as u64),
            Durability::Lazy => BLOCK_BYTES as u64,
            Durability::None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CommitFacts, CommitPlan, LONG_CHAIN, PageDestination, granted};
    use crate::commit::pipeline::LogUse;
    use crate::format::layout::BLOCK_BYTES;
    use crate::txn::Durability;
    use crate::txn::dirty::WriteHint;

    const ALL: [Durability; 4] = [
        Durability::Durable,
        Durability::OneFlush,
        Durability::Lazy,
        Durability::None,
    ];

    /// Returns the facts of a small commit in a file with a redo log.
    fn small(durability: Durability) -> CommitFacts {
        CommitFacts {
            durability,
            changes_pins: false,
            is_large: false,
            writes_second_file: false,
            compacts: false,
            space_unsynced: false,
            log_is_enabled: true,
            has_log: true,
            log_is_in_the_way: false,
            needs_meta: false,
            bytes_kept: 8192,
            bytes_kept_max: 8192,
            commits_unwritten: 1,
        }
    }

    fn append(_: bool) -> LogUse {
        LogUse::Append
    }

    fn unexpected(_: bool) -> LogUse {
        panic!("the log cannot carry this commit")
    }

    #[test]
    fn a_pin_makes_every_commit_durable_and_keeps_it_out_of_the_log() {
        for durability in ALL {
            assert_eq!(granted(durability, false), durability);
            assert_eq!(granted(durability, true), Durability::Durable);
        }
        let facts = CommitFacts {
            changes_pins: true,
            ..small(Durability::Durable)
        };
        assert!(!CommitPlan::of(&facts, unexpected).is_logged());
    }

    #[test]
    fn only_a_durable_commit_is_logged_and_its_pages_wait_for_no_sync() {
        for durability in [Durability::Durable, Durability::OneFlush] {
            let plan = CommitPlan::of(&small(durability), |at_once| {
                assert_eq!(at_once, durability == Durability::OneFlush);
                LogUse::Append
            });
            assert!(plan.is_logged() && !plan.creates_log && !plan.leaves_log);
            assert_eq!(plan.pages, PageDestination::File(WriteHint::Passing));
            assert_eq!(plan.writes_log_twice(), durability == Durability::Durable);
            assert_eq!(plan.meta_bytes(Some(77)), 77);
        }
        for durability in [Durability::Lazy, Durability::None] {
            assert!(!CommitPlan::of(&small(durability), unexpected).is_logged());
        }
    }

    #[test]
    fn what_a_log_entry_cannot_carry_is_synced_and_recorded() {
        let facts = small(Durability::Durable);
        for facts in [
            CommitFacts {
                is_large: true,
                ..facts
            },
            CommitFacts {
                writes_second_file: true,
                ..facts
            },
            CommitFacts {
                compacts: true,
                ..facts
            },
            CommitFacts {
                space_unsynced: true,
                ..facts
            },
            CommitFacts {
                log_is_enabled: false,
                ..facts
            },
            CommitFacts {
                log_is_in_the_way: true,
                ..facts
            },
        ] {
            let plan = CommitPlan::of(&facts, unexpected);
            assert_eq!(plan.log, LogUse::None, "{facts:?}");
            assert!(plan.writes_for_sync(), "{facts:?}");
            assert_eq!(plan.meta_bytes(None), 2 * BLOCK_BYTES as u64);
        }
    }

    #[test]
    fn the_log_is_given_up_by_a_commit_with_a_record_and_created_once() {
        for durability in ALL {
            let compacts = CommitFacts {
                compacts: true,
                ..small(durability)
            };
            let leaves = CommitPlan::of(&compacts, unexpected).leaves_log;
            assert_eq!(leaves, durability != Durability::None, "{durability:?}");
            let none = CommitFacts {
                has_log: false,
                ..compacts
            };
            assert!(!CommitPlan::of(&none, unexpected).leaves_log);
            // A lazy commit leaves the redo log in place: only a durable commit checks whether the redo log prevents
            // truncation.
            let in_the_way = CommitFacts {
                log_is_in_the_way: true,
                ..small(durability)
            };
            let leaves = CommitPlan::of(&in_the_way, unexpected).leaves_log;
            assert_eq!(leaves, durability.is_durable(), "{durability:?}");
        }
        for has_log in [false, true] {
            let facts = CommitFacts {
                has_log,
                ..small(Durability::Durable)
            };
            let plan = CommitPlan::of(&facts, |_| LogUse::Wanted);
            assert_eq!(plan.creates_log, !has_log);
            assert!(
                !plan.is_logged() && plan.writes_for_sync(),
                "not into a log made now"
            );
        }
    }

    #[test]
    fn a_record_is_asked_for_together_with_a_log_entry() {
        for durability in ALL {
            let facts = CommitFacts {
                needs_meta: true,
                ..small(durability)
            };
            let plan = CommitPlan::of(&facts, append);
            assert_eq!(plan.wants_meta, durability.is_durable(), "{durability:?}");
            let large = CommitFacts {
                is_large: true,
                ..facts
            };
            assert!(!CommitPlan::of(&large, unexpected).wants_meta, "it has one");
        }
    }

    #[test]
    fn pages_stay_in_memory_only_without_a_record_and_within_the_bound() {
        for durability in ALL {
            let plan = CommitPlan::of(&small(durability), append);
            assert_eq!(plan.writes_pages(), durability != Durability::None);
            let many = CommitFacts {
                bytes_kept: 8193,
                ..small(durability)
            };
            let plan = CommitPlan::of(&many, append);
            assert!(plan.writes_pages(), "{durability:?}");
        }
        let many = CommitFacts {
            bytes_kept: 8193,
            ..small(Durability::None)
        };
        let plan = CommitPlan::of(&many, unexpected);
        assert_eq!(plan.pages, PageDestination::File(WriteHint::Plain));
        assert_eq!(plan.meta_bytes(None), 0);
        for (commits_unwritten, rewrites_space) in [(LONG_CHAIN, false), (LONG_CHAIN + 1, true)] {
            let facts = CommitFacts {
                commits_unwritten,
                ..small(Durability::None)
            };
            let plan = CommitPlan::of(&facts, unexpected);
            assert_eq!(plan.pages, PageDestination::Memory { rewrites_space });
        }
    }

    #[test]
    fn a_lazy_commit_writes_in_passing_and_records_in_the_lock_file() {
        let plan = CommitPlan::of(&small(Durability::Lazy), unexpected);
        assert_eq!(plan.pages, PageDestination::File(WriteHint::Passing));
        assert!(plan.durability.has_meta() && !plan.writes_for_sync());
        assert_eq!(plan.meta_bytes(None), BLOCK_BYTES as u64);
    }
}
