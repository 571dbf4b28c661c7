//! Checks that there is no unfinished code, and that no text contains a path of a single machine or a host of a package
//! registry.
//!
//! The searched patterns are assembled from parts, because this file is checked, too.

use crate::source::{Source, words};
use crate::tree::{Finding, Tree};

/// Checks every text file except lock files, whose package sources `arrows` checks.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        if path.ends_with("Cargo.lock") {
            continue;
        }
        if path.ends_with(".rs") {
            findings.extend(unfinished(path, text));
        }
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_ascii_lowercase();
            for place in directories()
                .iter()
                .filter(|place| begins_at(&lower, place))
            {
                let text = format!("{place} is a path of one machine");
                findings.push(Finding::new(path, number + 1, text));
            }
            for host in hosts().iter().filter(|host| lower.contains(host.as_str())) {
                let text = format!("{host} is a host that a build elsewhere may not use");
                findings.push(Finding::new(path, number + 1, text));
            }
        }
    }
    findings
}

fn unfinished(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let source = Source::new(text);
    let macros = [["to", "do!"].concat(), ["unimple", "mented!"].concat()];
    let marks = [["FIX", "ME"].concat(), ["X", "XX"].concat()];
    for (number, (code, comment)) in source.code.lines().zip(source.comments.lines()).enumerate() {
        let mut report = |what: &str| {
            findings.push(Finding::new(
                path,
                number + 1,
                format!("{what} is unfinished work"),
            ));
        };
        for name in macros.iter().filter(|name| begins_at(code, name)) {
            report(name);
        }
        for mark in words(comment).filter(|word| marks.iter().any(|mark| mark == word)) {
            report(mark);
        }
        let attribute = code.trim_start().starts_with("#[");
        // An `#[ignore]` for Miri only is allowed: a test that takes a second elsewhere may take hours under Miri.
        let elsewhere = !code.contains("cfg_attr(miri, ignore = ");
        if attribute && elsewhere && words(code).any(|word| word == "ignore") {
            report("an ignored test");
        }
    }
    findings
}

/// Directories that exist only on a single machine.
fn directories() -> [String; 5] {
    ["root", "home", "work", "users", "mnt"].map(|name| format!("/{name}/"))
}

fn hosts() -> [String; 5] {
    [
        ["crates", ".io"],
        ["pypi", ".org"],
        ["pythonhosted", ".org"],
        ["npmjs", ".org"],
        ["proxy.golang", ".org"],
    ]
    .map(|parts| parts.concat())
}

/// True if the pattern occurs in `line` other than as the continuation of a word or a path.
fn begins_at(line: &str, what: &str) -> bool {
    line.match_indices(what).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_ascii_alphanumeric() || "_./}".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn finished_text_passes() {
        assert_eq!(
            found(
                "a.rs",
                "// ignore this; todo lists\nlet s = \"framework/home/x\"; fn ignore() {}\n"
            ),
            0
        );
        assert_eq!(
            found(
                "a.md",
                "See $HOME/home/x and ../work/x, a registry, $ROOT/root/."
            ),
            0
        );
    }

    #[test]
    fn a_test_may_be_too_slow_for_miri_with_a_reason() {
        let line = |reason| ["#[cfg_attr(miri, ign", "ore", reason, ")]\n"].concat();
        assert_eq!(found("a.rs", &line(" = \"slow\"")), 0);
        assert_eq!(found("a.rs", &line("")), 1);
    }

    #[test]
    fn unfinished_work_is_found() {
        let lines = [
            ["to", "do!()"],
            ["unimple", "mented!()"],
            ["// FIX", "ME later"],
            ["/* X", "XX */"],
            ["#[ign", "ore]"],
            ["#[ign", "ore = \"slow\"]"],
            ["#[cfg_attr(a, ign", "ore)]"],
        ];
        for line in lines {
            assert_eq!(found("a.rs", &line.concat()), 1, "{line:?}");
        }
    }

    #[test]
    fn a_machine_s_path_and_a_registry_s_host_are_found() {
        let lines = [
            ["\"/ho", "me/me/x\""],
            ["in /ro", "ot/.cache"],
            ["/wo", "rk/main"],
            ["https://crates", ".io/x"],
            ["index.crates", ".io"],
            ["files.pythonhosted", ".org"],
        ];
        for line in lines {
            assert_eq!(found("a.md", &line.concat()), 1, "{line:?}");
            assert_eq!(
                found("a.rs", &format!("// {}", line.concat())),
                1,
                "{line:?}"
            );
        }
    }
}
