//! Checks that the licences of everything built into the program or its tests are compatible with MIT OR Apache-2.0.
//!
//! Expressions follow SPDX: `OR` (also the old `/`), `AND`, `WITH`, parentheses. An expression is allowed if some
//! choice of its alternatives needs only allowed licences; so a licence that is not in the list of allowed licences is
//! accepted if it is one of several alternatives.

use crate::tree::Finding;
use std::path::Path;
use std::process::Command;

/// Licences that a dependency may have.
const ALLOWED: [&str; 13] = [
    "MIT",
    "MIT-0",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "BSL-1.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "CC0-1.0",
    "0BSD",
    "Apache-2.0 WITH LLVM-exception",
];

/// Checks the licences of all packages that the workspace needs on this platform, as cargo lists them without the
/// network.
///
/// # Errors
/// If cargo cannot be run or fails.
pub fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--workspace",
            "--offline",
            "--locked",
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
        ])
        .args(["--format", "{p}|{l}"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo does not run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(check_listing(&String::from_utf8_lossy(&output.stdout)))
}

/// Checks the licences in lines of `package|licence expression`.
#[must_use]
pub fn check_listing(listing: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = listing
        .lines()
        // Cargo appends ` (*)` to a package that it has printed before.
        .filter_map(|line| line.trim_end_matches(" (*)").split_once('|'))
        .filter(|(_, licence)| !is_allowed(licence))
        .map(|(package, licence)| {
            Finding::new(
                "Cargo.lock",
                0,
                format!("{package} is under `{licence}`, which is not among the allowed"),
            )
        })
        .collect();
    findings.sort();
    findings.dedup();
    findings
}

/// True if the licence expression can be satisfied with allowed licences only.
#[must_use]
pub fn is_allowed(expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let allowed = any_of(&mut words);
    allowed && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any_of(words: &mut Words<'_>) -> bool {
    let mut allowed = all_of(words);
    while words.next_if_eq(&"OR").is_some() {
        allowed |= all_of(words);
    }
    allowed
}

fn all_of(words: &mut Words<'_>) -> bool {
    let mut allowed = one(words);
    while words.next_if_eq(&"AND").is_some() {
        allowed &= one(words);
    }
    allowed
}

fn one(words: &mut Words<'_>) -> bool {
    let Some(word) = words.next() else {
        return false;
    };
    if word == "(" {
        let allowed = any_of(words);
        return words.next() == Some(")") && allowed;
    }
    if words.next_if_eq(&"WITH").is_some() {
        let exception = words.next().unwrap_or_default();
        return ALLOWED.contains(&format!("{word} WITH {exception}").as_str());
    }
    ALLOWED.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_that_can_be_taken_pass() {
        for expression in [
            "MIT",
            "MIT OR Apache-2.0",
            "MIT/Apache-2.0",
            "Unlicense OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "Zlib AND (GPL-2.0 OR BSL-1.0)",
        ] {
            assert!(is_allowed(expression), "{expression}");
        }
    }

    #[test]
    fn others_are_found() {
        for expression in [
            "",
            "Unlicense",
            "GPL-3.0-only",
            "MIT AND GPL-3.0",
            "MPL-2.0",
            "MIT WITH LLVM-exception",
            "(MIT",
            "MIT MIT",
            "OLDAP-2.8",
            "MIT AND",
            "LGPL-2.1 OR MPL-2.0",
        ] {
            assert!(!is_allowed(expression), "{expression}");
        }
        let found = check_listing(
            "a v1.0.0|MIT\na v1.0.0|MIT (*)\nb v1.0.0|\nb v1.0.0|\nc v2.0.0 (proc-macro)|MPL-2.0\n\n",
        );
        assert_eq!(found.len(), 2);
    }
}
