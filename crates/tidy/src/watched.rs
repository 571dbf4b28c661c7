//! Checks that every ordinary test runs under the write-protocol monitor: a test file that opens a database must put
//! the monitor around it, or must be listed here with a reason.

use crate::tree::{Finding, Tree};

/// Folders with tests that open databases.
const TESTS: [&str; 5] = [
    "crates/pager/tests/",
    "crates/delta/tests/",
    "crates/series/tests/",
    "crates/tidalite/tests/",
    "crates/reader/tests/",
];

/// Calls that open a database.
const OPENS: [&str; 4] = ["Pager::open", "Database::open", ".open_storage", ".open("];

/// Calls that put the monitor around a database: by name, for the whole process, or through shared code of the public
/// crate's tests.
const WATCHES: [&str; 4] = [
    "Monitor::",
    "testkit::watch()",
    "in_memory(",
    "Folder::new(",
];

/// Test files that do not use the monitor, each with the reason.
const WITHOUT: [(&str, &str); 7] = [
    (
        "crates/pager/tests/processes.rs",
        "several processes write, of which a monitor sees one",
    ),
    (
        "crates/pager/tests/system_calls.rs",
        "calls of the system are counted, as they are without a monitor",
    ),
    (
        "crates/pager/tests/device.rs",
        "a block device, which the test writes itself as well",
    ),
    (
        "crates/pager/tests/fork.rs",
        "a forked child would inherit the monitor in any state, locked by a thread that it does not have",
    ),
    (
        "crates/pager/tests/hostile.rs",
        "records that no writer makes, which a writer then stands on",
    ),
    (
        "crates/pager/tests/harness/",
        "the crash search looks for bugs that break the protocol; its sound runs are watched by themselves",
    ),
    (
        "crates/pager/tests/toy/",
        "what the test programs share; those that are watched call `watch` themselves",
    ),
];

/// Reports the test files that open a database without the monitor, and listed files that do not need an exception.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut excused = [false; WITHOUT.len()];
    for (path, text) in tree.texts() {
        let is_test = TESTS.iter().any(|tests| path.starts_with(tests));
        // A builder's `open()`, without a path, opens a series, not a database, so it is removed.
        let text = text.replace(".open()", "");
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if !is_test || !has(&OPENS) {
            continue;
        }
        // Every crate has its own `Folder`, but only the public crate's `Folder` installs the monitor.
        let watches = if path.starts_with("crates/tidalite/tests/facade/") {
            &WATCHES[..]
        } else {
            &WATCHES[..2]
        };
        match WITHOUT.iter().position(|(own, _)| path.starts_with(own)) {
            Some(number) => excused[number] = true,
            None if has(watches) => {}
            None => {
                let text = "opens a database, but not under the write-protocol monitor";
                findings.push(Finding::new(path, 1, text));
            }
        }
    }
    for ((path, _), _) in WITHOUT.iter().zip(excused).filter(|(_, used)| !used) {
        if tree.texts().any(|(known, _)| known.starts_with(path)) {
            let text = "stands among the exceptions, but opens no database";
            findings.push(Finding::new(path, 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn an_unwatched_test_is_named() {
        let open = "let db = Database::open(path)?;";
        let watched = "tidalite_testkit::watch();\nlet db = Database::open(path)?;";
        assert_eq!(found("crates/tidalite/tests/new.rs", open), 1);
        assert_eq!(found("crates/tidalite/tests/new.rs", watched), 0);
        assert_eq!(found("crates/tidalite/tests/new.rs", "nothing"), 0);
        assert_eq!(found("crates/tidalite/src/new.rs", open), 0);
        assert_eq!(found("crates/pager/tests/processes.rs", open), 0);
        assert_eq!(found("crates/pager/tests/device.rs", "nothing"), 1);
        let folder = "let folder = Folder::new(\"a\");\nDatabase::open(folder.file(\"b\"))?;";
        assert_eq!(found("crates/tidalite/tests/facade/new.rs", folder), 0);
        assert_eq!(found("crates/tidalite/tests/new.rs", folder), 1);
    }
}
