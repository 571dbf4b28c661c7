//! The streams of a session: tests pass buffers, the program its standard streams.

use std::io::Write;

/// The size of a terminal in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Number of columns.
    pub width: u16,
    /// Number of lines.
    pub height: u16,
}

/// Where a session writes to.
pub struct Streams<'a> {
    /// Receives results.
    pub out: &'a mut dyn Write,
    /// Receives errors and notes.
    pub err: &'a mut dyn Write,
    /// The size of the terminal that shows results; `None` if they do not go to a terminal. It is asked for each
    /// result, because the window can change.
    pub screen: fn() -> Option<Screen>,
    /// Command that shows results which are taller than the screen; it is run by `sh`.
    pub pager: Option<String>,
    /// Show the progress of long queries on standard error.
    pub progress: bool,
}

/// The pager that the environment names with `PAGER`; `less` if the variable is not set and `less` is installed.
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
