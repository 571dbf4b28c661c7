//! Checks that the Rust code in README.md comes from an example that the tests compile and run: all lines of a block
//! must occur in one example, in order. A block may leave lines out, but not change them.

use crate::tree::{Finding, Tree};

const DOCUMENT: &str = "README.md";
const EXAMPLES: &str = "crates/tidalite/examples/";

/// Compares each Rust block of README.md with the examples of the public crate.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, block) in blocks(tree.text(DOCUMENT).unwrap_or_default()) {
        let examples = tree.texts().filter(|(path, _)| path.starts_with(EXAMPLES));
        // Reports the line that differs from the example that matches the most lines.
        let furthest = examples
            .map(|(_, text)| followed(&block, text))
            .max()
            .unwrap_or(0);
        if let Some(differs) = block.get(furthest) {
            let text = format!("no example below {EXAMPLES} goes on with: {differs}");
            findings.push(Finding::new(DOCUMENT, line + furthest, text));
        }
    }
    findings
}

/// The trimmed lines of each Rust block, with the line number of the block's first line.
fn blocks(document: &str) -> Vec<(usize, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, Vec<&str>)> = None;
    for (number, line) in document.lines().enumerate() {
        match &mut open {
            None if line.starts_with("```rust") => open = Some((number + 2, Vec::new())),
            Some(_) if line.starts_with("```") => blocks.extend(open.take()),
            Some((_, lines)) => lines.push(line.trim()),
            None => {}
        }
    }
    blocks
}

/// Number of lines of the block, from the first one on, that occur in the example in this order.
fn followed(block: &[&str], example: &str) -> usize {
    let mut rest = example.lines().map(str::trim);
    block
        .iter()
        .take_while(|line| line.is_empty() || rest.any(|shown| shown == **line))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "//! Steps.\nfn main() {\n    one();\n    two();\n    three();\n}\n";

    fn found(readme: &str) -> Vec<Finding> {
        check(&Tree::of(&[
            ("crates/tidalite/examples/steps.rs", EXAMPLE),
            ("crates/tidalite/examples/other.rs", "fn main() {}\n"),
            (DOCUMENT, readme),
        ]))
    }

    #[test]
    fn an_excerpt_passes() {
        assert_eq!(
            found("# T\n\n```rust\none();\n\nthree();\n```\n```sh\nfour\n```\n"),
            []
        );
    }

    #[test]
    fn a_line_that_no_example_holds_is_found() {
        for (readme, line) in [
            ("```rust\none();\nfour();\n```\n", 3),
            ("\n```rust\nthree();\none();\n```\n", 4),
        ] {
            let found = found(readme);
            assert_eq!(found.len(), 1, "{readme}");
            assert_eq!(found[0].line, line, "{readme}");
        }
    }
}
