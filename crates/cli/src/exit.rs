//! How the program ends: one exit code for each kind of failure, and a message with the next step.

use std::fmt::Display;
use std::io;

/// The exit codes. `tidalite --help` lists them, and scripts rely on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command has succeeded.
    Ok = 0,
    /// The operating system rejected an operation: permission denied, disk full, an I/O error.
    Failure = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A file, series or column does not exist, or there is no point in the selected range.
    NotFound = 3,
    /// Damage was found in the database.
    Damage = 4,
    /// An input cannot be used: not a database, an invalid CSV file, a bad row.
    BadInput = 5,
    /// The database is open in another process.
    Busy = 6,
}

/// An error and the advice for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Exit code of the process.
    pub exit: Exit,
    /// The problem and its place, in one sentence.
    pub message: String,
    /// The next step, as a sentence or a command.
    pub hint: Option<String>,
}

/// The result of every command: a value, or the failure to report.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    pub(crate) fn usage(message: impl Display) -> Self {
        Self::new(Exit::Usage, message)
    }

    pub(crate) fn not_found(message: impl Display) -> Self {
        Self::new(Exit::NotFound, message)
    }

    pub(crate) fn bad_input(message: impl Display) -> Self {
        Self::new(Exit::BadInput, message)
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// Puts the subject of the failure in front of its message.
    pub(crate) fn about(mut self, what: impl Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The failure for a system call on a file that the user has named.
    pub(crate) fn file(doing: &str, path: &std::path::Path, source: &io::Error) -> Self {
        let path = path.display();
        match source.kind() {
            io::ErrorKind::NotFound => Self::not_found(format!("{doing} {path}: no such file"))
                .hint("check the path; the shell completes it with Tab"),
            io::ErrorKind::PermissionDenied => {
                Self::new(Exit::Failure, format!("{doing} {path}: permission denied"))
                    .hint(format!("`ls -l {path}` shows the permissions"))
            }
            _ => Self::new(Exit::Failure, format!("{doing} {path}: {source}")),
        }
    }
}

/// Converts errors of writing to standard output. If the reader of standard output has closed the pipe (`| head`), the
/// program ends quietly.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        Self::new(Exit::Failure, format!("writing the output failed: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_a_quiet_end() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(failure.exit, Exit::Ok);
        assert!(failure.message.is_empty());
        let failure = Failure::from(io::Error::other("no space"));
        assert_eq!(failure.exit, Exit::Failure);
    }

    #[test]
    fn a_missing_file_has_its_own_code() {
        let error = io::Error::from(io::ErrorKind::NotFound);
        let failure = Failure::file("cannot read", std::path::Path::new("a.csv"), &error);
        assert_eq!(failure.exit, Exit::NotFound);
        assert_eq!(failure.message, "cannot read a.csv: no such file");
        assert!(failure.hint.is_some());
    }
}
