//! Reads statements from a user and runs them, until the user ends the session.

use super::complete::Complete;
use super::highlight::Colors;
use super::prompt::{Asks, UntilSemicolon};
use crate::failure::Failure;
use crate::shell::{Flow, Shell};
use nu_ansi_term::Style;
use reedline::{
    ColumnarMenu, DefaultHinter, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder,
    Reedline, ReedlineEvent, ReedlineMenu, Signal, default_emacs_keybindings,
};
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Name of the menu of completions.
const MENU: &str = "completions";

/// Maximum number of statements in the history.
const HISTORY_MAX: usize = 10_000;

/// The file with the statements of earlier sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(Option<PathBuf>);

impl History {
    /// Keeps no history after the session.
    pub const NONE: Self = Self(None);

    /// Keeps the history in this file.
    #[must_use]
    pub fn file(path: PathBuf) -> Self {
        Self(Some(path))
    }

    /// Keeps the history in the folder that the XDG specification defines for such files: `$XDG_STATE_HOME/tidalite`,
    /// or `~/.local/state/tidalite`.
    #[must_use]
    pub fn of_environment() -> Self {
        Self::below(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
    }

    fn below(state: Option<OsString>, home: Option<OsString>) -> Self {
        let is_set = |value: &OsString| !value.is_empty();
        let state = state.filter(is_set).map(PathBuf::from);
        let home = || Some(PathBuf::from(home.filter(is_set)?).join(".local/state"));
        let folder = state.or_else(home);
        Self(folder.map(|folder| folder.join("tidalite/history")))
    }
}

/// Runs a session in the terminal: reads statements until the user ends it with Ctrl-D or `.quit`. `greeting` is
/// printed first.
///
/// # Errors
/// The terminal cannot be read or written. Errors of statements are printed, and the session continues.
pub fn interact(shell: &mut Shell<'_>, greeting: &str, history: &History) -> Result<(), Failure> {
    shell.interactive = true;
    shell.at_rest();
    shell.say(greeting)?;
    let names = Arc::new(Mutex::new(shell.names()));
    let mut editor = editor(
        shell.has_colors(),
        Complete {
            names: Arc::clone(&names),
        },
    );
    if let Some(path) = &history.0 {
        // A session works without a history.
        if let Ok(history) = FileBackedHistory::with_file(HISTORY_MAX, path.clone()) {
            editor = editor.with_history(Box::new(history));
        }
    }
    loop {
        let prompt = Asks {
            is_in_transaction: shell.is_in_transaction(),
        };
        let signal = editor.read_line(&prompt);
        let signal = signal.map_err(|error| Failure::File(io::Error::other(error)))?;
        let text = match signal {
            Signal::Success(text) => text,
            Signal::CtrlD => return Ok(()),
            // Ctrl-C clears the input.
            _ => continue,
        };
        match shell.run_text(&text) {
            Ok(Flow::Quit) => return Ok(()),
            Err(failure @ Failure::Output(_)) => return Err(failure),
            // Errors of statements have already been printed.
            Ok(Flow::Continue) | Err(_) => {}
        }
        *names.lock().unwrap_or_else(PoisonError::into_inner) = shell.names();
    }
}

/// Creates the editor.
fn editor(colors: bool, complete: Complete) -> Reedline {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu(MENU.to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    keys.add_binding(
        KeyModifiers::SHIFT,
        KeyCode::BackTab,
        ReedlineEvent::MenuPrevious,
    );
    let menu = ColumnarMenu::default().with_name(MENU);
    let editor = Reedline::create()
        .with_validator(Box::new(UntilSemicolon))
        .with_completer(Box::new(complete))
        .with_menu(ReedlineMenu::EngineCompleter(Box::new(menu)))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_highlighter(Box::new(Colors { on: colors }))
        .with_ansi_colors(colors)
        // The editor draws on standard error, but turns this mode on through standard output, which may be a file.
        .use_bracketed_paste(io::stdout().is_terminal());
    match colors {
        // Without colours, a hint would look like input.
        true => {
            let hinter = DefaultHinter::default().with_style(Style::new().dimmed());
            editor.with_hinter(Box::new(hinter))
        }
        false => editor,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_lies_where_the_environment_says() {
        let path =
            |state: &str, home: &str| History::below(Some(state.into()), Some(home.into())).0;
        assert_eq!(path("/s", "/h"), Some("/s/tidalite/history".into()));
        assert_eq!(
            path("", "/h"),
            Some("/h/.local/state/tidalite/history".into())
        );
        assert_eq!(path("", ""), None);
    }
}
