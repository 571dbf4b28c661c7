//! Checks that imports inside a crate point down: there are no cycles between files, and no imports from a folder to a
//! folder above it in the list of ARCHITECTURE.md.

use crate::imports::Imports;
use crate::tree::{Finding, Tree};
use std::collections::BTreeSet;

/// Compares the imports of each crate with the table of layers in ARCHITECTURE.md.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let drawn = drawn(tree.text("ARCHITECTURE.md").unwrap_or_default());
    for krate in crates(tree) {
        if !drawn.iter().any(|(listed, ..)| *listed == krate) {
            let text = format!("does not list the layers of `{krate}`");
            findings.push(Finding::new("ARCHITECTURE.md", 0, text));
        }
    }
    for (krate, line, layers) in drawn {
        let src = sources_of(&krate);
        let imports = Imports::read(tree, &src);
        if imports.files.is_empty() {
            let text = format!("lists the layers of `{krate}`, which is no crate");
            findings.push(Finding::new("ARCHITECTURE.md", line, text));
        }
        findings.extend(upward(&imports, &src, &layers));
        for layer in &layers {
            if !imports.files.iter().any(|file| is_of(file, layer)) {
                let text = format!("`{krate}` has no folder or file `{layer}`");
                findings.push(Finding::new("ARCHITECTURE.md", line, text));
            }
        }
        for cycle in imports.cycles() {
            let text = format!(
                "{} files import each other: {}",
                cycle.len(),
                cycle.join(", ")
            );
            findings.push(Finding::new(&src, 0, text));
        }
    }
    findings
}

/// The names of the crates of the project.
fn crates(tree: &Tree) -> BTreeSet<String> {
    let roots = tree.texts().filter_map(|(path, _)| {
        let name = match path.split('/').collect::<Vec<_>>()[..] {
            ["crates", name, "src", "lib.rs" | "main.rs"] => name,
            ["bench", "src", "main.rs"] => "bench",
            _ => return None,
        };
        Some(name.to_owned())
    });
    roots.collect()
}

fn sources_of(krate: &str) -> String {
    match krate {
        "bench" => "bench/src".to_owned(),
        _ => format!("crates/{krate}/src"),
    }
}

/// Finds imports that lead to a layer above the importing file, and files that belong to no layer.
fn upward(imports: &Imports, src: &str, layers: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let layer = |file: &str| layers.iter().position(|layer| is_of(file, layer));
    for file in &imports.files {
        if layer(file).is_none() && !is_root(file) {
            let text = "is in none of the layers that ARCHITECTURE.md lists";
            findings.push(Finding::new(&format!("{src}/{file}"), 0, text));
        }
    }
    for import in &imports.imports {
        let (from, to) = (layer(&import.from), layer(&import.to));
        let is_up = match (from, to) {
            (Some(from), Some(to)) => from < to,
            // The root file of the crate is above all layers.
            (Some(_), None) => is_root(&import.to),
            _ => false,
        };
        if is_up {
            let text = format!(
                "imports `{}` from `{}`, which is above",
                import.path, import.to
            );
            findings.push(Finding::new(
                &format!("{src}/{}", import.from),
                import.line,
                text,
            ));
        }
    }
    findings
}

fn is_root(file: &str) -> bool {
    file == "lib.rs" || file == "main.rs"
}

/// True if a file belongs to a layer: the layer `txn` is the file `txn.rs` and everything in `txn/`.
fn is_of(file: &str, layer: &str) -> bool {
    let rest = file.strip_prefix(layer);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// The rows of the table with the header `| crate | layers`: the crate, the line of the row, and the layers from the
/// bottom up.
fn drawn(architecture: &str) -> Vec<(String, usize, Vec<String>)> {
    let lines = architecture.lines().enumerate();
    lines
        .skip_while(|(_, line)| !line.starts_with("| crate | layers"))
        .skip(2)
        .take_while(|(_, line)| line.starts_with('|'))
        .filter_map(|(number, line)| {
            let mut names = line.split('`').skip(1).step_by(2).map(str::to_owned);
            Some((names.next()?, number + 1, names.collect()))
        })
        .collect()
}

/// Describes the import cycles and the number of imports of a crate; with `layers`, also every import that leads up.
#[must_use]
pub fn report(tree: &Tree, krate: &str, layers: &[String]) -> String {
    let src = sources_of(krate);
    let imports = Imports::read(tree, &src);
    let mut lines = vec![format!(
        "{krate}: {} files, {} imports",
        imports.files.len(),
        imports.imports.len()
    )];
    for cycle in imports.cycles() {
        lines.push(format!("cycle of {}: {}", cycle.len(), cycle.join(" ")));
        for import in &imports.imports {
            if cycle.contains(&import.from) && cycle.contains(&import.to) {
                lines.push(format!(
                    "  {} -> {}: {}",
                    import.from, import.to, import.path
                ));
            }
        }
    }
    if !layers.is_empty() {
        lines.extend(
            upward(&imports, &src, layers)
                .iter()
                .map(ToString::to_string),
        );
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str =
        "| crate | layers, from the bottom up |\n|---|---|\n| `x` | `low`, `high` |\n";

    fn found(low: &str, high: &str, drawn: &str) -> Vec<String> {
        let tree = Tree::of(&[
            ("ARCHITECTURE.md", drawn),
            (
                "crates/x/src/lib.rs",
                "mod low; mod high;\npub fn root() {}\n",
            ),
            ("crates/x/src/low/mod.rs", low),
            ("crates/x/src/high.rs", high),
        ]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn an_import_may_lead_down_alone() {
        let (low, high) = ("pub fn a() {}\n", "use crate::low::a;\npub fn b() {}\n");
        assert_eq!(found(low, high, DRAWN), [""; 0]);
        let up = found("use crate::high::b;\n", "pub fn b() {}\n", DRAWN);
        assert_eq!(up, ["imports `high::b` from `high.rs`, which is above"]);
        let root = found("use crate::root;\n", "", DRAWN);
        assert_eq!(root, ["imports `root` from `lib.rs`, which is above"]);
        let cycle = found("use crate::high::b;\npub fn a() {}\n", high, DRAWN);
        assert!(
            cycle
                .iter()
                .any(|text| text.starts_with("2 files import each other"))
        );
    }

    #[test]
    fn every_file_has_a_layer_and_every_layer_a_file() {
        let fewer = DRAWN.replace(", `high`", "");
        assert!(found("", "", &fewer)[0].contains("in none of the layers"));
        let none = DRAWN.replace("| `x` | `low`, `high` |\n", "");
        assert_eq!(found("", "", &none), ["does not list the layers of `x`"]);
        let more = DRAWN.replace("`high`", "`high`, `top`");
        assert!(found("", "", &more)[0].contains("no folder or file `top`"));
    }
}
