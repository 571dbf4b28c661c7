//! Wraps the texts at the ends of help pages to the width of the terminal. They are written with lines of about 100
//! characters; wrapping these lines again, as clap does, would leave a short line after each long one.

use std::fmt::Write;

/// Number of characters by which the rest of a long indented line is moved to the right.
const HANG: usize = 4;

/// Wraps a text to lines of at most `width` characters. Lines without indentation that follow each other are one
/// paragraph. An indented line stays a line of its own: a command that is too long is continued with a backslash, and
/// an entry of a list below its second column, which two spaces separate from the first.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() {
            out.push('\n');
            continue;
        }
        let indent = indent_of(line);
        if line.contains("tidalite ") && indent > 0 {
            let mut whole = line.to_owned();
            while let Some(begun) = whole.strip_suffix('\\') {
                let rest = lines.next().unwrap_or_default().trim_start();
                whole = format!("{} {rest}", begun.trim_end());
            }
            command(&whole, indent, width, &mut out);
            continue;
        }
        let hang = match indent {
            0 => 0,
            _ => second_column(line, indent),
        };
        let mut words: Vec<&str> = match hang {
            0 => line.split(' ').collect(),
            _ => std::iter::once(line[..hang.min(line.len())].trim_end())
                .chain(line[hang.min(line.len())..].split(' '))
                .collect(),
        };
        // Further lines of the same paragraph or entry.
        let goes_on = |next: &str| {
            !next.is_empty()
                && match indent {
                    0 => indent_of(next) == 0,
                    _ => indent_of(next) == hang && !next.contains("tidalite "),
                }
        };
        while let Some(next) = lines.next_if(|next| goes_on(next)) {
            words.extend(next.trim_start().split(' '));
        }
        match hang {
            0 => fill("", 0, &words, width, &mut out),
            _ => {
                let head = format!("{:hang$}", words[0]);
                fill(&head, hang, &words[1..], width, &mut out);
            }
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The column at which the text of an entry such as `  1  an error` begins; without a second column, a fixed number of
/// characters after the indentation.
fn second_column(line: &str, indent: usize) -> usize {
    let gap = line[indent..].find("  ").map(|gap| indent + gap);
    gap.map_or(indent, |gap| gap + indent_of(&line[gap..]))
}

/// Writes words behind a head, on lines that begin with `hang` spaces from the second on.
fn fill(head: &str, hang: usize, words: &[&str], width: usize, out: &mut String) {
    let mut line = head.to_owned();
    let mut empty = true;
    for word in words {
        let len = line.chars().count();
        if !empty && len + 1 + word.chars().count() > width {
            let _ = writeln!(out, "{}", line.trim_end());
            line = " ".repeat(hang);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

/// Writes a command line, with backslashes where it is divided: only outside of quotes, and not between an option and
/// its value.
fn command(line: &str, indent: usize, width: usize, out: &mut String) {
    if line.chars().count() <= width {
        let _ = writeln!(out, "{line}");
        return;
    }
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.trim_start().chars() {
        quoted ^= c == '\'';
        match words.last_mut() {
            Some(word) if c != ' ' || quoted => word.push(c),
            _ => words.push(String::new()),
        }
    }
    let mut parts: Vec<String> = Vec::new();
    for word in words {
        let len = |text: &String| text.chars().count();
        let fits = |last: &String| len(last) + len(&word) + indent + HANG + 3 <= width;
        let plain = !word.starts_with(['-', '|', '&', '>']);
        match parts.last_mut() {
            Some(last) if plain && fits(last) && last.starts_with("--") && !last.contains(' ') => {
                *last = format!("{last} {word}");
            }
            _ => parts.push(word),
        }
    }
    let mut shown = " ".repeat(indent);
    let mut empty = true;
    for (index, word) in parts.iter().enumerate() {
        let len = shown.chars().count() + 1 + word.chars().count();
        // Room for the backslash, unless this is the end of the command.
        let room = if index + 1 < parts.len() { 2 } else { 0 };
        if !empty && len + room > width {
            let _ = writeln!(out, "{shown} \\");
            shown = " ".repeat(indent + HANG);
            empty = true;
        }
        if !empty {
            shown.push(' ');
        }
        shown.push_str(word);
        empty = false;
    }
    let _ = writeln!(out, "{shown}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_lists_and_commands_are_wrapped_once() {
        let text = "\
A paragraph over
two lines.

Examples:
  tidalite scan plant.tdl 'wind speed' \\
    --limit 10 --reverse
  1  an error of the system: permission,
     disk full
  2  wrong command line";
        let expected = "\
A paragraph over two lines.

Examples:
  tidalite scan plant.tdl \\
      'wind speed' \\
      --limit 10 --reverse
  1  an error of the system:
     permission, disk full
  2  wrong command line";
        assert_eq!(wrapped(text, 30), expected);
        assert_eq!(wrapped(expected, 30), expected);
        assert!(wrapped(text, 100).contains("'wind speed' --limit 10 --reverse\n"));
    }
}
