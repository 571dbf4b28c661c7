//! Tests of the text, the kind and the facts of each error.

use super::*;
use std::error::Error as _;

/// The text of each error contains the next step; the test looks for one word of that step.
#[test]
fn each_error_names_the_problem_and_the_next_step() {
    let text = || "this".to_owned();
    let damage = tidalite_base::Corrupt::new("page", 4096, 1, 2);
    let name = Error::from(Cause::Name {
        name: text(),
        problem: "too long, 255 bytes at most".to_owned(),
    });
    let taken = Error::from(Cause::TimeTaken {
        series: text(),
        time: 5,
    });
    let timestamp = Error::from(TimestampError {
        text: text(),
        problem: text(),
    });
    assert_eq!(timestamp.kind(), ErrorKind::InvalidInput);
    let kind = |is, open_with| {
        Error::from(Cause::TableKind {
            table: text(),
            is,
            open_with,
        })
    };
    let other_types = Error::from(Cause::TableTypes {
        table: text(),
        recorded: "u64 -> f64".to_owned(),
        requested: "bytes".to_owned(),
    });
    let is_table = Error::from(Cause::IsTable {
        table: text(),
        key: b"k".to_vec(),
    });
    let ambiguous = Error::from(Cause::Ambiguous {
        table: text(),
        values: 3,
    });
    let wrong = |table: &str| {
        Error::from(Cause::WrongType {
            table: table.to_owned(),
            part: "value",
            expected: "f64",
            found: "2 bytes, \"80\"".to_owned(),
        })
    };
    let limit = Error::from(Cause::Limit {
        what: "bytes",
        found: 6,
        limit: 5,
    });
    for (error, parts) in [
        (
            damage.into(),
            ["page at byte 4096: found 1, expected 2", "`check`"],
        ),
        (name, ["`this`", "255 bytes at most"]),
        (
            Error::from(Cause::Schema { problem: text() }),
            ["schema", "this"],
        ),
        (
            Error::from(Cause::NoSuchSeries { wanted: text() }),
            ["this", "list"],
        ),
        (taken, ["this already has a row at 5", "skip the row"]),
        (
            Error::from(Cause::NoSuchPin { name: text() }),
            ["`this`", "Database::pins"],
        ),
        (timestamp, ["`this`", "write it as"]),
        (
            Error::from(Cause::TransactionBroken { first: text() }),
            ["this", "begin a new one"],
        ),
        (
            Error::from(Cause::OutOfOrder { table: text() }),
            ["this", "use put instead"],
        ),
        (ambiguous, ["3 values", "name one of them"]),
        (
            kind("has several values per key", "set_table"),
            ["several values", "set_table"],
        ),
        (
            kind("has one value per key", "table"),
            ["one value", "open it with table"],
        ),
        (other_types, ["holds u64 -> f64, not bytes", "`raw_table`"]),
        (is_table, ["key \"k\" of table this", "`remove`"]),
        (
            wrong("config"),
            [
                "a value of table config is not of type f64: 2 bytes",
                "or as bytes",
            ],
        ),
        (
            Error::from(Cause::CapTooSmall {
                cap_bytes: 5,
                least_bytes: 6,
            }),
            ["a cap of 5 bytes", "raise the cap"],
        ),
        (limit, ["bytes: 6", "limit of 5; docs/limits.md"]),
    ] {
        let told = error.to_string();
        for part in parts {
            assert!(told.contains(part), "`{told}` does not say `{part}`");
        }
    }
}

/// Each error of the file has the right kind, and a method returns a fact of it.
#[test]
fn errors_of_the_file_have_kinds_and_facts() {
    let path = || std::path::PathBuf::from("plant.tdl");
    let source = |kind: std::io::ErrorKind| std::io::Error::from(kind);
    let of_open = |kind| FileError::from(DiskError::of_open(&path(), source(kind)));
    for (kind, expected) in [
        (std::io::ErrorKind::NotFound, ErrorKind::NotFound),
        (std::io::ErrorKind::AlreadyExists, ErrorKind::AlreadyExists),
        (
            std::io::ErrorKind::PermissionDenied,
            ErrorKind::PermissionDenied,
        ),
        (
            std::io::ErrorKind::ReadOnlyFilesystem,
            ErrorKind::PermissionDenied,
        ),
        (std::io::ErrorKind::StorageFull, ErrorKind::Full),
        (std::io::ErrorKind::IsADirectory, ErrorKind::Io),
    ] {
        let error = Error::from(of_open(kind));
        assert_eq!((error.kind(), error.path()), (expected, Some(&*path())));
        assert_eq!(error.io_error().map(std::io::Error::kind), Some(kind));
        assert_eq!(Error::from(source(kind)).kind(), expected);
    }
    let full = FileError::FileFull {
        needed_bytes: 7,
        bytes_max: 9,
    };
    let full = Error::from(full);
    assert_eq!((full.kind(), full.limit()), (ErrorKind::Full, Some((7, 9))));
    let busy = FileError::Disk(DiskError::FileReplaced {
        path: path(),
        process: 7,
    });
    let busy = Error::from(busy);
    assert_eq!((busy.kind(), busy.process()), (ErrorKind::Locked, Some(7)));
    let evicted = Error::from(FileError::Evicted { txn: TxnId(3) });
    assert_eq!(
        (evicted.kind(), evicted.txn()),
        (ErrorKind::Evicted, Some(TxnId(3)))
    );
    let failed = FileError::from(DiskError::of_call(
        "read",
        8,
        source(std::io::ErrorKind::Other),
    ));
    let failed = Error::from(failed);
    assert_eq!(
        (failed.kind(), failed.operation()),
        (ErrorKind::Io, Some(("read", 8)))
    );
    assert!(
        failed
            .source()
            .is_some_and(|source| source.is::<std::io::Error>())
    );
    let damaged = Error::from(Corrupt::new("page", 4096, 1, 2));
    assert_eq!(damaged.kind(), ErrorKind::Damaged);
    assert!(
        damaged
            .source()
            .is_some_and(|source| source.is::<Corrupt>())
    );
    // An exceeded limit is the same error, whichever layer has detected it.
    let limit = FileError::Limit {
        what: "readers",
        found: 6,
        limit: 5,
    };
    let limit = Error::from(limit);
    assert_eq!(
        (limit.kind(), limit.limit()),
        (ErrorKind::Limit, Some((6, 5)))
    );
}
