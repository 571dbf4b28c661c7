//! Progress of a long operation: a bar on standard error if that is a terminal, otherwise lines on request.

use crate::output::{bytes_text, printable};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::cell::Cell;
use std::io::{IsTerminal, Write};
use tidalite::maintenance::Progress as Now;

/// Number of progress lines that are written over the whole operation.
const LINES: u64 = 10;

/// Displays the progress that the callback of a long operation reports.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Number of progress lines written so far; `None` if no lines are to be written.
    lines: Option<Cell<u64>>,
}

impl Progress {
    /// Creates the display. With `lines`, progress lines are written if standard error is not a terminal.
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

    /// Updates the display; `indicatif` limits how often the bar is drawn.
    pub(crate) fn show(&self, now: &Now<'_>) {
        if let Some(told) = &self.lines {
            let parts = (now.done_bytes.saturating_mul(LINES)) / now.total_bytes.max(1);
            if parts > told.get() {
                told.set(parts);
                let percent = parts * 100 / LINES;
                // Standard error may be closed; that is not an error of the operation.
                drop(writeln!(std::io::stderr(), "{percent} %: {}", message(now)));
            }
            return;
        }
        self.bar.set_length(now.total_bytes);
        self.bar.set_position(now.done_bytes);
        self.bar.set_message(message(now));
    }

    /// Updates the bar of an operation that is not one of the library's: bytes done and in total, and a text.
    pub(crate) fn show_bytes(&self, done: u64, total: u64, text: &str) {
        self.bar.set_length(total);
        self.bar.set_position(done);
        let (done, total) = (bytes_text(done), bytes_text(total));
        let message = format!("{done} of {total}, {}", printable(text));
        self.bar.set_message(message);
    }

    /// Removes the progress bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The text beside the progress bar: bytes done and in total, and the structure being processed.
fn message(now: &Now<'_>) -> String {
    let (done, total) = (bytes_text(now.done_bytes), bytes_text(now.total_bytes));
    format!("{done} of {total}, {}", printable(now.what))
}
