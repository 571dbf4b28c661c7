//! Writes a pattern. Parsing the text gives the same pattern.

use crate::types::name_text::{is_bare, write_key, write_quoted};
use crate::types::pattern::ast::{Condition, Glob, Pattern, Test, Values, Wanted};
use std::fmt::{self, Write};

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(glob) = &self.metric {
            write_glob(f, glob, false)?;
        }
        for set in &self.sets {
            f.write_str("{")?;
            write_conditions(f, set)?;
            f.write_str("}")?;
        }
        Ok(())
    }
}

fn write_conditions(f: &mut fmt::Formatter<'_>, conditions: &[Condition]) -> fmt::Result {
    for (index, condition) in conditions.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        match condition {
            Condition::Tag { key, test, negated } => {
                write_key(f, key)?;
                write_test(f, test, *negated)?;
            }
            Condition::Not(conditions) => {
                f.write_str("not (")?;
                write_conditions(f, conditions)?;
                f.write_str(")")?;
            }
        }
    }
    Ok(())
}

fn write_test(f: &mut fmt::Formatter<'_>, test: &Test, negated: bool) -> fmt::Result {
    match test {
        Test::Expression(expression) => {
            f.write_str(if negated { "!~" } else { "=~" })?;
            write_quoted(f, expression.text())
        }
        Test::Values(values) if values.exact.len() + values.globs.len() == 1 => {
            f.write_str(if negated { "!=" } else { "=" })?;
            write_values(f, values)
        }
        Test::Values(values) => {
            f.write_str(if negated { " not in (" } else { " in (" })?;
            write_values(f, values)?;
            f.write_str(")")
        }
    }
}

fn write_values(f: &mut fmt::Formatter<'_>, values: &Values) -> fmt::Result {
    for (index, value) in values.exact.iter().enumerate() {
        if index > 0 {
            f.write_str(",")?;
        }
        write_quoted(f, value)?;
    }
    for (index, glob) in values.globs.iter().enumerate() {
        if index > 0 || !values.exact.is_empty() {
            f.write_str(",")?;
        }
        write_glob(f, glob, true)?;
    }
    Ok(())
}

/// Writes wildcards as they are. The characters between them are quoted if they must be, or always.
fn write_glob(f: &mut fmt::Formatter<'_>, glob: &Glob, quotes: bool) -> fmt::Result {
    if glob.0.is_empty() {
        return write_quoted(f, "");
    }
    let literal = |wanted: &Wanted| matches!(wanted, Wanted::Char(_));
    for part in glob.0.chunk_by(|a, b| literal(a) && literal(b)) {
        match part[0] {
            Wanted::Any => f.write_char('*')?,
            Wanted::One => f.write_char('?')?,
            Wanted::Char(_) => {
                let text = Glob(part.to_vec()).prefix();
                if quotes || !text.chars().all(is_bare) {
                    write_quoted(f, &text)?;
                } else {
                    f.write_str(&text)?;
                }
            }
        }
    }
    Ok(())
}
