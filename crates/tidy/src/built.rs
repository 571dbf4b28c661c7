//! Measures code size: number of lines by crate, and section sizes of compiled programs.

use crate::source::without_tests;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The crates of the engine, whose code size is added up.
const LIBRARY: [&str; 7] = [
    "codec", "delta", "disk", "kv", "pager", "series", "tidalite",
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
pub fn lines_by_room(tree: &Tree) -> BTreeMap<String, (usize, usize)> {
    let mut rooms: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for (path, text) in tree.ending(".rs") {
        let mut parts = path.split('/');
        let (Some("crates"), Some(room), Some("src")) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        if path.ends_with("/tests.rs") || path.contains("/src/tests/") {
            continue;
        }
        let lines = rooms.entry(room.to_owned()).or_default();
        for line in without_tests(text).lines().map(str::trim) {
            lines.0 += 1;
            lines.1 += usize::from(!line.is_empty() && !line.starts_with("//"));
        }
    }
    rooms
}

/// The result of [`lines_by_room`] as a table in text form.
#[must_use]
pub fn report(tree: &Tree) -> String {
    let mut out =
        String::from("room        lines    code (neither blank nor comment; tests not counted)\n");
    let rooms = lines_by_room(tree);
    for (room, (lines, code)) in &rooms {
        let _ = writeln!(out, "{room:10} {lines:6}  {code:6}");
    }
    let sum = |f: fn(&(usize, usize)) -> usize| rooms.values().map(f).sum::<usize>();
    let (lines, code) = (sum(|room| room.0), sum(|room| room.1));
    let _ = writeln!(out, "{:10} {lines:6}  {code:6}", "all");
    let library = rooms
        .iter()
        .filter(|(room, _)| LIBRARY.contains(&room.as_str()));
    let (lines, code) = library.fold((0, 0), |sum, (_, room)| (sum.0 + room.0, sum.1 + room.1));
    let _ = writeln!(out, "{:10} {lines:6}  {code:6}", "library");
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
    fn lines_are_counted_by_room_and_a_program_by_its_sections() {
        let tree = Tree::of(&[
            (
                "crates/a/src/lib.rs",
                "//! a\n\nfn one() {}\n#[cfg(test)]\nmod tests {}\n",
            ),
            ("crates/a/src/b.rs", "fn two() {}\n"),
            ("crates/a/tests/t.rs", "fn not_counted() {}\n"),
        ]);
        let rooms = lines_by_room(&tree);
        assert_eq!(rooms["a"], (4, 2), "{rooms:?}");
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
