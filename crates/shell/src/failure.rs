//! Failures of a session, and their texts with the position in the statement.

use std::fmt::Write;
use std::io;
use tidalite_sql::{Error, ErrorKind};

/// A failure that ended a statement, a dot command or the session. The session has already printed it, except
/// [`Failure::Output`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure {
    /// A statement has failed.
    Sql(Error),
    /// A dot command is wrong.
    Command(String),
    /// A file or the input cannot be read or written.
    File(io::Error),
    /// Results cannot be written, for example because the reader of a pipe has closed it.
    Output(io::Error),
}

/// Maximum number of characters of a line that are shown with a caret.
const LINE_MAX: usize = 100;

/// The text of an error: its kind, its message, and the line of the statement with a caret below the position. `place`
/// contains the name of the input, and the line in it at which the statement begins.
pub(crate) fn describe(error: &Error, statement: &str, place: Option<(&str, usize)>) -> String {
    let message = error.to_string();
    // Some messages of the query engine have several lines.
    let message = message.trim_end().replace('\n', "\n  ");
    let mut text = match error.kind() {
        ErrorKind::Syntax => format!("syntax error: {message}"),
        ErrorKind::Plan => format!("invalid query: {message}"),
        ErrorKind::Execution => format!("execution failed: {message}"),
        ErrorKind::Memory => format!("out of memory: {message}"),
        ErrorKind::Database => format!("database error: {message}"),
        _ => message,
    };
    if let Some((name, first)) = place {
        let below = error.position().map_or(1, |(line, _)| line.max(1));
        let line = first.saturating_add(usize::try_from(below - 1).unwrap_or(0));
        let _ = write!(text, "\n  in {name}, line {line}");
    }
    if let Some(excerpt) = error.position().and_then(|at| excerpt(statement, at)) {
        let _ = write!(text, "\n{excerpt}");
    }
    text
}

/// The line of a statement and a caret below the column, both counted from 1.
fn excerpt(statement: &str, (line, column): (u64, u64)) -> Option<String> {
    let line = usize::try_from(line.checked_sub(1)?).ok()?;
    let column = usize::try_from(column.checked_sub(1)?).ok()?;
    let line: Vec<char> = statement.lines().nth(line)?.chars().collect();
    let column = column.min(line.len());
    // The part of a long line around the position.
    let from = column.saturating_sub(LINE_MAX / 2);
    let to = line.len().min(from + LINE_MAX);
    let shown = |c: &char| if c.is_control() { ' ' } else { *c };
    let part: String = line[from..to].iter().map(shown).collect();
    let (before, after) = (
        if from > 0 { "… " } else { "" },
        if to < line.len() { " …" } else { "" },
    );
    let indent = " ".repeat(before.chars().count() + column - from);
    Some(format!("  {before}{part}{after}\n  {indent}^"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_the_column() {
        let shown = |text, at| excerpt(text, at).unwrap();
        assert_eq!(shown("SELECT x", (1, 8)), "  SELECT x\n         ^");
        assert_eq!(shown("a\n\tbc", (2, 3)), "   bc\n    ^");
        // The end of the statement is after the last character.
        assert_eq!(shown("ab", (1, 9)), "  ab\n    ^");
        assert_eq!(excerpt("ab", (3, 1)), None);
        assert_eq!(excerpt("ab", (0, 0)), None);
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = format!("{}X{}", "a".repeat(300), "b".repeat(300));
        let excerpt = excerpt(&text, (1, 301)).unwrap();
        let lines: Vec<Vec<char>> = excerpt.lines().map(|line| line.chars().collect()).collect();
        let caret = lines[1].iter().position(|c| *c == '^').unwrap();
        assert_eq!(lines[0][caret], 'X');
        assert!(lines[0].len() < 110, "{excerpt}");
    }
}
