//! The database file from the environment or from `--db`, instead of from the first argument of each command.

use clap::Command;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The variable with the path of the database.
pub(crate) const TIDALITE_DB: &str = "TIDALITE_DB";

/// Id of the argument FILE.tdl in every command that has it.
const FILE: &str = "file";

/// The database that `--db` names among these words, or else the variable. Commands then have no argument FILE.tdl, so
/// this must be known before the words are parsed.
pub(super) fn named(words: &[OsString], variable: Option<OsString>) -> Option<PathBuf> {
    let options = words.iter().take_while(|word| *word != "--");
    let mut options = options.peekable();
    while let Some(word) = options.next() {
        if word == "--db" {
            return options.peek().map(PathBuf::from);
        }
        if let Some(path) = word.to_str().and_then(|word| word.strip_prefix("--db=")) {
            return Some(PathBuf::from(path));
        }
    }
    variable.filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Replaces the argument FILE.tdl of every command by this path. (clap takes only texts that live as long as the
/// program.)
pub(super) fn fixed(command: Command, path: &'static OsStr) -> Command {
    let has_file = command
        .get_arguments()
        .any(|arg| arg.get_id() == FILE && arg.is_positional());
    let command = match has_file {
        // A hidden option stands in the place of the argument, with the path as its default.
        true => command.mut_arg(FILE, |arg| {
            arg.long("the-database-file")
                .hide(true)
                .required(false)
                .default_value(path)
        }),
        false => command,
    };
    command.mut_subcommands(|command| fixed(command, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_goes_before_the_variable() {
        let named = |words: &[&str], variable: Option<&str>| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            named(&words, variable.map(OsString::from))
        };
        let path = |path: &str| Some(PathBuf::from(path));
        assert_eq!(named(&["t", "scan", "--db", "a"], Some("b")), path("a"));
        assert_eq!(named(&["t", "--db=a", "scan"], None), path("a"));
        assert_eq!(named(&["t", "scan"], Some("b")), path("b"));
        assert_eq!(named(&["t", "scan"], Some("")), None);
        assert_eq!(named(&["t", "scan", "--", "--db", "a"], None), None);
        assert_eq!(named(&["t", "scan", "--db"], None), None);
    }
}
