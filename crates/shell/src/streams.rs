//! The streams of a session. Tests pass buffers; the program passes its standard streams.

use std::io::Write;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Number of columns.
    pub width: u16,
    /// Number of lines.
    pub height: u16,
}

/// The streams to which a session writes.
pub struct Streams<'a> {
    /// Receives results.
    pub out: &'a mut dyn Write,
    /// Receives errors and notes.
    pub err: &'a mut dyn Write,
    /// Returns the size of the terminal that shows results; `None` if they do not go to a terminal. It is called for
    /// each result, because the window size can change.
    pub screen: fn() -> Option<Screen>,
    /// Command that shows results that are taller than the screen; `sh` runs it.
    pub pager: Option<String>,
    /// Whether to show the progress of long queries on standard error.
    pub progress: bool,
}

/// The pager that the environment variable `PAGER` names; `less` if the variable is not set and `less` is installed.
#[must_use]
pub fn pager_of_environment() -> Option<String> {
    if let Some(pager) = std::env::var_os("PAGER") {
        let pager = pager.into_string().ok()?;
        return Some(pager).filter(|pager| !pager.trim().is_empty());
    }
    let path = std::env::var_os("PATH")?;
    let is_there = std::env::split_paths(&path).any(|folder| folder.join("less").is_file());
    is_there.then(|| "less -SRFX".to_owned())
}
