//! Checks that `unsafe` occurs only in the files that ARCHITECTURE.md lists, that each of these files still needs it,
//! and that each use has a reason above it.

use crate::source::{Source, line_of, word_indices};
use crate::tree::{Finding, Tree};
use std::collections::BTreeSet;

const HEADING: &str = "## Unsafe code";

/// Compares the list of files under the heading "Unsafe code" with the code.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let listed = listed(tree.text("ARCHITECTURE.md").unwrap_or_default());
    for path in &listed {
        if tree.text(path).is_none() {
            let text = format!("lists {path}, which does not exist");
            findings.push(Finding::new("ARCHITECTURE.md", 0, text));
        }
    }
    for (path, text) in tree.ending(".rs") {
        let source = Source::new(text);
        let uses: Vec<usize> = word_indices(&source.code)
            .filter(|(_, word)| *word == "unsafe")
            .map(|(at, _)| line_of(&source.code, at))
            .collect();
        if listed.contains(path) && uses.is_empty() {
            let text = format!("lists {path}, which needs no `unsafe`");
            findings.push(Finding::new("ARCHITECTURE.md", 0, text));
        }
        for line in uses {
            if !listed.contains(path) {
                findings.push(Finding::new(
                    path,
                    line,
                    "`unsafe` in a file that ARCHITECTURE.md does not list",
                ));
            }
            if !has_reason(&source, line) {
                findings.push(Finding::new(
                    path,
                    line,
                    "`unsafe` without a SAFETY comment above it",
                ));
            }
        }
    }
    findings
}

fn listed(architecture: &str) -> BTreeSet<String> {
    architecture
        .lines()
        .skip_while(|line| *line != HEADING)
        .skip(1)
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("- "))
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|quoted| quoted.ends_with(".rs"))
        .map(str::to_string)
        .collect()
}

/// True if a comment with `SAFETY:` or `# Safety` stands on this line or above it, with only comments, attributes and
/// the beginning of the same statement in between.
fn has_reason(source: &Source, line: usize) -> bool {
    let code: Vec<&str> = source.code.lines().map(str::trim).collect();
    let comments: Vec<&str> = source.comments.lines().collect();
    let reason = |at: usize| comments[at].contains("SAFETY:") || comments[at].contains("# Safety");
    let mut at = line - 1;
    loop {
        if reason(at) {
            return true;
        }
        let Some(above) = at.checked_sub(1) else {
            return false;
        };
        let is_comment = !comments[above].trim().is_empty();
        let is_attribute = code[above].starts_with('#') || code[above].ends_with(")]");
        let is_same_statement = !code[above].is_empty() && !code[above].ends_with([';', '{', '}']);
        if !(is_comment || is_attribute || is_same_statement) {
            return false;
        }
        at = above;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A\n\n## Unsafe code\n\n- `crates/a/src/map.rs`: the map\n\n## Next\n\n- `crates/a/src/lib.rs`\n";
    const GOOD: &str = "fn f() {\n    // SAFETY: the pointer is ours.\n    #[expect(unsafe_code, reason = \"map\")]\n    let x =\n        unsafe { g() };\n}\n";

    fn found(map: &str, other: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", LIST),
            ("crates/a/src/map.rs", map),
            ("crates/a/src/lib.rs", other),
        ]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn a_listed_file_with_reasons_passes() {
        assert_eq!(found(GOOD, "// unsafe\nlet a = \"unsafe\";\n"), [""; 0]);
        let documented =
            "/// Does.\n///\n/// # Safety\n/// The caller looks.\npub unsafe fn f() {}\n";
        assert_eq!(found(documented, ""), [""; 0]);
    }

    #[test]
    fn unsafe_outside_the_list_is_found() {
        assert!(found(GOOD, GOOD)[0].contains("does not list"));
    }

    #[test]
    fn unsafe_without_a_reason_is_found() {
        let bare = GOOD.replace("// SAFETY: the pointer is ours.", "let y = 1;");
        assert!(found(&bare, "")[0].contains("SAFETY"));
        let second = GOOD
            .replace("}\n", "}\n    ")
            .replace("unsafe { g() };", "unsafe { g() };\n    unsafe { h() };");
        assert_eq!(found(&second, "").len(), 1);
    }

    #[test]
    fn a_list_that_is_out_of_date_is_found() {
        assert!(found("fn f() {}", "")[0].contains("needs no"));
        let tree = Tree::of(&[("ARCHITECTURE.md", LIST)]);
        assert!(check(&tree)[0].text.contains("does not exist"));
    }
}
