//! The project's files by path, read from the working copy or invented by a test.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Directories that are not part of the project's text.
const SKIPPED: [&str; 2] = [".git", "target"];

/// The root of the project. Cargo reports it at run time, because another clone of the project may have built this
/// program in a shared target directory.
#[must_use]
pub fn root() -> PathBuf {
    let now = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = now.map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.join("../..")
}

/// Files of the project by their path from the root, with `/` as separator. A file that is not text has no content.
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads all files below `root`, except build output and version control.
    ///
    /// # Errors
    /// If a directory or file cannot be read.
    pub fn load(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    fn add(&mut self, directory: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if SKIPPED.contains(&name.as_str()) {
                continue;
            }
            let path = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.add(&entry.path(), &format!("{path}/"))?;
            } else {
                self.files
                    .insert(path, String::from_utf8(fs::read(entry.path())?).ok());
            }
        }
        Ok(())
    }

    /// Creates an invented tree from paths and texts, for tests of checks.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_string(), Some((*text).to_string())))
            .collect();
        Self { files }
    }

    /// The text of the file at `path`; `None` if there is no such text file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Every text file, with its path.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Every text file whose path ends with `end`.
    pub fn ending(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.texts().filter(move |(path, _)| path.ends_with(end))
    }

    /// True if a file or a directory with this path exists in the tree.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.files.contains_key(path)
            || self.files.keys().any(|file| {
                file.starts_with(path) && file.as_bytes().get(path.len()) == Some(&b'/')
            })
    }

    /// True if the path of some file ends with this path, such as `lib.rs` or `storage/map.rs`.
    #[must_use]
    pub fn exists_somewhere(&self, path: &str) -> bool {
        let tail = format!("/{path}");
        self.exists(path) || self.files.keys().any(|file| file.ends_with(&tail))
    }
}

/// A problem that a check has found: location and description.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path of the file from the root of the project.
    pub file: String,
    /// Line number, counted from 1; 0 for the whole file.
    pub line: usize,
    /// Description of the problem and of the correct state.
    pub text: String,
}

impl Finding {
    /// Creates a finding for a problem at a line of a file.
    pub fn new(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self {
            file: file.to_string(),
            line,
            text: text.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.text)
    }
}
