//! Completes keywords, tables, columns and dot commands.

use crate::catalog::Names;
use crate::command::{choices, names};
use crate::keywords::{KEYWORDS, is_keyword};
use crate::lexer::{Kind, Token, tokens};
use reedline::{Completer, CompletionResult, Span, Suggestion};
use std::sync::{Arc, Mutex, PoisonError};

/// The completer. The session updates its names.
pub(super) struct Complete {
    pub names: Arc<Mutex<Names>>,
}

impl Completer for Complete {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let (start, words) = candidates(&names, &line[..pos]);
        let suggestions = words.into_iter().map(|value| Suggestion {
            value,
            span: Span::new(start, pos),
            append_whitespace: false,
            ..Suggestion::default()
        });
        CompletionResult::fresh(suggestions.collect::<Vec<_>>())
    }
}

/// The words that can complete a text at its end, and the start of the part that they replace.
fn candidates(names: &Names, text: &str) -> (usize, Vec<String>) {
    if text.trim_start().starts_with('.') && !text.contains('\n') {
        return command_words(names, text);
    }
    let all: Vec<Token> = tokens(text).collect();
    let (start, typed) = match all.last() {
        Some(last) if last.kind == Kind::Word => (last.range.start, &text[last.range.clone()]),
        Some(last) if last.kind == Kind::Quoted && !last.complete => {
            (last.range.start, &text[last.range.clone()])
        }
        Some(last) if !last.complete || last.kind == Kind::Comment => return (text.len(), vec![]),
        _ => (text.len(), ""),
    };
    let before = text[..start].strip_suffix('.');
    if let Some(before) = before {
        return (start, after_dot(names, before, typed));
    }
    if typed.is_empty() {
        return (start, vec![]);
    }
    let tables = names.tables.iter().map(|(table, _)| table.as_str());
    let columns = names.tables.iter().flat_map(|(_, columns)| columns);
    let mut found = matching(tables.chain(columns.map(String::as_str)), typed);
    found.sort_unstable();
    found.dedup();
    // Keywords are completed in the case in which the user has begun them.
    let is_lower = !typed.contains(|c: char| c.is_uppercase());
    let keywords = KEYWORDS.iter().filter(|word| begins(word, typed));
    found.extend(keywords.map(|word| match is_lower {
        true => word.to_lowercase(),
        false => (*word).to_owned(),
    }));
    (start, found)
}

/// Columns after `table.`, and columns of any table after an alias.
fn after_dot(names: &Names, before: &str, typed: &str) -> Vec<String> {
    let Some(owner) = tokens(before).last() else {
        return vec![];
    };
    if !matches!(owner.kind, Kind::Word | Kind::Quoted) {
        return vec![];
    }
    let owner = before[owner.range].trim_matches(['"', '`']);
    let own = names.tables.iter().find(|(table, _)| table == owner);
    let columns: Vec<&str> = match own {
        Some((_, columns)) => columns.iter().map(String::as_str).collect(),
        None => {
            let in_schema = names.tables.iter();
            let in_schema =
                in_schema.filter_map(|(table, _)| table.strip_prefix(owner)?.strip_prefix('.'));
            let tables: Vec<&str> = in_schema.collect();
            let any = names.tables.iter().flat_map(|(_, columns)| columns);
            match tables.is_empty() {
                true => any.map(String::as_str).collect(),
                false => tables,
            }
        }
    };
    let mut found = matching(columns.into_iter(), typed);
    found.sort_unstable();
    found.dedup();
    found
}

/// Completions for a dot command: its name or its argument.
fn command_words(known: &Names, text: &str) -> (usize, Vec<String>) {
    let start = text.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let typed = &text[start..];
    let before: Vec<&str> = text[..start].split_whitespace().collect();
    let words: Vec<&str> = match before[..] {
        [] => names().collect(),
        [".schema" | ".tables"] | [".import", _] => known
            .tables
            .iter()
            .map(|(table, _)| table.as_str())
            .collect(),
        [name] => choices(name),
        _ => vec![],
    };
    let words = words.into_iter().filter(|word| begins(word, typed));
    (start, words.map(str::to_owned).collect())
}

/// The names that begin with a typed text, quoted where SQL requires it.
fn matching<'n>(names: impl Iterator<Item = &'n str>, typed: &str) -> Vec<String> {
    let plain = typed.trim_start_matches(['"', '`']);
    let names = names.filter(|name| begins(name, plain));
    names
        .map(|name| match plain.len() == typed.len() && is_plain(name) {
            true => name.to_owned(),
            false => format!("\"{}\"", name.replace('"', "\"\"")),
        })
        .collect()
}

/// True if a text begins with another, ignoring case.
fn begins(text: &str, typed: &str) -> bool {
    let mut text = text.chars().flat_map(char::to_lowercase);
    let mut typed = typed.chars().flat_map(char::to_lowercase);
    typed.all(|c| text.next() == Some(c))
}

/// True if a name needs no quotes. SQL converts unquoted names to lower case.
fn is_plain(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && !is_keyword(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let names = Names {
            tables: vec![
                (
                    "wind".to_owned(),
                    vec!["time".to_owned(), "value".to_owned()],
                ),
                (
                    "hb.power".to_owned(),
                    vec!["time".to_owned(), "Max".to_owned()],
                ),
                (
                    "information_schema.tables".to_owned(),
                    vec!["table_name".to_owned()],
                ),
            ],
        };
        candidates(&names, text).1
    }

    #[test]
    fn tables_columns_and_keywords_are_completed() {
        assert_eq!(words("select va"), ["value", "values", "varchar"]);
        assert_eq!(words("SELECT WI"), ["wind", "WITH"]);
        assert_eq!(words("select 1 from h"), ["\"hb.power\"", "having"]);
        assert_eq!(words("select \"hb"), ["\"hb.power\""]);
        assert_eq!(words("select m"), ["\"Max\""]);
        assert_eq!(words("select "), [""; 0]);
    }

    #[test]
    fn a_dot_selects_columns() {
        assert_eq!(words("select wind."), ["time", "value"]);
        assert_eq!(words("select \"hb.power\".m"), ["\"Max\""]);
        assert_eq!(words("select w.v"), ["value"]);
        // A keyword used as a name needs quotes.
        assert_eq!(words("select * from information_schema.t"), ["\"tables\""]);
        assert_eq!(words("select 1."), [""; 0]);
    }

    #[test]
    fn strings_and_comments_are_not_completed() {
        assert_eq!(words("select 'va"), [""; 0]);
        assert_eq!(words("select 1 -- va"), [""; 0]);
        assert_eq!(words("/* va"), [""; 0]);
    }

    #[test]
    fn commands_and_their_words_are_completed() {
        assert_eq!(words(".t"), [".tables", ".timer"]);
        assert_eq!(words(".mode j"), ["json", "jsonl"]);
        assert_eq!(words(".explain o"), ["on", "off"]);
        assert_eq!(words(".schema w"), ["wind"]);
        assert_eq!(words(".mode csv j"), [""; 0]);
    }

    #[test]
    fn a_suggestion_replaces_the_typed_part() {
        let names = Arc::new(Mutex::new(Names {
            tables: vec![("wind".to_owned(), vec![])],
        }));
        let mut complete = Complete { names };
        let found = complete.complete("from wi;", 7);
        let found = &found.suggestions()[0];
        assert_eq!(
            (found.value.as_str(), found.span.start, found.span.end),
            ("wind", 5, 7)
        );
    }
}
