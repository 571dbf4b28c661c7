//! The message of each error. It describes the problem, its place, and the next step for the user.

use super::Error;
use std::io;
use tidalite_base::limits;

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
            Self::Forked => write!(
                f,
                "the database was opened before this process was forked: open it again in the child process"
            ),
            Self::Limit { what, found, limit } => {
                f.write_str(&limits::exceeded(what, *found, *limit))
            }
        }
    }
}

/// Returns the next step for the user if a file could not be opened.
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
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    /// The message of each error must name the next step for the user.
    #[test]
    fn each_error_names_the_problem_and_the_next_step() {
        let path = || PathBuf::from("plant.tdl");
        let of_open = |kind: io::ErrorKind| Error::of_open(Path::new("plant.tdl"), kind.into());
        let lock = Error::LockFile {
            path: path(),
            problem: "this".to_owned(),
        };
        let refused = Error::LockRefused {
            path: path(),
            source: Arc::new(io::ErrorKind::PermissionDenied.into()),
        };
        let replaced = Error::FileReplaced {
            path: path(),
            process: 7,
        };
        let moved = |now_at| Error::FileMoved {
            path: path(),
            found: "it was deleted",
            now_at,
        };
        let network = Error::NetworkFileSystem {
            path: path(),
            kind: "NFS",
        };
        let limit = Error::Limit {
            what: "readers",
            found: 6,
            limit: 5,
        };
        for (error, parts) in [
            (
                Error::of_write("write", 8192, 4096, io::ErrorKind::Other.into()),
                ["write of 4096 bytes at byte 8192", "reopen the database"],
            ),
            (
                Error::of_write("write", 8192, 4096, io::ErrorKind::StorageFull.into()),
                ["4096 more bytes", "free some space"],
            ),
            (
                Error::OpenElsewhere { path: path() },
                ["plant.tdl", "close it"],
            ),
            (replaced, ["process 7", "then open the file again"]),
            (moved(None), ["it was deleted", "open the path again"]),
            (
                moved(Some("old.tdl".into())),
                ["is now old.tdl", "to a new file"],
            ),
            (network, ["(NFS)", "Options::exclusive"]),
            (lock, ["plant.tdl", "Options::lock_path"]),
            (refused, ["plant.tdl", "ask its owner"]),
            (Error::Forked, ["forked", "open it again"]),
            (limit, ["readers: 6", "limit of 5; docs/limits.md"]),
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
        }
    }
}
