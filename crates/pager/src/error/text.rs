//! The message of each error. It describes the problem, its place, and the next step for the user.

use super::Error;
use tidalite_base::limits;

/// Maximum number of bytes of a key that an error text shows.
const KEY_BYTES_SHOWN: usize = 64;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disk(error) => error.fmt(f),
            Self::FileFull {
                needed_bytes,
                bytes_max,
            } => write!(
                f,
                "file full: {needed_bytes} more bytes are needed, but the length of the file is limited to {bytes_max}; the transaction was rolled back: free some space or raise the limit"
            ),
            Self::Corrupt(corrupt) => corrupt.fmt(f),
            Self::CommitsLost(lost) => write!(
                f,
                "{lost}; nothing was changed: open the database read-only to read the remaining data, restore a backup, or continue without these commits with Options::accept_lost_commits"
            ),
            Self::NotADatabase { found } => {
                write!(
                    f,
                    "not a Tidalite database: the file begins with {found}; give the path of a database, or a new one to create it"
                )
            }
            Self::Unsupported { found, expected }
            | Self::Refused {
                found, expected, ..
            } => {
                write!(f, "found {found}, expected {expected}")
            }
            Self::IsTable { key } => write!(
                f,
                "the key \"{}\" holds a nested table, not a value: open the nested table, or remove it with its content first",
                key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii()
            ),
            Self::LargeFile { path, problem } => write!(
                f,
                "the file of large values {} cannot be used: {problem}; set its path (Options::large_values)",
                path.display()
            ),
            Self::WriterBusy {
                process,
                thread,
                since,
            } => write!(
                f,
                "process {process} (thread {thread}) has been writing for {} ms: wait for it, or end it",
                since.as_millis()
            ),
            Self::Evicted { txn } => write!(
                f,
                "the snapshot of {txn} was evicted because it retained space that a writer needed: begin a new one"
            ),
            Self::ReadOnly => write!(f, "the database was opened read-only: open it for writing"),
            Self::Cancelled => write!(
                f,
                "cancelled by its progress callback: call it again for the complete result"
            ),
            Self::NoPin { name } => write!(
                f,
                "there is no pin `{name}`: give the name of an existing one"
            ),
            Self::BackupOrder { found, expected } => write!(
                f,
                "the backups are not consecutive: found {found}, expected {expected}; give the full backup first, then its increments in order"
            ),
            Self::Poisoned { first } => write!(
                f,
                "nothing more can be written until the database is reopened, because an earlier step failed: {first}"
            ),
            Self::NoSavepoint => write!(
                f,
                "the savepoint belongs to another transaction, or was removed by a rollback to an earlier one: create a new one"
            ),
            Self::Ended => write!(
                f,
                "the write transaction has ended, and with it the reader of its uncommitted state: begin a read transaction to see the committed state"
            ),
            Self::Limit { what, found, limit } => {
                f.write_str(&limits::exceeded(what, *found, *limit))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::lost_commits::{LossCause, LostCommits};
    use crate::error::refusal::Refusal;
    use std::time::Duration;
    use tidalite_base::{Corrupt, TxnId};
    use tidalite_disk::Error as DiskError;

    /// The message of each error must name the next step for the user.
    #[test]
    fn each_error_names_the_problem_and_the_next_step() {
        let text = || "this".to_owned();
        let lost = LostCommits {
            found: TxnId(3),
            newest: TxnId(9),
            cause: LossCause::Log,
        };
        let full = Error::FileFull {
            needed_bytes: 4096,
            bytes_max: 1 << 20,
        };
        let unsupported = Error::Unsupported {
            found: text(),
            expected: "that: do it".to_owned(),
        };
        let refused = Error::refused(Refusal::NotFound, "this", "that: do it");
        let table = Error::IsTable {
            key: b"a\n".to_vec(),
        };
        let large = Error::LargeFile {
            path: "plant.tdl".into(),
            problem: text(),
        };
        let busy = Error::WriterBusy {
            process: 7,
            thread: 8,
            since: Duration::from_secs(3),
        };
        let order = Error::BackupOrder {
            found: text(),
            expected: text(),
        };
        let limit = |found| Error::Limit {
            what: "bytes",
            found,
            limit: 5,
        };
        for (error, parts) in [
            (full, ["1048576", "raise the limit"]),
            (
                Error::CommitsLost(lost),
                ["commit 9, 6 commits later", "restore a backup"],
            ),
            (
                Error::NotADatabase { found: text() },
                ["begins with this", "give the path"],
            ),
            (unsupported, ["found this", "expected that: do it"]),
            (refused, ["found this", "expected that: do it"]),
            (table, ["\"a\\n\"", "remove it with its content first"]),
            (large, ["plant.tdl", "(Options::large_values)"]),
            (busy, ["process 7 (thread 8)", "wait for it, or end it"]),
            (
                Error::Evicted { txn: TxnId(3) },
                ["commit 3", "begin a new one"],
            ),
            (Error::ReadOnly, ["read-only", "open it for writing"]),
            (
                Error::Poisoned { first: text() },
                ["until the database is reopened", "this"],
            ),
            (Error::NoSavepoint, ["savepoint", "create a new one"]),
            (Error::Ended, ["has ended", "begin a read"]),
            (Error::NoPin { name: text() }, ["`this`", "give the name"]),
            (
                order,
                ["found this, expected this", "give the full backup first"],
            ),
            (Error::Cancelled, ["cancelled", "call it again"]),
            (limit(6), ["bytes: 6", "limit of 5; docs/limits.md"]),
            (limit(4), ["bytes: 4", "too small"]),
        ] {
            let told = error.to_string();
            for part in parts {
                assert!(told.contains(part), "`{told}` does not say `{part}`");
            }
        }
    }

    /// Errors of lower crates must keep their messages and sources, and an exceeded limit must be the same error in
    /// both crates.
    #[test]
    fn an_error_from_below_is_told_unchanged() {
        use std::error::Error as _;
        let failed = DiskError::of_call("read", 8192, std::io::Error::other("no medium"));
        let told = failed.to_string();
        let failed = Error::from(failed);
        assert_eq!(failed.to_string(), told);
        let source = failed.source().expect("the error of the system");
        assert_eq!(source.to_string(), "no medium");
        let damage = Error::from(Corrupt::new("page", 4096, 1, 2));
        assert!(damage.source().is_some_and(|source| source.is::<Corrupt>()));
        let limit = DiskError::Limit {
            what: "readers",
            found: 6,
            limit: 5,
        };
        assert!(matches!(Error::from(limit), Error::Limit { found: 6, .. }));
    }
}
