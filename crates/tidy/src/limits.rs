//! Checks that docs/limits.md shows every shared bound with the value of the constant.

use crate::source::Source;
use crate::tree::{Finding, Tree};
use std::collections::BTreeMap;

const DOCUMENT: &str = "docs/limits.md";
const SHARED: &str = "crates/base/src/limits.rs";

/// Compares the table of docs/limits.md with the constants in the files that the rows name.
#[must_use]
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let document = tree.text(DOCUMENT).unwrap_or_default();
    for name in constants(tree.text(SHARED).unwrap_or_default()).keys() {
        if !document.contains(&format!("`{name}`")) {
            findings.push(Finding::new(
                DOCUMENT,
                0,
                format!("does not show `{name}` of {SHARED}"),
            ));
        }
    }
    for (number, line) in document.lines().enumerate() {
        let cells: Vec<&str> = line
            .split('|')
            .map(|cell| cell.trim().trim_matches('`'))
            .collect();
        let ["", _, value, name, file, ""] = cells.as_slice() else {
            continue;
        };
        if *name == "constant" || name.starts_with('-') {
            continue;
        }
        let known = constants(tree.text(file).unwrap_or_default());
        let mut report = |text: String| findings.push(Finding::new(DOCUMENT, number + 1, text));
        if let Some(function) = name.strip_suffix("()") {
            if !declares(tree.text(file).unwrap_or_default(), function) {
                report(format!("{file} has no function `{name}`"));
            }
            continue;
        }
        match known.get(*name) {
            None => report(format!("{file} has no constant `{name}`")),
            Some(expression) => {
                if let (Some(shown), Some(held)) = (amount(value), product(expression))
                    && shown != held
                {
                    report(format!("shows {value} for `{name}`, which is {held}"));
                }
            }
        }
    }
    findings
}

/// The name and the expression of each constant in a Rust file.
fn constants(text: &str) -> BTreeMap<String, String> {
    let code = Source::new(text).code;
    let mut found = BTreeMap::new();
    for part in code.split("const ").skip(1) {
        let declaration = part.split(';').next().unwrap_or_default();
        if let Some((head, expression)) = declaration.split_once('=')
            && let Some((name, _)) = head.split_once(':')
        {
            found.insert(name.trim().to_string(), expression.trim().to_string());
        }
    }
    found
}

fn declares(text: &str, function: &str) -> bool {
    let functions = Source::new(text).functions();
    functions.iter().any(|found| found.name == function)
}

/// Evaluates the expression of a constant, a product of numbers or a shifted number; `None` for any other expression.
fn product(expression: &str) -> Option<u64> {
    if let Some((number_shifted, bits)) = expression.split_once("<<") {
        let bits = u32::try_from(number(bits.trim())?).ok()?;
        return number(number_shifted.trim())?.checked_shl(bits);
    }
    expression
        .split('*')
        .map(|factor| number(factor.trim()))
        .try_fold(1u64, |product, factor| product.checked_mul(factor?))
}

/// Parses a number with a unit, in the notation of documents: `64 KiB`, `1,024`, `512 bytes`.
fn amount(value: &str) -> Option<u64> {
    let (digits, unit) = value.split_once(' ').unwrap_or((value, ""));
    let scale = match unit {
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 1,
    };
    number(&digits.replace(',', ""))?.checked_mul(scale)
}

fn number(text: &str) -> Option<u64> {
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "/// Rows.\npub const ROWS_MAX: usize = 1024;\npub const SPAN_MAX: usize = 64 * 1024;\npub const OTHER: usize = ROWS_MAX + 1;\npub const BIG: u64 = 4 << 30;\nfn key_max() {}\n";
    const TABLE: &str = "| limit | value | constant | in |\n|---|---|---|---|\n| rows | 1,024 | `ROWS_MAX` | `crates/base/src/limits.rs` |\n| span | 64 KiB | `SPAN_MAX` | `crates/base/src/limits.rs` |\n| other | rows and one | `OTHER` | `crates/base/src/limits.rs` |\n| big | 4 GiB | `BIG` | `crates/base/src/limits.rs` |\n| key | a third | `key_max()` | `crates/base/src/limits.rs` |\n";

    fn found(table: &str) -> Vec<String> {
        let tree = Tree::of(&[(SHARED, CODE), (DOCUMENT, table)]);
        check(&tree)
            .into_iter()
            .map(|finding| finding.text)
            .collect()
    }

    #[test]
    fn a_true_table_passes() {
        assert_eq!(found(TABLE), [""; 0]);
    }

    #[test]
    fn a_wrong_value_a_missing_row_and_a_lost_constant_are_found() {
        assert!(found(&TABLE.replace("64 KiB", "65 KiB"))[0].contains("65536"));
        assert!(found(&TABLE.replace("1,024", "1023"))[0].contains("ROWS_MAX"));
        assert!(found(&TABLE.replace("4 GiB", "4 MiB"))[0].contains("BIG"));
        assert_eq!(found(&TABLE.replace("`SPAN_MAX`", "`GONE_MAX`")).len(), 2);
        assert_eq!(found(&TABLE.replace("key_max", "gone_max")).len(), 1);
        assert_eq!(
            found(&TABLE.replace("base/src/limits.rs", "base/src/lib.rs")).len(),
            5
        );
    }
}
