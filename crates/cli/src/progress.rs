//! How far a long operation is: a bar on standard error where that is a terminal, else lines for who asks for them.

use crate::output::{bytes_text, printable};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use tidalite::Progress as Now;

/// A line is written each time that one part in so many is done.
const LINES: u64 = 10;

/// What the callback of an operation tells, shown.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Parts of which lines were written; `None` where there are no lines.
    lines: Option<Cell<u64>>,
}

impl Progress {
    /// `lines`: also where standard error is no terminal.
    pub(crate) fn new(quiet: bool, lines: bool) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if quiet || !is_terminal {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Self::on(target, lines && !quiet && !is_terminal)
    }

    fn on(target: ProgressDrawTarget, lines: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
            bar.set_style(style.progress_chars("━╸─"));
        }
        let lines = lines.then(|| Cell::new(0));
        Self { bar, lines }
    }

    /// Not more often than the eye can follow.
    pub(crate) fn show(&self, now: &Now<'_>) {
        if let Some(told) = &self.lines {
            let parts = (now.done_bytes.saturating_mul(LINES)) / now.total_bytes.max(1);
            if parts > told.get() {
                told.set(parts);
                let percent = parts * 100 / LINES;
                // Whoever has closed it does not want to know.
                drop(writeln!(std::io::stderr(), "{percent} %: {}", message(now)));
            }
            return;
        }
        self.bar.set_length(now.total_bytes);
        self.bar.set_position(now.done_bytes);
        self.bar.set_message(message(now));
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// What stands beside the bar.
fn message(now: &Now<'_>) -> String {
    let (done, total) = (bytes_text(now.done_bytes), bytes_text(now.total_bytes));
    format!("{done} of {total}, {}", printable(now.what))
}
