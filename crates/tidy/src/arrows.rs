//! Checks that dependencies between crates match the table in ARCHITECTURE.md, that every crate uses the shared lints,
//! and that the lock file names only the public package source.

use crate::tree::{Finding, Tree};
use std::collections::BTreeSet;

/// The package that any crate may use in its tests.
const TESTKIT: &str = "testkit";

/// The source of every external package, as cargo writes it in the lock file. The text is assembled from parts, because
/// the check in `leftovers` reads this file, too.
fn public_source() -> String {
    ["registry+https://github.com/rust-lang/crates", ".io-index"].concat()
}

/// Compares the dependencies in `crates/*/Cargo.toml` with ARCHITECTURE.md.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let drawn = drawn(tree.text("ARCHITECTURE.md").unwrap_or_default());
    let mut seen = BTreeSet::new();
    for (path, manifest) in tree.ending("/Cargo.toml") {
        let Some(room) = room_of(path) else { continue };
        seen.insert(room);
        let Some((line, allowed, allowed_tests)) = drawn
            .iter()
            .find(|row| row.name == room)
            .map(|row| (row.line, &row.below, &row.tests))
        else {
            findings.push(Finding::new(
                path,
                0,
                format!("room `{room}` is not in ARCHITECTURE.md"),
            ));
            continue;
        };
        let normal = rooms_used(manifest, &["dependencies", "build-dependencies"]);
        for used in normal.difference(allowed) {
            let text = format!(
                "`{room}` depends on `{used}`, an arrow that ARCHITECTURE.md does not draw"
            );
            findings.push(Finding::new(path, 0, text));
        }
        for missing in allowed.difference(&normal) {
            let text = format!("draws `{room}` -> `{missing}`, which {path} does not have");
            findings.push(Finding::new("ARCHITECTURE.md", line, text));
        }
        for used in rooms_used(manifest, &["dev-dependencies"]) {
            // The tests of a crate may need its features.
            let is_own = used == *room;
            if !is_own
                && used != TESTKIT
                && !allowed.contains(&used)
                && !allowed_tests.contains(&used)
            {
                let text = format!(
                    "the tests of `{room}` depend on `{used}`; only `{TESTKIT}` and rooms below may serve tests"
                );
                findings.push(Finding::new(path, 0, text));
            }
        }
        if !section(manifest, "lints").any(|line| line.replace(' ', "") == "workspace=true") {
            findings.push(Finding::new(path, 0, "does not take the workspace's lints"));
        }
    }
    for Row { name, line, .. } in &drawn {
        if !seen.contains(name.as_str()) {
            let text = format!("draws room `{name}`, which is no crate");
            findings.push(Finding::new("ARCHITECTURE.md", *line, text));
        }
    }
    findings.extend(sources(tree));
    findings
}

fn sources(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, lock) in tree
        .texts()
        .filter(|(path, _)| path.ends_with("Cargo.lock"))
    {
        for (number, line) in lock.lines().enumerate() {
            let Some(source) = line.strip_prefix("source = ") else {
                continue;
            };
            if source.trim_matches('"') != public_source() {
                let text = format!("a stranger cannot build from {source}");
                findings.push(Finding::new(path, number + 1, text));
            }
        }
    }
    findings
}

fn room_of(manifest_path: &str) -> Option<&str> {
    let room = manifest_path
        .strip_prefix("crates/")?
        .strip_suffix("/Cargo.toml")?;
    (!room.contains('/')).then_some(room)
}

/// A row of the table in ARCHITECTURE.md that describes the crates.
struct Row {
    name: String,
    line: usize,
    /// The crates on which this crate depends.
    below: BTreeSet<String>,
    /// The crates on which only the tests of this crate depend, listed after `tests:`.
    tests: BTreeSet<String>,
}

fn drawn(architecture: &str) -> Vec<Row> {
    let lines = architecture.lines().enumerate();
    lines
        .skip_while(|(_, line)| !line.starts_with("| crate | purpose"))
        .skip(2)
        .take_while(|(_, line)| line.starts_with('|'))
        .filter_map(|(number, line)| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
            let [room, .., below] = cells.as_slice() else {
                return None;
            };
            let (below, tests) = below.split_once("tests:").unwrap_or((below, ""));
            Some(Row {
                name: room.trim().trim_matches('`').to_string(),
                line: number + 1,
                below: ticked(below),
                tests: ticked(tests),
            })
        })
        .collect()
}

fn ticked(cell: &str) -> BTreeSet<String> {
    let parts = cell.split('`').skip(1).step_by(2);
    parts.map(str::to_string).collect()
}

/// The crates of the project that these sections of a manifest name, for any target.
fn rooms_used(manifest: &str, sections: &[&str]) -> BTreeSet<String> {
    let mut rooms = BTreeSet::new();
    for &name in sections {
        for line in section(manifest, name) {
            rooms.extend(room_named(line));
        }
        // Finds sections such as `[dependencies.tidalite-base]`.
        for header in manifest.lines().map(str::trim) {
            let dotted = header
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            let package = dotted.and_then(|dotted| dotted.rsplit_once('.'));
            if let Some((table, package)) = package
                && is_section(table, name)
            {
                rooms.extend(room_named(package));
            }
        }
    }
    rooms
}

fn is_section(table: &str, name: &str) -> bool {
    table == name || (table.starts_with("target.") && table.ends_with(&format!(".{name}")))
}

fn section<'a>(manifest: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let mut inside = false;
    manifest.lines().map(str::trim).filter(move |line| {
        if let Some(table) = line.strip_prefix('[') {
            inside = is_section(table.trim_end_matches(']'), name);
            return false;
        }
        inside && !line.is_empty() && !line.starts_with('#')
    })
}

/// The crate that a line of a manifest names: `tidalite-kv.workspace = true` gives `kv`; the public crate is
/// `tidalite`.
fn room_named(line: &str) -> Option<String> {
    let package = line.split(['.', '=', ' ']).next()?.trim_matches('"');
    if package == "tidalite" {
        return Some(package.to_string());
    }
    Some(package.strip_prefix("tidalite-")?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str = "# A\n\n| crate | purpose | depends on |\n|---|---|---|\n| `base` | ids | |\n| `kv` | tables | `base` |\n";
    const BASE: &str = "[package]\nname = \"tidalite-base\"\n[lints]\nworkspace = true\n";
    const KV: &str = "[package]\nname = \"tidalite-kv\"\n[lints]\nworkspace = true\n[dependencies]\ntidalite-base.workspace = true\nxxhash-rust = \"1\"\n[dev-dependencies]\ntidalite-testkit.workspace = true\n";

    fn found(base: &str, kv: &str, drawn: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("crates/base/Cargo.toml", base),
            ("crates/kv/Cargo.toml", kv),
            ("ARCHITECTURE.md", drawn),
        ]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn the_drawn_arrows_pass() {
        assert_eq!(found(BASE, KV, DRAWN), [""; 0]);
    }

    #[test]
    fn an_arrow_that_is_not_drawn_is_found() {
        for table in [
            "[dependencies]\ntidalite-kv = { path = \"../kv\" }\n",
            "[dependencies.tidalite-kv]\npath = \"x\"\n",
            "[target.'cfg(unix)'.dependencies]\ntidalite-kv.workspace = true\n",
            "[dev-dependencies]\ntidalite-kv.workspace = true\n",
        ] {
            let found = found(&format!("{BASE}{table}"), KV, DRAWN);
            assert_eq!(found.len(), 1, "{table}: {found:?}");
            assert!(found[0].contains("`kv`"), "{found:?}");
        }
    }

    #[test]
    fn a_drawn_arrow_or_room_that_is_not_there_is_found() {
        let without = KV.replace("tidalite-base.workspace = true\n", "");
        assert!(found(BASE, &without, DRAWN)[0].contains("`kv` -> `base`"));
        let more = format!("{DRAWN}| `index` | hashes | `base` |\n");
        assert!(found(BASE, KV, &more)[0].contains("no crate"));
        let fewer = DRAWN.replace("| `kv` | tables | `base` |\n", "");
        assert!(found(BASE, KV, &fewer)[0].contains("not in ARCHITECTURE.md"));
    }

    #[test]
    fn tests_may_use_the_rooms_behind_their_word_only() {
        let proof = |cell: &str| format!("{DRAWN}| `proof` | reads | {cell} |\n");
        let manifest =
            "[lints]\nworkspace = true\n[dev-dependencies]\ntidalite-kv.workspace = true\n";
        let found = |manifest: &str, cell: &str| {
            let drawn = proof(cell);
            let tree = Tree::of(&[
                ("crates/base/Cargo.toml", BASE),
                ("crates/kv/Cargo.toml", KV),
                ("crates/proof/Cargo.toml", manifest),
                ("ARCHITECTURE.md", &drawn),
            ]);
            check(&tree).len()
        };
        assert_eq!(found(manifest, "tests: `kv`"), 0);
        assert_eq!(found(manifest, ""), 1);
        let normal = manifest.replace("dev-", "");
        assert_eq!(found(&normal, "tests: `kv`"), 1);
    }

    #[test]
    fn a_room_without_the_shared_lints_is_found() {
        let without = BASE.replace("[lints]\nworkspace = true\n", "");
        assert!(found(&without, KV, DRAWN)[0].contains("lints"));
    }

    #[test]
    fn a_private_source_of_packages_is_found() {
        let lock = format!(
            "source = \"{}\"\nsource = \"registry+https://mirror.example/index\"\n",
            public_source()
        );
        let found = sources(&Tree::of(&[("Cargo.lock", lock.as_str())]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }
}
