//! The dot commands: their names, their help and their arguments.

use crate::settings::{Explain, Mode};
use std::path::PathBuf;

/// A dot command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Help,
    Tables(Option<String>),
    Schema(Option<String>),
    Mode(Option<Mode>),
    Output(Option<PathBuf>),
    /// The file and the table.
    Import(String, String),
    Timer(bool),
    Read(PathBuf),
    Explain(Explain),
    NullValue(String),
    /// The width of tables; `None` selects the width of the terminal.
    Width(Option<u16>),
    Headers(bool),
    Quit,
}

/// Name, arguments and description of a command.
struct Entry {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
}

const fn entry(name: &'static str, arguments: &'static str, about: &'static str) -> Entry {
    Entry {
        name,
        arguments,
        about,
    }
}

const ENTRIES: [Entry; 13] = [
    entry(
        ".explain",
        "on|off|full",
        "Print plans: with results, not at all, or with times instead of results",
    ),
    entry(".headers", "on|off", "Print the names of columns"),
    entry(".help", "", "Print this list"),
    entry(
        ".import",
        "FILE TABLE",
        "Copy a file into a table; create the table if there is none",
    ),
    entry(
        ".mode",
        "[MODE]",
        "Set the format of results: box, csv, json, jsonl, markdown, line, parquet, arrow",
    ),
    entry(".nullvalue", "TEXT", "Set the text for NULL"),
    entry(
        ".output",
        "[FILE]",
        "Write results to a new file, or to the terminal again",
    ),
    entry(".quit", "", "End the shell; so does Ctrl-D"),
    entry(".read", "FILE", "Run the statements and commands in a file"),
    entry(
        ".schema",
        "[TABLE]",
        "Print CREATE statements, or the columns of a metric, of one or all tables",
    ),
    entry(
        ".tables",
        "[PATTERN]",
        "List tables; * in a pattern stands for any text",
    ),
    entry(".timer", "on|off", "Print the time of each statement"),
    entry(
        ".width",
        "N",
        "Set the width of tables in characters; 0 is that of the terminal",
    ),
];

/// The names of all commands, in alphabetical order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}

/// The words that a command accepts as its argument, if it accepts only a few words.
pub(crate) fn choices(name: &str) -> Vec<&'static str> {
    match name {
        ".mode" => Mode::ALL.map(Mode::name).to_vec(),
        ".explain" => vec!["on", "off", "full"],
        ".headers" | ".timer" => vec!["on", "off"],
        _ => Vec::new(),
    }
}

/// The list of all commands.
pub(crate) fn help() -> String {
    let mut text = String::new();
    for entry in &ENTRIES {
        let call = format!("{} {}", entry.name, entry.arguments);
        text += &format!("{call:<21} {}\n", entry.about);
    }
    text + "\n\
        A statement ends with a semicolon. Ctrl-C cancels a statement or clears the input.\n\
        BEGIN opens a transaction, which the prompt shows as tidalite*>; COMMIT stores its changes.\n"
}

impl Command {
    /// Parses a line that begins with a dot.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words = words(line)?;
        let Some((name, arguments)) = words.split_first() else {
            return Err("give a command: `.help` lists them".to_owned());
        };
        // A semicolon after a command is accepted, because SQL users type it out of habit.
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let arguments = match &arguments[..] {
            [before @ .., ";"] => before,
            all => all,
        };
        let name = name.strip_suffix(';').unwrap_or(name);
        let one = || match arguments {
            [argument] => Ok(*argument),
            _ => Err(usage(name)),
        };
        let at_most_one = || match arguments {
            [] => Ok(None),
            [argument] => Ok(Some(*argument)),
            _ => Err(usage(name)),
        };
        let none = || match arguments {
            [] => Ok(()),
            _ => Err(usage(name)),
        };
        let switch = || match one()? {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(usage(name)),
        };
        Ok(match name {
            ".help" => none().map(|()| Self::Help)?,
            ".tables" => Self::Tables(at_most_one()?.map(str::to_owned)),
            ".schema" => Self::Schema(at_most_one()?.map(str::to_owned)),
            ".mode" => Self::Mode(at_most_one()?.map(str::parse).transpose()?),
            ".output" => Self::Output(at_most_one()?.map(PathBuf::from)),
            ".timer" => Self::Timer(switch()?),
            ".read" => Self::Read(PathBuf::from(one()?)),
            ".explain" if one()? == "full" => Self::Explain(Explain::Full),
            ".explain" if switch()? => Self::Explain(Explain::On),
            ".explain" => Self::Explain(Explain::Off),
            ".nullvalue" => Self::NullValue(one()?.to_owned()),
            ".width" => Self::Width(match one()?.parse() {
                Ok(0) => None,
                Ok(width) => Some(width),
                Err(_) => return Err(usage(name)),
            }),
            ".headers" => Self::Headers(switch()?),
            ".quit" | ".exit" => none().map(|()| Self::Quit)?,
            ".import" => match arguments {
                [file, table] => Self::Import((*file).to_owned(), (*table).to_owned()),
                _ => return Err(usage(name)),
            },
            _ => return Err(unknown(name)),
        })
    }
}

/// The error for wrong arguments of a known command.
fn usage(name: &str) -> String {
    let known = ENTRIES.iter().find(|entry| entry.name == name);
    let (name, arguments) = known.map_or((name, ""), |entry| (entry.name, entry.arguments));
    format!("usage: {}", format!("{name} {arguments}").trim_end())
}

/// The error for an unknown command.
fn unknown(name: &str) -> String {
    let near = nearest(name, names());
    let near = near.map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    let name: String = name.escape_debug().collect();
    format!("unknown command `{name}`; {near}`.help` lists the commands")
}

/// The name that is most similar to a word; `None` if no name is similar.
pub(crate) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    /// Minimum similarity of a name that is suggested.
    const SIMILAR: f64 = 0.7;
    let rated = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let similar = rated.filter(|(similarity, _)| *similarity >= SIMILAR);
    let best = similar.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, name)| name)
}

/// The words of a line, separated by blanks. Blanks in single or double quotes are part of a word.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = line.trim().chars().peekable();
    while chars.next_if(|c| c.is_whitespace()).is_some() || chars.peek().is_some() {
        let mut word = None::<String>;
        while let Some(c) = chars.next_if(|c| !c.is_whitespace()) {
            let word = word.get_or_insert_default();
            if !matches!(c, '\'' | '"') {
                word.push(c);
                continue;
            }
            loop {
                match chars.next() {
                    Some(next) if next == c => break,
                    Some(next) => word.push(next),
                    None => return Err(format!("the quote {c} is not closed")),
                }
            }
        }
        words.extend(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        let parse = |line| Command::parse(line).unwrap();
        assert_eq!(parse(".help"), Command::Help);
        assert_eq!(parse(".mode jsonl"), Command::Mode(Some(Mode::JsonLines)));
        assert_eq!(
            parse(".output 'a b.csv'"),
            Command::Output(Some("a b.csv".into()))
        );
        assert_eq!(parse(".output"), Command::Output(None));
        assert_eq!(parse(".nullvalue ''"), Command::NullValue(String::new()));
        assert_eq!(parse(".explain full"), Command::Explain(Explain::Full));
        assert_eq!(parse(".explain on"), Command::Explain(Explain::On));
        assert_eq!(parse(".explain off"), Command::Explain(Explain::Off));
        assert_eq!(parse(".width 0"), Command::Width(None));
        assert_eq!(parse(".width  40 "), Command::Width(Some(40)));
        assert_eq!(
            parse(".import 'a b.csv' t ;"),
            Command::Import("a b.csv".into(), "t".into())
        );
        assert_eq!(parse(".quit;"), Command::Quit);
        assert_eq!(parse(".timer on ;"), Command::Timer(true));
    }

    #[test]
    fn wrong_commands_are_explained() {
        let error = |line| Command::parse(line).unwrap_err();
        assert_eq!(
            error(".tabels"),
            "unknown command `.tabels`; did you mean `.tables`? `.help` lists the commands"
        );
        assert_eq!(
            error(".xyz"),
            "unknown command `.xyz`; `.help` lists the commands"
        );
        assert_eq!(error(".timer"), "usage: .timer on|off");
        assert_eq!(error(".timer yes"), "usage: .timer on|off");
        assert_eq!(error(".width wide"), "usage: .width N");
        assert_eq!(error(".help me"), "usage: .help");
        assert_eq!(error(".read 'a"), "the quote ' is not closed");
        assert!(error(".mode xml").contains("box, csv, json"));
        assert_eq!(error(".import a.csv"), "usage: .import FILE TABLE");
    }

    #[test]
    fn the_help_lists_every_command_once_in_order() {
        let names: Vec<&str> = names().collect();
        assert!(names.is_sorted());
        for name in names {
            let lines = help();
            let lines = lines
                .lines()
                .filter(|line| line.starts_with(&format!("{name} ")));
            assert_eq!(lines.count(), 1, "{name}");
            // A command without its arguments is also recognised.
            let parsed = Command::parse(name);
            assert!(
                !parsed.is_err_and(|error| error.contains("unknown")),
                "{name}"
            );
        }
    }
}
