//! Events of an open file, for logging.

use super::long_reader::LongReader;
use crate::error::lost_commits::LostCommits;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidalite_base::TxnId;
use tidalite_base::limits::SECOND_FILE_AT;

/// An event of an open file, which is passed to the logger.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The file was opened.
    Opened {
        /// Transaction number of the newest commit of the file.
        txn: TxnId,
        /// Length of the file in bytes.
        bytes: u64,
        /// Whether the file was opened for reading only.
        read_only: bool,
    },
    /// A damaged block of the file's head was rewritten from the other copy of the block.
    Healed {
        /// Byte offset of the block in the file.
        at: u64,
    },
    /// Commits were found in the redo log when the file was opened.
    Replayed {
        /// Number of commits that were found.
        commits: u64,
        /// Transaction number of the newest of these commits.
        txn: TxnId,
    },
    /// Durable commits are missing, because the damage exceeds the redundancy of the file.
    WentBack(LostCommits),
    /// Commits of a dead process that are newer than the newest meta record of the file were found and kept: lazy
    /// commits, or commits of the redo log.
    FoundUnrecorded {
        /// Transaction number of the newest of these commits.
        txn: TxnId,
        /// Transaction number of the newest commit that has a meta record in the file.
        recorded: TxnId,
    },
    /// The lock file named a lazy commit of a dead process whose pages are not all in the data file: the data file
    /// was copied or replaced without its lock file, or its disk lost unsynced data. The commit was dropped.
    DroppedUnrecorded {
        /// Transaction number of the newest commit that was dropped.
        txn: TxnId,
        /// Transaction number of the newest commit that is used instead.
        used: TxnId,
        /// Description of the first page or block that is missing.
        reason: String,
    },
    /// Free space at the end of the file was truncated.
    Cut {
        /// Length of the file in bytes before the truncation.
        from: u64,
        /// Length of the file in bytes after the truncation.
        to: u64,
    },
    /// Free space at the end of the second file was truncated.
    CutSecond {
        /// Length of the second file in bytes before the truncation.
        from: u64,
        /// Length of the second file in bytes after the truncation.
        to: u64,
    },
    /// A reader retains much space while the file has to grow or the disk is full. The event is reported even if no
    /// callback decides about the reader.
    LongReader(LongReader),
    /// A reader was evicted because of its age, because the disk is full, or by decision of a callback.
    Evicted {
        /// Id of the reader's process.
        process: u32,
        /// Transaction number of the commit that the reader saw.
        txn: TxnId,
    },
    /// A commit took longer than a second, or than [`Options::slow_commit`](crate::Options::slow_commit) of this crate,
    /// from its call to its return.
    SlowCommit {
        /// Transaction number of the commit.
        txn: TxnId,
        /// Time from the call of the commit to its return.
        took: Duration,
    },
    /// The file became longer.
    Grew {
        /// Length of the file in bytes before the growth.
        from: u64,
        /// Length of the file in bytes after the growth.
        to: u64,
    },
    /// The wall clock is ahead of the commit clock by more than the time since the newest commit explains. The wall
    /// clock may be set wrong, so retention by age uses the commit clock until the wall clock is confirmed.
    ClockAhead {
        /// Time of the wall clock, in nanoseconds since 1970.
        wall_ns: i64,
        /// Time of the commit clock, in nanoseconds since 1970.
        commits_ns: i64,
    },
    /// A sync or the write of a meta record failed: no further commit is acknowledged until the file is reopened.
    Poisoned {
        /// Text of the first error.
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
            Self::Replayed { commits, txn } => match commits {
                1 => write!(f, "{txn} was found in the log"),
                _ => write!(f, "{commits} commits up to {txn} were found in the log"),
            },
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
            Self::LongReader(LongReader {
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
                    reader.process, reader.txn, reader.retained_bytes
                )
            }
            Self::Evicted { process, txn } => {
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
                    "the wall clock is {ahead} s ahead of the commit clock: retention by age goes by the commit clock until \
                     the wall clock is confirmed"
                )
            }
            Self::Poisoned { first } => write!(f, "nothing more is acknowledged: {first}"),
        }
    }
}

/// Callback that receives the events of an open file.
#[derive(Clone)]
pub struct Logger(Arc<dyn Fn(&Event) + Send + Sync>);

impl Logger {
    /// Creates a logger that calls `f`, on any thread. `f` must not use the database.
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
