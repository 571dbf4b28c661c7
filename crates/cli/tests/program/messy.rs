//! Imports of messy files. The cases are in the text files of `tests/messy`, each with its input and the expected
//! result. `TIDALITE_REWRITE=1` writes the actual results into these files; review the difference before a commit.
//!
//! ```text
//! ### title of a case
//! $ import a.tdl in.csv --tag site      a command; this one without --tag if the case has none
//! <<< in.csv                            a file: the lines up to the next marker
//! time,v
//! 2014-06-01,1
//! >>>                                   the expected result: "exit N" if the exit code is not 0,
//! v,2014-06-01T00:00:00Z,1              the messages, then all points
//! ```
//!
//! In a file, `\xNN` is a byte, `\r`, `\n` and `\t` are the usual characters, and `\c` at the end omits the last line
//! feed.

use crate::support::Folder;
use std::fmt::Write;
use std::path::Path;

/// Minimum number of cases, so that a file that is not found does not make the test pass.
const CASES_MIN: usize = 220;

#[derive(Default)]
struct Case {
    title: String,
    commands: Vec<String>,
    files: Vec<(String, String)>,
    expected: String,
}

/// The cases of a file, after its first lines, which are comments.
fn cases(text: &str) -> (String, Vec<Case>) {
    enum Part {
        Head,
        File,
        Expected,
    }
    let (mut head, mut cases, mut part) = (String::new(), Vec::<Case>::new(), Part::Head);
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            cases.push(Case {
                title: title.to_owned(),
                ..Case::default()
            });
            part = Part::Head;
            continue;
        }
        let Some(case) = cases.last_mut() else {
            let _ = writeln!(head, "{line}");
            continue;
        };
        if let Some(name) = line.strip_prefix("<<< ") {
            case.files.push((name.to_owned(), String::new()));
            part = Part::File;
        } else if line == ">>>" {
            part = Part::Expected;
        } else {
            match part {
                Part::Head => match line.strip_prefix("$ ") {
                    Some(command) => case.commands.push(command.to_owned()),
                    None => assert!(line.is_empty(), "{}: `{line}`", case.title),
                },
                Part::File => {
                    let (_, text) = case.files.last_mut().unwrap();
                    let _ = writeln!(text, "{line}");
                }
                Part::Expected => {
                    let _ = writeln!(case.expected, "{line}");
                }
            }
        }
    }
    for case in &mut cases {
        case.expected.truncate(case.expected.trim_end().len());
        if !case.expected.is_empty() {
            case.expected.push('\n');
        }
        if case.commands.is_empty() {
            let (name, _) = &case.files[0];
            case.commands.push(format!("import a.tdl {name}"));
        }
    }
    (head, cases)
}

/// The bytes that a text with escapes stands for.
fn bytes_of(text: &str) -> Vec<u8> {
    let text = text.strip_suffix("\\c\n").unwrap_or(text).as_bytes();
    let (mut bytes, mut at) = (Vec::new(), 0);
    while at < text.len() {
        let hex = text.get(at + 2..at + 4).and_then(|hex| {
            let hex = std::str::from_utf8(hex).ok()?;
            u8::from_str_radix(hex, 16).ok()
        });
        let (byte, length) = match (text[at], text.get(at + 1), hex) {
            (b'\\', Some(b'x'), Some(byte)) => (byte, 4),
            (b'\\', Some(b'r'), _) => (b'\r', 2),
            (b'\\', Some(b'n'), _) => (b'\n', 2),
            (b'\\', Some(b't'), _) => (b'\t', 2),
            (byte, ..) => (byte, 1),
        };
        bytes.push(byte);
        at += length;
    }
    bytes
}

/// The words of a command line; quotes keep blanks within a word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (None, ' ') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), _) if open == c => quote = None,
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Runs the commands of a case; returns the messages, and all points unless a command failed.
fn run(case: &Case, folder: &Folder) -> String {
    let mut told = String::new();
    for (name, text) in &case.files {
        folder.write(name, bytes_of(text));
    }
    for command in &case.commands {
        let words = words(command);
        let ran = match words.iter().any(|word| word == "-") {
            true => folder.run_with(&words, &bytes_of(&case.files[0].1)),
            false => folder.run(&words),
        };
        if ran.code != 0 {
            let _ = writeln!(told, "exit {}", ran.code);
        }
        told += &ran.err;
        // The summary of an import has its duration.
        if words[0] != "import" || words.iter().any(|word| word == "--dry-run") {
            told += &ran.out;
        }
        if ran.code != 0 {
            return told;
        }
    }
    if folder.path("a.tdl").exists() {
        let all = folder.run(&["export", "a.tdl", "--format", "csv"]);
        assert_eq!(all.code, 0, "{}: {all:?}", case.title);
        let rows = all.out.split_once('\n').map_or("", |(_, rows)| rows);
        told += rows;
    }
    told
}

fn written(case: &Case, files: &[(String, String)], commands: &[String], told: &str) -> String {
    let mut text = format!("### {}\n", case.title);
    for command in commands {
        let _ = writeln!(text, "$ {command}");
    }
    for (name, file) in files {
        let _ = write!(text, "<<< {name}\n{file}");
    }
    let _ = write!(text, ">>>\n{told}");
    text
}

#[test]
fn messy_files_are_imported_or_refused_as_expected() {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messy");
    let mut paths: Vec<_> = std::fs::read_dir(&place)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let (mut all, mut wrong) = (0, String::new());
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (head, cases) = cases(&text);
        let mut new = head;
        for (number, case) in cases.iter().enumerate() {
            let folder = Folder::new("messy_files");
            let told = run(case, &folder);
            if told != case.expected {
                let name = path.file_name().unwrap().display();
                let _ = writeln!(
                    wrong,
                    "{name}: {}\n--- expected\n{}--- found\n{told}",
                    case.title, case.expected
                );
            }
            let implied = format!("import a.tdl {}", case.files[0].0);
            let commands = match case.commands == [implied] {
                true => &[][..],
                false => &case.commands,
            };
            if number > 0 {
                new.push('\n');
            }
            new += &written(case, &case.files, commands, &told);
        }
        all += cases.len();
        if std::env::var_os("TIDALITE_REWRITE").is_some() {
            std::fs::write(&path, new).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(all >= CASES_MIN, "{all} cases");
}
