//! Tags that are the same for all rows of an input: given by the user, or taken from the name of the file.
//!
//! ```text
//! --tag-value site=A              site="A"
//! --tag-value 'device={file}'     device="pump7" for the file dir/pump7.csv.gz
//! --file-tags '{site}_{year}'     site="north", year="2024" for north_2024.csv
//! ```

use crate::exit::{Failure, Outcome};
use regex::Regex;
use std::path::Path;

/// The text of `--tag-value` for the name of the file without its endings, and for the name of its folder.
const FILE: &str = "{file}";
const FOLDER: &str = "{folder}";

/// The tags of all rows of an input. `values` come from `--tag-value`, and `pattern` from `--file-tags`.
///
/// # Errors
/// A name of a file that does not match the pattern, and a tag from the name of standard input.
pub(crate) fn of_input(
    path: &Path,
    values: &[(String, String)],
    pattern: Option<&str>,
) -> Outcome<Vec<(String, String)>> {
    let name_of = |path: Option<&Path>| {
        let name = path.and_then(Path::file_name);
        name.map_or(String::new(), |name| name.to_string_lossy().into_owned())
    };
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (file, folder) = (stem(&name_of(Some(path))), name_of(full.parent()));
    let needs_file = values
        .iter()
        .any(|(_, text)| text.contains(FILE) || text.contains(FOLDER));
    if path.as_os_str() == "-" && (needs_file || pattern.is_some()) {
        return Err(
            Failure::usage("standard input has no file name to take a tag from")
                .hint("write the text: --tag-value NAME=TEXT"),
        );
    }
    for (key, text) in values {
        if let Some(unknown) = unknown_placeholder(text) {
            return Err(Failure::usage(format!(
                "--tag-value {key}: `{unknown}` is not known"
            ))
            .hint("{file} is the name of the file without its endings, and {folder} that of its folder"));
        }
    }
    let mut tags: Vec<(String, String)> = values
        .iter()
        .map(|(key, text)| {
            (
                key.clone(),
                text.replace(FILE, &file).replace(FOLDER, &folder),
            )
        })
        .collect();
    if let Some(pattern) = pattern {
        tags.extend(matched(&file, pattern)?);
    }
    Ok(tags)
}

/// The first word in braces other than these two.
fn unknown_placeholder(text: &str) -> Option<&str> {
    let mut starts = text.match_indices('{').map(|(at, _)| at);
    starts.find_map(|at| {
        let word = &text[at..=at + text[at..].find('}')?];
        let inner = &word[1..word.len() - 1];
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        (!inner.is_empty() && inner.chars().all(is_word) && word != FILE && word != FOLDER)
            .then_some(word)
    })
}

/// The name of a file without its endings for forms and compression: `pump7.v2.csv.gz` is `pump7.v2`.
fn stem(name: &str) -> String {
    const ENDINGS: [&str; 12] = [
        ".gz", ".zst", ".csv", ".tsv", ".txt", ".dat", ".json", ".jsonl", ".ndjson", ".lp", ".asc",
        ".log",
    ];
    let mut stem = name;
    while let Some(shorter) = ENDINGS
        .iter()
        .find_map(|ending| stem.strip_suffix(ending))
        .filter(|shorter| !shorter.is_empty())
    {
        stem = shorter;
    }
    stem.to_owned()
}

/// The tags in the name of a file by a pattern such as `{site}_{year}`; `{}` stands for a text that is not a tag.
fn matched(file: &str, pattern: &str) -> Outcome<Vec<(String, String)>> {
    let bad = || {
        Failure::usage(format!("--file-tags `{pattern}` is not a pattern"))
            .hint("write names in braces, such as '{site}_{year}'; {} stands for any other text")
    };
    let (mut expression, mut names, mut rest) = (String::from("^"), Vec::new(), pattern);
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(bad)?;
        expression += &regex::escape(text);
        // The shortest text: a separator in the pattern ends it.
        expression += "(.+?)";
        names.push(name);
        rest = after;
    }
    expression += &regex::escape(rest);
    expression.push('$');
    if names.is_empty() {
        return Err(bad());
    }
    let expression = Regex::new(&expression).map_err(|_| bad())?;
    let found = expression.captures(file).ok_or_else(|| {
        Failure::bad_input(format!(
            "the name `{file}` does not match --file-tags `{pattern}`"
        ))
        .hint("import files with other names in another command")
    })?;
    let texts = found.iter().skip(1).flatten();
    Ok(names
        .into_iter()
        .zip(texts)
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, text)| (name.to_owned(), text.as_str().to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::tag_value;

    fn tags(path: &str, values: &[&str], pattern: Option<&str>) -> Outcome<String> {
        let values: Vec<_> = values.iter().map(|text| tag_value(text).unwrap()).collect();
        let tags = of_input(Path::new(path), &values, pattern)?;
        let tags: Vec<_> = tags
            .iter()
            .map(|(key, text)| format!("{key}={text}"))
            .collect();
        Ok(tags.join(" "))
    }

    #[test]
    fn tags_of_a_file() {
        for (path, values, pattern, expected) in [
            ("x/pump7.csv.gz", &["site=A"][..], None, "site=A"),
            (
                "x/pump7.csv.gz",
                &["d={file}", "f={folder}"],
                None,
                "d=pump7 f=x",
            ),
            ("pump.v2.jsonl", &["d=no-{file}"], None, "d=no-pump.v2"),
            (
                "north_2024.csv",
                &[],
                Some("{site}_{year}"),
                "site=north year=2024",
            ),
            ("a_b_c.csv", &["x=1"], Some("{}_{rest}"), "x=1 rest=b_c"),
            ("log-7+.csv", &[], Some("log-{n}+"), "n=7"),
        ] {
            assert_eq!(tags(path, values, pattern).unwrap(), expected, "{path}");
        }
        for (path, values, pattern) in [
            ("-", &["d={file}"][..], None),
            ("x/pump7.csv", &["p={path}"], None),
            ("-", &[], Some("{a}")),
            ("north.csv", &[], Some("{site}_{year}")),
            ("north.csv", &[], Some("north")),
            ("north.csv", &[], Some("{north")),
        ] {
            assert!(tags(path, values, pattern).is_err(), "{path}");
        }
        assert!(tag_value("site").is_err() && tag_value("=x").is_err() && tag_value("x=").is_err());
    }
}
