//! The text of each error: the problem, its place, and the next step.

use super::Error;
use std::io;

/// Number of key bytes that an error text shows.
const KEY_BYTES_SHOWN: usize = 64;

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io { what, at, source } => write!(
                f,
                "{what} at byte {at} failed: {source}; check that the disk is present and intact, then reopen the database"
            ),
            Self::Open { path, source } => write!(
                f,
                "cannot open {}: {source}; {}",
                path.display(),
                next_after_open(source.kind())
            ),
            Self::DiskFull { needed_bytes } => write!(
                f,
                "disk full: {needed_bytes} more bytes are needed; the transaction was rolled back: free some space and repeat it"
            ),
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
            Self::Unsupported { found, expected } => {
                write!(f, "found {found}, expected {expected}")
            }
            Self::IsTable { key } => write!(
                f,
                "the key \"{}\" holds a nested table, not a value: open the nested table, or remove it with its content first",
                key[..key.len().min(KEY_BYTES_SHOWN)].escape_ascii()
            ),
            Self::OpenElsewhere { path } => write!(
                f,
                "{} is open elsewhere, exclusively or with another lock file: close it there first",
                path.display()
            ),
            Self::FileReplaced { path, process } => write!(
                f,
                "the data file {} was replaced or deleted while process {process} has the old file open: close it in that process, or end the process, then open the file again",
                path.display()
            ),
            Self::FileMoved {
                path,
                found,
                now_at,
            } => {
                write!(
                    f,
                    "the data file {} is no longer the file that was opened: {found}, and the opened file ",
                    path.display()
                )?;
                match now_at {
                    Some(now) => write!(f, "is now {}", now.display())?,
                    None => write!(f, "has no other known name")?,
                }
                write!(
                    f,
                    "; no more commits are possible, but reads are: copy its content to a new file if you need it, close the database, then open the path again"
                )
            }
            Self::NetworkFileSystem { path, kind } => write!(
                f,
                "{} is on a network file system ({kind}), where processes of several computers cannot share a database: move the database and its lock file to a local disk, or open it exclusively (Options::exclusive)",
                path.display()
            ),
            Self::LockFile { path, problem } => write!(
                f,
                "the lock file {} cannot be used: {problem}; find out which process uses it, or set Options::lock_path, equally in all processes that open the database",
                path.display()
            ),
            Self::LockRefused { path, source } => write!(
                f,
                "the database is open elsewhere, and its lock file {} cannot be written to: {source}; a reader beside other processes needs write access to it: ask its owner for that, or wait until no other process has the database open",
                path.display()
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
            Self::Forked => write!(
                f,
                "the database was opened before this process was forked: open it again in the child process"
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
            // Below a lower limit; `what` contains that limit.
            Self::Limit { what, found, limit } if found < limit => {
                write!(f, "{what}: {found} is too small; the maximum is {limit}")
            }
            Self::Limit { what, found, limit } => {
                write!(
                    f,
                    "{what}: {found} exceeds the limit of {limit}; docs/limits.md lists all limits"
                )
            }
        }
    }
}

/// Next step after a file could not be opened.
fn next_after_open(kind: io::ErrorKind) -> &'static str {
    use io::ErrorKind as Kind;
    match kind {
        Kind::NotFound => "check the path, create the folder, or use a mode that creates the file",
        Kind::AlreadyExists => "use a mode that opens an existing file, or give another name",
        Kind::PermissionDenied => {
            "obtain read and write permission for the file and its folder; read permission suffices to open it read-only"
        }
        Kind::ReadOnlyFilesystem => "open it read-only, or move it to a writable file system",
        Kind::IsADirectory => "give the path of a file, such as plant.tdl in this folder",
        Kind::NotADirectory => "check the path: one of its folders is a file",
        Kind::StorageFull | Kind::QuotaExceeded => "free some space there and open it again",
        _ => "check the path, and that the file system supports file locks",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::lost_commits::{LossCause, LostCommits};
    use std::path::PathBuf;

    /// The text of each error contains its next step.
    #[test]
    fn each_error_names_the_problem_and_the_next_step() {
        let path = PathBuf::from("plant.tdl");
        let text = || "this".to_owned();
        let source = |kind: io::ErrorKind| io::Error::from(kind);
        let of_open = |kind| Error::Open {
            path: path.clone(),
            source: source(kind),
        };
        let medium = Error::Io {
            what: "read of 4096 bytes".to_owned(),
            at: 8192,
            source: source(io::ErrorKind::Other),
        };
        let needed_bytes = 4096;
        let full = Error::FileFull {
            needed_bytes,
            bytes_max: 1 << 20,
        };
        let unsupported = Error::Unsupported {
            found: text(),
            expected: "that: do it".to_owned(),
        };
        let table = Error::IsTable {
            key: b"a\n".to_vec(),
        };
        let busy = Error::WriterBusy {
            process: 7,
            thread: 8,
            since: std::time::Duration::from_secs(3),
        };
        let order = Error::BackupOrder {
            found: text(),
            expected: text(),
        };
        let limit = Error::Limit {
            what: "bytes",
            found: 6,
            limit: 5,
        };
        let (one, problem) = (path.clone(), text());
        let lock = Error::LockFile { path: one, problem };
        let (one, source_of_lock) = (path.clone(), source(io::ErrorKind::PermissionDenied));
        let refused = Error::LockRefused {
            path: one,
            source: source_of_lock,
        };
        let (one, problem) = (path.clone(), text());
        let large = Error::LargeFile { path: one, problem };
        let txn = tidalite_base::TxnId(3);
        let elsewhere = Error::OpenElsewhere { path: path.clone() };
        let lost = Error::CommitsLost(LostCommits {
            found: txn,
            newest: tidalite_base::TxnId(9),
            cause: LossCause::Log,
        });
        let replaced = Error::FileReplaced {
            path: path.clone(),
            process: 7,
        };
        let gone = |now_at| Error::FileMoved {
            path: path.clone(),
            found: "it was deleted",
            now_at,
        };
        let network = Error::NetworkFileSystem {
            path: path.clone(),
            kind: "NFS",
        };
        for (error, parts) in [
            (
                medium,
                ["read of 4096 bytes at byte 8192", "reopen the database"],
            ),
            (
                Error::DiskFull { needed_bytes },
                ["4096 more bytes", "free some space"],
            ),
            (full, ["1048576", "raise the limit"]),
            (
                Error::NotADatabase { found: text() },
                ["begins with this", "give the path"],
            ),
            (unsupported, ["found this", "expected that: do it"]),
            (table, ["\"a\\n\"", "remove it with its content first"]),
            (elsewhere, ["plant.tdl", "close it"]),
            (lost, ["txn 9, 6 commits later", "restore a backup"]),
            (replaced, ["process 7", "then open the file again"]),
            (gone(None), ["it was deleted", "open the path again"]),
            (
                gone(Some("old.tdl".into())),
                ["is now old.tdl", "to a new file"],
            ),
            (network, ["(NFS)", "Options::exclusive"]),
            (lock, ["plant.tdl", "Options::lock_path"]),
            (refused, ["plant.tdl", "ask its owner"]),
            (large, ["plant.tdl", "(Options::large_values)"]),
            (busy, ["process 7 (thread 8)", "wait for it, or end it"]),
            (Error::Evicted { txn }, ["3", "begin a new one"]),
            (Error::Forked, ["forked", "open it again"]),
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
            (limit, ["bytes: 6", "limit of 5; docs/limits.md"]),
            (
                of_open(io::ErrorKind::NotFound),
                ["plant.tdl", "check the path"],
            ),
            (
                of_open(io::ErrorKind::AlreadyExists),
                ["plant.tdl", "another name"],
            ),
            (
                of_open(io::ErrorKind::PermissionDenied),
                ["plant.tdl", "obtain read and write permission"],
            ),
            (
                of_open(io::ErrorKind::ReadOnlyFilesystem),
                ["plant.tdl", "open it read-only"],
            ),
            (
                of_open(io::ErrorKind::IsADirectory),
                ["plant.tdl", "the path of a file"],
            ),
            (
                of_open(io::ErrorKind::NotADirectory),
                ["plant.tdl", "one of its folders is a file"],
            ),
            (
                of_open(io::ErrorKind::StorageFull),
                ["plant.tdl", "free some space"],
            ),
            (
                of_open(io::ErrorKind::Other),
                ["plant.tdl", "check the path"],
            ),
        ] {
            let told = error.to_string();
            for part in parts {
                assert!(told.contains(part), "`{told}` does not say `{part}`");
            }
            assert_eq!(error.again().to_string(), told);
        }
    }
}
