//! Checks the parity tables in docs/parity: features of another system, our call for each, and the test that shows it.
//!
//! A row is `| ref | feature | our call | test |`. Calls are quoted items of our code (`Type::member`, `call()`) or
//! words of the program (`tidalite check --json`); tests are quoted as `path/file.rs::test_name`, and must be
//! functions that the test runner executes. Each named item must be declared in the stated place. For `Type::member`,
//! users of the library must be able to name the type: the library's root file exports it, and the crate that defines
//! it has the member. A row without a call gives a reason: *left out: ...*, or *missing: ...* for features to be
//! built; only such rows may lack a test.

use crate::source::Source;
use crate::tree::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

const FOLDER: &str = "docs/parity/";
const LEFT_OUT: &str = "left out:";
const MISSING: &str = "missing:";
/// Keywords that stand before the name in a declaration.
const DECLARING: [&str; 9] = [
    "fn",
    "struct",
    "enum",
    "trait",
    "const",
    "type",
    "mod",
    "static",
    "macro_rules",
];

/// The rows that each table must have: the prefix of the row numbers, and the number of rows, numbered from 1.
const REQUIRED: [(&str, &str, usize); 18] = [
    ("docs/parity/flespi.md", "F", 14),
    ("docs/parity/flespi.md", "M", 33),
    ("docs/parity/flespi.md", "Q", 30),
    ("docs/parity/libmdbx.md", "P", 7),
    ("docs/parity/libmdbx.md", "S", 48),
    ("docs/parity/libmdbx.md", "C", 30),
    ("docs/parity/libmdbx.md", "E", 7),
    ("docs/parity/lmdb-timeseries-engine.md", "H", 48),
    ("docs/parity/numeric-bplus-tree.md", "N", 45),
    ("docs/parity/numeric-bplus-tree.md", "T", 25),
    ("docs/parity/raptordb.md", "R", 28),
    ("docs/parity/raptordb.md", "A", 19),
    ("docs/parity/raptordb.md", "G", 6),
    ("docs/parity/raptordb.md", "K", 12),
    ("docs/parity/raptordb.md", "V", 19),
    ("docs/parity/raptordb.md", "D", 12),
    ("docs/parity/raptordb.md", "H", 19),
    ("docs/parity/raptordb.md", "U", 17),
];

/// Folder of the library's code, and (below) the file with the public names of the library and of the crates below the
/// library.
const LIBRARY: &str = "crates/tidalite/src/";
const EXPORTS: &str = "crates/tidalite/src/lib.rs";

/// Checks every parity table.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let code = Code::of(tree);
    let mut refs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in tree.ending(".md") {
        if !path.starts_with(FOLDER) {
            continue;
        }
        if text.lines().find_map(row).is_none() {
            findings.push(Finding::new(path, 0, "has no rows"));
        }
        for (number, line) in text.lines().enumerate() {
            let Some([reference, _, call, test]) = row(line) else {
                continue;
            };
            refs.entry(path).or_default().insert(reference);
            let mut report = |text: String| findings.push(Finding::new(path, number + 1, text));
            for problem in code.problems(call, test) {
                report(format!("{reference}: {problem}"));
            }
        }
    }
    for (path, prefix, count) in REQUIRED {
        let found = refs.get(path);
        for number in 1..=count {
            let wanted = format!("{prefix}{number}");
            if !found.is_some_and(|found| found.contains(wanted.as_str())) {
                findings.push(Finding::new(path, 0, format!("has no row for {wanted}")));
            }
        }
    }
    findings
}

/// The cells of a row of a parity table; `None` for the table's header and for other lines.
fn row(line: &str) -> Option<[&str; 4]> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    let cells: [&str; 4] = cells.try_into().ok()?;
    let head = cells[0] == "ref" || cells[0].starts_with("--");
    (!head).then_some(cells)
}

fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Index of all declarations in the code.
struct Code<'t> {
    tree: &'t Tree,
    files: Vec<File<'t>>,
    /// The names that the library exports, each with the folder of the crate that defines the name.
    exports: BTreeMap<String, String>,
    /// All words in the source of the command-line program.
    program: String,
}

/// A source file under `src`.
struct File<'t> {
    path: &'t str,
    /// The names that the file declares.
    declared: BTreeSet<String>,
    words: BTreeSet<String>,
}

impl<'t> Code<'t> {
    fn of(tree: &'t Tree) -> Self {
        let mut files = Vec::new();
        let mut program = String::new();
        for (path, text) in tree.ending(".rs") {
            if path.contains("/src/") {
                let source = Source::new(text);
                files.push(File {
                    path,
                    declared: declared(&source),
                    words: source.words().map(str::to_string).collect(),
                });
            }
            if path.starts_with("crates/cli/src/") {
                program += text;
            }
        }
        Self {
            tree,
            files,
            exports: exports(tree),
            program,
        }
    }

    fn problems(&self, call: &str, test: &str) -> Vec<String> {
        for excuse in [LEFT_OUT, MISSING] {
            if let Some(why) = call.strip_prefix(excuse) {
                let short = why.trim().len() < 10;
                return Vec::from_iter(short.then(|| format!("`{excuse}` needs a reason")));
            }
        }
        let mut problems = Vec::new();
        let calls: Vec<&str> = quoted(call).collect();
        if calls.is_empty() {
            problems.push("names no call, and does not say why".into());
        }
        for item in calls {
            problems.extend(self.call_problem(item));
        }
        let tests: Vec<&str> = quoted(test).collect();
        if tests.is_empty() {
            problems.push("names no test".into());
        }
        for test in tests {
            if let Some(problem) = self.test_problem(test) {
                problems.push(problem);
            }
        }
        problems
    }

    /// Checks that a call exists: `tidalite words --and-options`, `Type::member`, `call()`, or `NAME`. Returns the
    /// problem if there is one.
    fn call_problem(&self, item: &str) -> Option<String> {
        let nowhere = || Some(format!("`{item}` is not declared anywhere"));
        if let Some(line) = item.strip_prefix("tidalite ") {
            let mut words = line.split_whitespace();
            return match words.all(|word| self.program_knows(word)) {
                true => None,
                false => nowhere(),
            };
        }
        let path = item.trim_end_matches("()");
        let Some((owner, member)) = path.split_once("::") else {
            let mut files = self.files.iter();
            return match files.any(|file| file.declared.contains(path)) {
                true => None,
                false => nowhere(),
            };
        };
        let Some(folder) = self.exports.get(owner) else {
            return Some(format!(
                "`{owner}` of `{item}` is not public in the library"
            ));
        };
        // A member is declared in the file of its type, or in a file that names the type (`impl Type`).
        let has = |file: &File<'_>| {
            file.path.starts_with(folder)
                && file.declared.contains(member)
                && file.words.contains(owner)
        };
        match self.files.iter().any(has) {
            true => None,
            false => nowhere(),
        }
    }

    fn program_knows(&self, word: &str) -> bool {
        if let Some(option) = word.strip_prefix("--") {
            let field = option.replace('-', "_");
            return self.program.contains(&format!("pub {field}:"))
                || self.program.contains(&format!("\"{option}\""));
        }
        let mut variant = word.to_string();
        if let Some(first) = variant.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        word.chars().all(|c| c.is_ascii_uppercase() || c == '.')
            || self.program.contains(&format!("{variant}("))
            || self.program.contains(&format!("\n    {variant} {{"))
    }

    fn test_problem(&self, test: &str) -> Option<String> {
        let (path, name) = test.split_once("::").unwrap_or((test, ""));
        let Some(text) = self.tree.text(path) else {
            return Some(format!("there is no file {path}"));
        };
        if name.is_empty() {
            return path
                .ends_with(".rs")
                .then(|| format!("`{test}` names no test in the file"));
        }
        let source = Source::new(text);
        let functions = source.functions();
        let mut named = functions.iter().filter(|function| function.name == name);
        let there = named.any(|function| is_test(&source.code, function.line));
        (!there).then(|| format!("{path} has no test {name}"))
    }
}

/// True if the function whose `fn` is on this line has the attribute `#[test]`, and not `#[ignore]`.
fn is_test(code: &str, line: usize) -> bool {
    let before: Vec<&str> = code.lines().take(line - 1).map(str::trim).collect();
    let attributes = before.iter().rev();
    let attributes = attributes.take_while(|line| !line.ends_with(['}', '{', ';']));
    let has = |name: &str| attributes.clone().any(|line| line.starts_with(name));
    has("#[test]") && !has("#[ignore")
}

/// The names that the library's root file exports, each with the folder of the crate that defines the name: the
/// library's own files may re-export items of a crate below the library.
fn exports(tree: &Tree) -> BTreeMap<String, String> {
    let mut below = BTreeMap::new();
    let mut found = BTreeMap::new();
    let modules = public_modules(tree);
    for (path, text) in tree.ending(".rs") {
        if !path.starts_with(LIBRARY) {
            continue;
        }
        for (from, name) in handed_on(&Source::new(text).code) {
            let folder = match from.strip_prefix("tidalite_") {
                Some(room) => format!("crates/{room}/src/"),
                None => LIBRARY.to_owned(),
            };
            if path == EXPORTS || modules.iter().any(|module| module == path) {
                found.insert(name, folder);
            } else if folder != LIBRARY {
                below.insert(name, folder);
            }
        }
    }
    for (name, folder) in &mut found {
        if folder == LIBRARY
            && let Some(other) = below.remove(name)
        {
            *folder = other;
        }
    }
    found
}

/// The first files (`mod.rs`) of the folders that `lib.rs` makes public.
fn public_modules(tree: &Tree) -> Vec<String> {
    let root = tree.ending(".rs").find(|(path, _)| *path == EXPORTS);
    let lines = root.into_iter().flat_map(|(_, text)| text.lines());
    let names = lines.filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    names
        .map(|name| format!("{LIBRARY}{name}/mod.rs"))
        .collect()
}

/// The names in each `pub use` of a file: the first segment of the path, and the exported name.
fn handed_on(code: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for part in code.split("pub use ").skip(1) {
        let Some((path, _)) = part.split_once(';') else {
            continue;
        };
        let (first, rest) = path.split_once("::").unwrap_or((path, path));
        let names = rest.trim_end().strip_suffix('}').map_or(rest, |list| {
            list.split_once('{').map_or(list, |(_, names)| names)
        });
        for name in names.split(',') {
            let name = name.rsplit(" as ").next().unwrap_or(name);
            let name = name.rsplit("::").next().unwrap_or(name).trim();
            if !name.is_empty() {
                all.push((first.trim().to_owned(), name.to_owned()));
            }
        }
    }
    all
}

/// The names that a file declares: items, and the variants and fields at the beginning of a line.
fn declared(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let words: Vec<&str> = source.words().collect();
    for pair in words.windows(2) {
        if DECLARING.contains(&pair[0]) {
            found.insert(pair[1].to_string());
        }
    }
    for line in source.code.lines() {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let name: String = line
            .chars()
            .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let rest = line[name.len()..].trim_start();
        if !name.is_empty() && (rest.is_empty() || rest.starts_with([',', ':', '{', '(', '='])) {
            found.insert(name);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIB: &str = "pub use store::{Store, Verify};\npub use tidalite_pager::{\n    Look, Error as StoreError,\n};\n";
    const BELOW: &str = "pub struct Look {\n    pub bytes: u64,\n}\npub struct Pager;\nimpl Pager { pub fn stat(&self) {} }\n";
    const CODE: &str = "pub struct Store;\nimpl Store { pub fn pin(&self) {} }\npub enum Verify {\n    Always,\n}\n";
    const TEST: &str = "#[test]\n// Why.\n#[cfg_attr(\n    miri,\n    ignore\n)]\nfn a_pin_holds() {}\n\nfn a_pin() {}\n\n#[test]\n#[ignore]\nfn a_pin_sleeps() {}\n";
    const ARGS: &str =
        "enum Command {\n    Check(CheckArgs),\n}\nstruct CheckArgs {\n    pub json: bool,\n}\n";

    fn found(rows: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/tidalite/src/lib.rs", LIB),
            ("crates/tidalite/src/store.rs", CODE),
            ("crates/pager/src/lib.rs", BELOW),
            ("crates/a/tests/pins.rs", TEST),
            ("crates/cli/src/args/mod.rs", ARGS),
            ("docs/parity/other.md", rows),
        ]);
        let findings = check(&tree).into_iter();
        let of_it = findings.filter(|finding| finding.file == "docs/parity/other.md");
        of_it.map(|finding| finding.text).collect()
    }

    #[test]
    fn true_rows_pass() {
        let rows = "| ref | feature | our call | test |\n|---|---|---|---|\n\
            | P1 | pins | `Store::pin` | `crates/a/tests/pins.rs::a_pin_holds` |\n\
            | P2 | check | `tidalite check --json`, `Verify::Always` | `crates/a/tests/pins.rs::a_pin_holds` |\n\
            | P5 | below | `Look::bytes`, `Pager` | `crates/a/tests/pins.rs::a_pin_holds` |\n\
            | P3 | Windows | left out: this is a Linux library | |\n\
            | P4 | later | missing: nobody built it yet | |\n";
        assert_eq!(found(rows), [""; 0]);
    }

    #[test]
    fn missing_names_are_reported() {
        for rows in [
            "| P1 | pins | `Store::unpin` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `Stone::pin` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `Pager::stat` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `Store::bytes` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `Pinner` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `Store::pin` | `crates/a/tests/pins.rs::a_pin_drops` |",
            "| P1 | pins | `Store::pin` | `crates/a/tests/pins.rs::a_pin` |",
            "| P1 | pins | `Store::pin` | `crates/a/tests/pins.rs::a_pin_sleeps` |",
            "| P1 | pins | `Store::pin` | `crates/a/tests/gone.rs::a_pin_holds` |",
            "| P1 | pins | `Store::pin` | `crates/a/tests/pins.rs` |",
            "| P1 | pins | `Store::pin` | |",
            "| P1 | pins | yes | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `tidalite pins` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | `tidalite check --xml` | `crates/a/tests/pins.rs::a_pin_holds` |",
            "| P1 | pins | left out: | |",
            "| P1 | pins | missing: | |",
        ] {
            assert_eq!(found(rows).len(), 1, "{rows}");
        }
    }

    #[test]
    fn a_table_that_must_have_a_row_has_it() {
        let tree = Tree::of(&[(
            "docs/parity/libmdbx.md",
            "| P1 | x | left out: no meaning here | |",
        )]);
        // Each required row gives a finding, except the row that exists.
        let required: usize = REQUIRED.iter().map(|(_, _, count)| count).sum();
        assert_eq!(check(&tree).len(), required - 1);
    }

    #[test]
    fn a_table_without_rows_is_ignored() {
        assert_eq!(
            found("| ref | feature | our call | test |\n|---|---|---|---|\n"),
            ["has no rows"]
        );
    }
}
