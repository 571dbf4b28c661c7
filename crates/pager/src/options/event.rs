//! What happens to an open file that somebody may want to log.

use super::laggard::Laggard;
use crate::error::lost_commits::LostCommits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidalite_base::TxnId;
use tidalite_base::limits::SECOND_FILE_AT;

/// Something that happened to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The file was opened.
    Opened {
        /// Its newest commit.
        txn: TxnId,
        /// Its bytes.
        bytes: u64,
        /// Only for reading.
        read_only: bool,
    },
    /// A damaged block of the head was rewritten from its copy.
    Healed {
        /// Where it is.
        at: u64,
    },
    /// Commits were found in the log.
    Replayed {
        /// How many.
        commits: u64,
        /// The newest of them.
        txn: TxnId,
    },
    /// Durable commits are missing: more of the file is damaged than its copies make up for.
    WentBack(LostCommits),
    /// Commits of a process that is gone were found that are newer than the newest record, and go on: lazy ones, or some of the log.
    FoundUnrecorded {
        /// The newest of them.
        txn: TxnId,
        /// The newest one that has a record.
        recorded: TxnId,
    },
    /// The lock file named a lazy commit of a process that is gone, and not all of its pages are in the file: the file was copied or replaced without its
    /// lock file, or its disk lost what was not synced. The commit was dropped.
    DroppedUnrecorded {
        /// The newest commit that was dropped.
        txn: TxnId,
        /// The newest commit that is used instead.
        used: TxnId,
        /// The first page or block that is not there.
        reason: String,
    },
    /// The file's end was cut off.
    Cut {
        /// Bytes before.
        from: u64,
        /// Bytes now.
        to: u64,
    },
    /// Free space was cut off the end of the second file.
    CutSecond {
        /// Bytes before.
        from: u64,
        /// Bytes now.
        to: u64,
    },
    /// A reader holds much while the file has to grow, or the disk is full. Told whether or not somebody decides about it.
    Laggard(Laggard),
    /// A reader's snapshot was taken away, because of its age, because the disk is full, or because somebody decided so.
    Ousted {
        /// Its process.
        process: u32,
        /// What it saw.
        txn: TxnId,
    },
    /// A commit took longer than `Options::slow_commit` from its call to its return.
    SlowCommit {
        /// Which one.
        txn: TxnId,
        /// How long it took.
        took: Duration,
    },
    /// The file grew.
    Grew {
        /// Bytes before.
        from: u64,
        /// Bytes now.
        to: u64,
    },
    /// The wall clock is further ahead of the commits' clock than what has passed since the newest commit explains: what
    /// is removed by its age goes by the commits' clock until somebody confirms the wall clock.
    ClockAhead {
        /// The wall clock, in nanoseconds since 1970.
        wall_ns: i64,
        /// The commits' clock, in nanoseconds since 1970.
        commits_ns: i64,
    },
    /// A sync or the write of a commit record failed: nothing more is acknowledged until the file is reopened.
    Poisoned {
        /// What failed.
        first: String,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened {
                txn,
                bytes,
                read_only,
            } => {
                let how = if *read_only { " for reading" } else { "" };
                write!(f, "opened{how} at {txn}, {bytes} bytes")
            }
            Self::Healed { at } => {
                let (at, of) = match at.checked_sub(SECOND_FILE_AT) {
                    Some(at) => (at, " of the second file"),
                    None => (*at, ""),
                };
                write!(f, "the block at byte {at}{of} was rewritten from its copy")
            }
            Self::Replayed { commits, txn } => {
                write!(f, "{commits} commits up to {txn} were found in the log")
            }
            Self::WentBack(lost) => lost.fmt(f),
            Self::FoundUnrecorded { txn, recorded } => {
                write!(
                    f,
                    "goes on from {txn}, which has no record yet; the newest record is of {recorded}"
                )
            }
            Self::DroppedUnrecorded { txn, used, reason } => {
                write!(
                    f,
                    "{txn}, which only the lock file names, is not all in the file and was dropped ({reason}); \
                     goes on from {used}"
                )
            }
            Self::Cut { from, to } => write!(f, "cut from {from} to {to} bytes"),
            Self::CutSecond { from, to } => {
                write!(f, "the second file: cut from {from} to {to} bytes")
            }
            Self::Laggard(Laggard {
                reader, disk_full, ..
            }) => {
                let why = if *disk_full {
                    "the disk is full"
                } else {
                    "the file has to grow"
                };
                write!(
                    f,
                    "{why}, and the reader of process {} at {} holds {} bytes",
                    reader.process, reader.txn, reader.held_bytes
                )
            }
            Self::Ousted { process, txn } => {
                write!(
                    f,
                    "the reader of process {process} at {txn} lost its snapshot"
                )
            }
            Self::SlowCommit { txn, took } => write!(f, "{txn} took {} ms", took.as_millis()),
            Self::Grew { from, to } => write!(f, "grew from {from} to {to} bytes"),
            Self::ClockAhead {
                wall_ns,
                commits_ns,
            } => {
                let ahead = wall_ns.saturating_sub(*commits_ns) / 1_000_000_000;
                write!(
                    f,
                    "the wall clock is {ahead} s ahead of the commits' clock: retention by age goes by the commits' clock until \
                     the wall clock is confirmed"
                )
            }
            Self::Poisoned { first } => write!(f, "nothing more is acknowledged: {first}"),
        }
    }
}

/// Who is told of events.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&Event) + Send + Sync>);

impl Logger {
    /// A logger that calls `f`, from whatever thread; it must not use the database.
    pub fn new(f: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(f))
    }

    pub(crate) fn tell(&self, event: &Event) {
        (self.0)(event);
    }
}

impl fmt::Debug for Logger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Logger")
    }
}
