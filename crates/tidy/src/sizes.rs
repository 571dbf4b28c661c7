//! Reports long files and long functions; the figures are for human review, not rules.

use crate::source::{Function, Source, without_tests};
use crate::tree::Tree;
use std::cmp::Reverse;
use std::fmt::Write;

/// Number of lines, without tests, from which a file is listed.
pub const FILE_LINES_SEEN: usize = 600;

/// Number of the longest functions that are listed.
pub const FUNCTIONS_SHOWN: usize = 12;

/// Creates the report as text.
#[must_use]
pub fn report(tree: &Tree) -> String {
    let mut files: Vec<(usize, &str)> = Vec::new();
    let mut functions: Vec<(Function, &str)> = Vec::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| !is_test(path)) {
        let text = without_tests(text);
        files.push((text.lines().count(), path));
        functions.extend(
            Source::new(text)
                .functions()
                .into_iter()
                .map(|function| (function, path)),
        );
    }
    files.sort_unstable_by(|a, b| b.cmp(a));
    functions.sort_by_key(|(function, _)| Reverse(function.lines));

    let mut out = String::new();
    let total: usize = files.iter().map(|(lines, _)| lines).sum();
    let median = files.get(files.len() / 2).map_or(0, |(lines, _)| *lines);
    let _ = writeln!(
        out,
        "{} files, {total} lines, median {median} (tests not counted)",
        files.len()
    );
    let _ = writeln!(out, "files of more than {FILE_LINES_SEEN} lines:");
    for (lines, path) in files.iter().filter(|(lines, _)| *lines > FILE_LINES_SEEN) {
        let _ = writeln!(out, "  {lines:5}  {path}");
    }
    let _ = writeln!(out, "longest functions:");
    for (function, path) in functions.iter().take(FUNCTIONS_SHOWN) {
        let _ = writeln!(
            out,
            "  {:5}  {} at {path}:{}",
            function.lines, function.name, function.line
        );
    }
    out
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/") || path.contains("/benches/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_and_functions_are_listed_and_tests_are_not_counted() {
        let long = format!("fn tall() {{\n{}}}\n", "    step();\n".repeat(700));
        let tested = format!(
            "fn low() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n",
            "    // line\n".repeat(700)
        );
        let tree = Tree::of(&[
            ("a/src/long.rs", long.as_str()),
            ("a/src/tested.rs", tested.as_str()),
            ("a/tests/big.rs", long.as_str()),
        ]);
        let report = report(&tree);
        assert!(report.contains("702  a/src/long.rs"), "{report}");
        assert!(report.contains("702  tall at a/src/long.rs:1"), "{report}");
        assert!(
            !report.contains("a/src/tested.rs\n") && !report.contains("big.rs"),
            "{report}"
        );
    }
}
