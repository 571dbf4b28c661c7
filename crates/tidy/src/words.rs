//! Counts habits of language that slow readers down, in the comments of each crate: headless relative clauses,
//! pronouns of persons for code, negated nouns, and old words for "after" and "again". [`PATTERNS`] lists them.

use crate::source::{Source, words};
use crate::tree::{Finding, Tree};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The patterns that are counted, each with its maximum number per thousand lines of comments.
pub const PATTERNS: [(&str, usize); 6] = [
    ("what", 4),
    ("who", 2),
    ("whoever, nobody, somebody", 2),
    ("is no, that is none", 2),
    ("that of, those of, those that", 2),
    ("behind, anew", 2),
];

/// Number of comment lines, and number of occurrences of each pattern in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of comment lines that are not empty.
    pub lines: usize,
    /// Number of occurrences of each pattern, in the order of [`PATTERNS`].
    pub found: [usize; PATTERNS.len()],
}

impl Count {
    /// Counts the patterns in the comments of one file.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let comments = Source::new(text).comments;
        let lines = comments.lines().filter(|line| !line.trim().is_empty());
        let mut count = Self {
            lines: lines.count(),
            ..Self::default()
        };
        let words: Vec<String> = words(&comments).map(str::to_lowercase).collect();
        for (at, word) in words.iter().enumerate() {
            let before = at
                .checked_sub(1)
                .map_or("", |before| words[before].as_str());
            let next = words.get(at + 1).map_or("", String::as_str);
            let after = words.get(at + 2).map_or("", String::as_str);
            let pattern = match (word.as_str(), next) {
                ("what", _) => 0,
                ("who", _) => 1,
                ("whoever" | "nobody" | "somebody", _) => 2,
                // A sentence that begins with "there" is plain English.
                ("is", "no") if after != "longer" && before != "there" => 3,
                ("is" | "are", "none") if before != "there" => 3,
                ("that", "of") | ("those", "of" | "that") => 4,
                ("behind", _) if before != "write" => 5,
                ("anew", _) => 5,
                _ => continue,
            };
            count.found[pattern] += 1;
        }
        count
    }

    fn add(&mut self, other: Self) {
        self.lines += other.lines;
        for (own, other) in self.found.iter_mut().zip(other.found) {
            *own += other;
        }
    }

    /// Number of occurrences of each pattern per thousand lines of comments.
    #[must_use]
    pub fn per_thousand(self) -> [f64; PATTERNS.len()] {
        #[expect(clippy::cast_precision_loss, reason = "counts of lines")]
        self.found
            .map(|found| found as f64 * 1000.0 / self.lines.max(1) as f64)
    }
}

/// The counts of patterns by crate.
#[must_use]
pub fn by_crate(tree: &Tree) -> BTreeMap<String, Count> {
    let mut crates: BTreeMap<String, Count> = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        let name = match path.split('/').collect::<Vec<_>>()[..] {
            ["crates", name, ..] => name,
            ["bench", ..] => "bench",
            _ => continue,
        };
        crates
            .entry(name.to_owned())
            .or_default()
            .add(Count::of(text));
    }
    crates
}

/// Compares the comments of each crate with the maxima of the patterns.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, count) in by_crate(tree) {
        for ((pattern, most), found) in PATTERNS.iter().zip(count.found) {
            if found * 1000 > most * count.lines.max(1) {
                let lines = count.lines;
                let text = format!(
                    "{found} occurrences of \"{pattern}\" in {lines} lines of comments; the maximum is {most} per thousand"
                );
                findings.push(Finding::new(&format!("crates/{name}"), 0, text));
            }
        }
    }
    findings
}

/// The number of occurrences of each pattern per thousand lines of comments as a table, one line per crate.
#[must_use]
pub fn report(tree: &Tree) -> String {
    let mut out = String::from("habits in a thousand lines of comments\n");
    let _ = write!(out, "{:10} {:>6}", "crate", "lines");
    for (name, most) in PATTERNS {
        let _ = write!(out, "  {name} (at most {most})");
    }
    out.push('\n');
    for (name, count) in by_crate(tree) {
        let _ = write!(out, "{name:10} {:>6}", count.lines);
        for ((pattern, _), found) in PATTERNS.iter().zip(count.per_thousand()) {
            let width = pattern.len() + 14;
            let _ = write!(out, "{found:>width$.1}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_are_counted_in_comments_alone() {
        let text = "//! What is away, and who has it, behind that.\n\
                    /// The row is no longer there; a text that is none. Those of others, that of a row.\n\
                    fn what() { let s = \"who\"; } // nobody knows\n";
        let count = Count::of(text);
        assert_eq!(count.lines, 3);
        assert_eq!(count.found, [1, 1, 1, 1, 2, 1]);
        assert!((count.per_thousand()[4] - 666.7).abs() < 0.1);
    }

    #[test]
    fn a_crate_keeps_to_the_maxima() {
        let plain = "// The writer lock is free.\n".repeat(600);
        let found = |text: &str| check(&Tree::of(&[("crates/kv/src/lib.rs", text)])).len();
        assert_eq!(found(&format!("{plain}// what who\n")), 0);
        assert_eq!(found(&format!("{plain}// what what what, who who\n")), 2);
    }

    #[test]
    fn counts_are_kept_by_crate() {
        let tree = Tree::of(&[
            ("crates/kv/src/lib.rs", "// what\n"),
            ("crates/kv/tests/a.rs", "// who\n"),
            ("bench/src/main.rs", "// none\n"),
        ]);
        let counts = by_crate(&tree);
        assert_eq!(counts["kv"].found, [1, 1, 0, 0, 0, 0]);
        assert_eq!(counts["bench"].lines, 1);
        assert!(report(&tree).contains("kv"));
    }
}
