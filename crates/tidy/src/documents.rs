//! Checks that every path and every item that a document names exists, so that documents cannot become outdated
//! unnoticed.
//!
//! A *path* is a link's target, a quoted word with a known ending (`.rs`, `.md`, `.toml`), a quoted word below a
//! directory of the root, or any word below `crates/`, `docs/` or `bench/`, also in comments of the code. An *item* is
//! a quoted `Type::member`, `SOME_BOUND`, `CamelCase` or `call()`; its identifiers must occur in the code, not only in
//! comments. A cited *decision* is the word "decision" and a number of four digits, to which a page must belong.

use crate::source::{Source, words};
use crate::tree::{Finding, Tree};
use std::collections::BTreeSet;

/// Directories whose files are recognised as paths without quotes.
const ROOTS: [&str; 4] = ["crates/", "docs/", "bench/", ".ci/"];

/// File extensions that make a quoted word a path of the project.
const ENDINGS: [&str; 3] = [".rs", ".md", ".toml"];

/// First path segments of items that other crates define.
const FOREIGN: [&str; 3] = ["std", "core", "alloc"];

/// First path segment that stands for any name, so that the path need not exist.
const PLACEHOLDER: &str = "NAME/";

/// Checks every Markdown file, and the comments of every Rust file.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let known = identifiers(tree);
    let decisions = decisions(tree);
    for (path, text) in tree.ending(".md") {
        let mut fenced = false;
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let mut report = |text: String| findings.push(Finding::new(path, number + 1, text));
            loose_paths(tree, line, &mut report);
            cited_decisions(&decisions, line, &mut report);
            if fenced {
                continue;
            }
            for target in link_targets(line) {
                // Pages inside a crate's source are included in the crate's documentation, whose links rustdoc checks.
                if path.contains("/src/") && (target.contains("::") || target.contains('@')) {
                    continue;
                }
                if !link_exists(tree, path, target) {
                    report(format!("links to {target}, which does not exist"));
                }
            }
            for quoted in line.split('`').skip(1).step_by(2) {
                if is_missing_path(tree, path, quoted) {
                    report(format!("names the path `{quoted}`, which does not exist"));
                }
                if let Some(missing) = missing_item(&known, quoted) {
                    report(format!("names `{quoted}`, but no code knows {missing}"));
                }
            }
        }
    }
    for (path, text) in tree.ending(".rs") {
        for (number, line) in Source::new(text).comments.lines().enumerate() {
            let mut report = |text| findings.push(Finding::new(path, number + 1, text));
            loose_paths(tree, line, &mut report);
            cited_decisions(&decisions, line, &mut report);
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

fn identifiers(tree: &Tree) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, text) in tree.ending(".rs") {
        known.extend(Source::new(text).words().map(str::to_string));
    }
    known
}

/// The numbers of the pages in docs/decisions.
fn decisions(tree: &Tree) -> BTreeSet<&str> {
    let pages = tree.ending(".md");
    let numbers = pages.filter_map(|(path, _)| path.strip_prefix("docs/decisions/")?.get(..4));
    numbers.collect()
}

/// Checks the numbers after the word "decision" or "decisions".
fn cited_decisions(known: &BTreeSet<&str>, line: &str, report: &mut impl FnMut(String)) {
    let mut is_cited = false;
    for word in line.split(|c: char| !c.is_ascii_alphanumeric()) {
        let is_number = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
        if is_cited && is_number && !known.contains(word) {
            report(format!("cites decision {word}, which has no page"));
        }
        let goes_on = is_number || matches!(word, "" | "and" | "to");
        is_cited = is_cited && goes_on || word.eq_ignore_ascii_case("decision");
        is_cited |= word.eq_ignore_ascii_case("decisions");
    }
}

fn is_path_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./".contains(c)
}

/// Checks paths below a known directory, anywhere in the line and without quotes.
fn loose_paths(tree: &Tree, line: &str, report: &mut impl FnMut(String)) {
    for word in line.split(|c: char| !(is_path_character(c) || "*<>{}".contains(c))) {
        let word = word.trim_end_matches('.');
        let known = ROOTS
            .iter()
            .any(|root| word.starts_with(root) && word.len() > root.len());
        if known && word.chars().all(is_path_character) && !tree.exists(word) {
            report(format!("names {word}, which does not exist"));
        }
    }
}

fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(')')?.0))
}

fn link_exists(tree: &Tree, document: &str, target: &str) -> bool {
    let target = target.split('#').next().unwrap_or_default();
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return true;
    }
    tree.exists(&resolve(document, target))
}

/// Resolves the relative path `target` from the directory of `document`, following `..`.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_missing_path(tree: &Tree, document: &str, quoted: &str) -> bool {
    if !quoted.chars().all(is_path_character) || quoted.starts_with(PLACEHOLDER) {
        return false;
    }
    let ending = ENDINGS
        .iter()
        .any(|ending| quoted.len() > ending.len() && quoted.ends_with(ending));
    let below_root = quoted
        .split_once('/')
        .is_some_and(|(first, _)| !first.is_empty() && tree.exists(first));
    (ending || below_root)
        && !tree.exists_somewhere(quoted)
        && !tree.exists(&resolve(document, quoted))
}

/// The first identifier of a quoted item that does not occur in the code; `None` if all identifiers occur.
fn missing_item<'a>(known: &BTreeSet<String>, quoted: &'a str) -> Option<&'a str> {
    let call = quoted.ends_with("()");
    let item = quoted
        .trim_start_matches('&')
        .trim_end_matches("()")
        .trim_end_matches('!');
    let segments: Vec<&str> = item.split("::").collect();
    let plain = |segment: &&str| {
        words(segment).next() == Some(*segment)
            && !segment.starts_with(|c: char| c.is_ascii_digit())
    };
    if !segments.iter().all(plain) || FOREIGN.contains(&segments[0]) {
        return None;
    }
    if segments.len() == 1 && !call && !is_bound(item) && !is_camel(item) {
        return None;
    }
    let language = ["crate", "self", "Self", "super"];
    segments
        .into_iter()
        .find(|&segment| !language.contains(&segment) && !known.contains(segment))
}

/// True if a word looks like the name of a constant: `SOME_BOUND`.
fn is_bound(word: &str) -> bool {
    word.contains('_')
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// True if a word is `CamelCase` of two or more parts, each with a lowercase letter.
fn is_camel(word: &str) -> bool {
    let starts = |pair: &[u8]| pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase();
    word.starts_with(|c: char| c.is_ascii_uppercase())
        && word.chars().all(|c| c.is_ascii_alphanumeric())
        && word
            .as_bytes()
            .windows(2)
            .filter(|pair| starts(pair))
            .count()
            >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "//! See docs/guide.md.\npub struct PageRef; // GhostWord\nimpl PageRef { fn seal_page() {} }\nconst ROWS_MAX: u8 = 1;\n";

    fn found(guide: &str, code: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("docs/guide.md", guide),
            (
                "README.md",
                "Read [it](docs/guide.md#part), `docs/guide.md` and <https://example.com>.",
            ),
            ("crates/a/src/lib.rs", code),
        ]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn existing_names_pass() {
        let guide = "`lib.rs`, `a/src/lib.rs`, `guide.md`, [up](../README.md), crates/a/src/lib.rs, crates/*/src, `NAME/tests.rs`,\n`PageRef::seal_page`, `PageRef`, `seal_page()`, `ROWS_MAX`, `std::io::Error`, `x/y`, `1::2`, `NaN`\n```\ncrates/a/src\n```\n";
        assert_eq!(found(guide, CODE), [""; 0]);
    }

    #[test]
    fn a_missing_path_is_reported() {
        for guide in [
            "`gone.rs`",
            "`docs/gone`",
            "[x](gone.md)",
            "see crates/gone.",
            "```\ncrates/gone/src\n```",
            "[x](../docs/gone.md)",
            "`src/gone.rs`",
        ] {
            assert_eq!(found(guide, CODE).len().min(1), 1, "{guide}");
        }
        assert_eq!(found("", &CODE.replace("guide", "gone")).len(), 1);
    }

    #[test]
    fn a_cited_decision_has_a_page() {
        let cited = |text: &str| {
            let tree = Tree::of(&[("docs/decisions/0100-a.md", "# 0100"), ("README.md", text)]);
            check(&tree).len()
        };
        assert_eq!(cited("Decision 0100, decisions 0100 and 0100, in 2026."), 0);
        assert_eq!(cited("decision 0101"), 1);
        assert_eq!(cited("(decisions 0100, 0101, 0102)"), 2);
    }

    #[test]
    fn a_missing_item_is_reported() {
        for guide in [
            "`PageRef::gone`",
            "`Gone::seal_page`",
            "`gone()`",
            "`GONE_MAX`",
            "`PageGone`",
            "`GhostWord`",
        ] {
            assert_eq!(found(guide, CODE).len(), 1, "{guide}");
        }
    }
}
