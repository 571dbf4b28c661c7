//! Measures code size: number of lines by crate, and section sizes of compiled programs.

use crate::source::without_tests;
use crate::tree::{Finding, Tree};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The crates of the library, each with the maximum number of its lines of code. A crate that needs more lines takes
/// them by a change of this table, so that growth is a decision and is seen in a review.
const LIBRARY: [(&str, usize); 11] = [
    ("codec", 7_750),
    ("delta", 7_950),
    ("disk", 3_700),
    ("index", 5_100),
    ("kv", 9_650),
    ("messages", 19_350),
    ("pager", 16_100),
    ("relations", 2_550),
    ("series", 7_400),
    ("tidalite", 30_600),
    ("time", 300),
];

/// Names of the sections of a program that count as code and, below, as constants.
const CODE: &str = ".text";
const CONSTANTS: &str = ".rodata";
/// Length in bytes of the header of a 64-bit ELF file and of a section header, and offsets of fields in the header.
const HEADER_BYTES: usize = 64;
const SECTION_BYTES: usize = 64;
const TABLE_AT: usize = 40;
const COUNT_AT: usize = 60;
const NAMES_AT: usize = 62;

/// Number of lines by crate, without tests: all lines, and lines that are neither blank nor comment.
#[must_use]
pub fn lines_by_crate(tree: &Tree) -> BTreeMap<String, (usize, usize)> {
    let mut crates: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        let mut parts = path.split('/');
        let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if path.ends_with("/tests.rs") || path.contains("/tests/") {
            continue;
        }
        let lines = crates.entry(name.to_owned()).or_default();
        for line in without_tests(text).lines().map(str::trim) {
            lines.0 += 1;
            lines.1 += usize::from(!line.is_empty() && !line.starts_with("//"));
        }
    }
    crates
}

/// The crates of the library with more lines of code than their maximum.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let crates = lines_by_crate(tree);
    let mut findings = Vec::new();
    for (name, most) in LIBRARY {
        let code = crates.get(name).map_or(0, |lines| lines.1);
        if code > most {
            let text = format!("{code} lines of code; the maximum in tidy's table is {most}");
            findings.push(Finding::new(&format!("crates/{name}"), 0, text));
        }
    }
    findings
}

/// The result of [`lines_by_crate`] as a table in text form.
#[must_use]
pub fn report(tree: &Tree) -> String {
    let mut out =
        String::from("crate       lines    code (neither blank nor comment; tests not counted)\n");
    let crates = lines_by_crate(tree);
    let mut row = |name: &str, (lines, code): (usize, usize)| {
        let _ = writeln!(out, "{name:10} {lines:6}  {code:6}");
    };
    let (mut all, mut library) = ((0, 0), (0, 0));
    for (name, lines) in &crates {
        row(name, *lines);
        all = (all.0 + lines.0, all.1 + lines.1);
        if LIBRARY.iter().any(|(member, _)| member == name) {
            library = (library.0 + lines.0, library.1 + lines.1);
        }
    }
    row("all", all);
    row("library", library);
    out
}

/// Number of bytes of machine code and of constants in a 64-bit ELF program; `None` for any other file.
#[must_use]
pub fn sections(elf: &[u8]) -> Option<(u64, u64)> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(elf.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(value))
    };
    if elf.len() < HEADER_BYTES || !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = number(TABLE_AT, 8)? as usize;
    let (count, names) = (number(COUNT_AT, 2)? as usize, number(NAMES_AT, 2)? as usize);
    let section = |index: usize| table.checked_add(index * SECTION_BYTES);
    let names = number(section(names)?.checked_add(24)?, 8)? as usize;
    let (mut code, mut constants) = (0, 0);
    for index in 0..count {
        let at = section(index)?;
        let name = elf.get(names.checked_add(number(at, 4)? as usize)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let bytes = number(at.checked_add(32)?, 8)?;
        if name == CODE.as_bytes() {
            code += bytes;
        } else if name == CONSTANTS.as_bytes() {
            constants += bytes;
        }
    }
    Some((code, constants))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_must_not_outgrow_its_maximum() {
        let long = "fn one() {}\n".repeat(3_701);
        let tree = |name: &str, text: &str| Tree::of(&[(name, text)]);
        assert_eq!(check(&tree("crates/disk/src/a.rs", &long)).len(), 1);
        let most = &long["fn one() {}\n".len()..];
        assert_eq!(check(&tree("crates/disk/src/a.rs", most)), []);
    }

    #[test]
    fn lines_are_counted_by_crate_and_a_program_by_its_sections() {
        let tree = Tree::of(&[
            (
                "crates/a/src/lib.rs",
                "//! a\n\nfn one() {}\n#[cfg(test)]\nmod tests {}\n",
            ),
            ("crates/a/src/b.rs", "fn two() {}\n"),
            ("crates/a/tests/t.rs", "fn not_counted() {}\n"),
        ]);
        let crates = lines_by_crate(&tree);
        assert_eq!(crates["a"], (4, 2), "{crates:?}");
        assert!(
            report(&tree).contains("all             4       2"),
            "{}",
            report(&tree)
        );
        // Measures the test program that is running.
        let own = std::env::current_exe().and_then(std::fs::read);
        let (code, constants) = own
            .ok()
            .and_then(|own| sections(&own))
            .expect("an ELF program");
        assert!(code > 100_000 && constants > 10_000, "{code}, {constants}");
        assert_eq!(sections(b"#!/bin/sh"), None);
    }
}
