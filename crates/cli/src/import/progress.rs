//! Progress of an import: a bar on standard error, if that is a terminal.

use super::source::{BytesRead, Source};
use crate::output::{plural, rate_text};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Instant;

/// The progress bar of one input.
pub(crate) struct Progress {
    bar: ProgressBar,
    bytes: BytesRead,
    began: Instant,
}

impl Progress {
    pub(crate) fn new(source: &Source, quiet: bool) -> Self {
        let target = if quiet || !std::io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        Self::on(target, source.bytes_total, source.bytes_read.clone())
    }

    fn on(target: ProgressDrawTarget, bytes_total: Option<u64>, bytes: BytesRead) -> Self {
        let bar = ProgressBar::with_draw_target(bytes_total, target);
        let template = match bytes_total {
            Some(_) => "{bar:30} {percent:>3} %  {msg}",
            None => "{spinner} {msg}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("━╸─"));
        }
        Self {
            bar,
            bytes,
            began: Instant::now(),
        }
    }

    /// Updates the progress bar; `indicatif` limits how often it is drawn.
    pub(crate) fn show(&self, rows: u64) {
        self.bar.set_position(self.bytes.get());
        let message = message(rows, self.began.elapsed().as_secs_f64());
        self.bar.set_message(message);
    }

    /// Hides the progress bar while `tell` writes to standard error.
    pub(crate) fn aside(&self, tell: impl FnOnce()) {
        self.bar.suspend(tell);
    }

    /// Removes the progress bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The text beside the progress bar: rows, and rows per second.
fn message(rows: u64, seconds: f64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
    let rate = rows as f64 / seconds.max(1e-9);
    format!(
        "{}, {} rows/s",
        plural(rows, "row", "rows"),
        rate_text(rate)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};

    /// A terminal for tests that records its output.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            100
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("no panic before").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_shows_rows_and_their_rate() {
        assert_eq!(message(0, 0.0), "0 rows, 0 rows/s");
        assert_eq!(message(12_345, 0.5), "12,345 rows, 24,690 rows/s");
        assert_eq!(
            message(9_000_000, 2.0),
            "9,000,000 rows, 4.50 million rows/s"
        );
    }

    #[test]
    fn a_bar_is_drawn_with_its_part_and_the_rate() {
        let paper = Paper::default();
        let bytes = BytesRead::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        let progress = Progress::on(target, Some(1_000), bytes.clone());
        bytes.add(500);
        progress.show(70);
        progress.bar.force_draw();
        let drawn = paper.0.lock().unwrap().clone();
        for part in ["━━━", "───", " 50 %", "70 rows, ", " rows/s"] {
            assert!(drawn.contains(part), "`{part}` is missing: {drawn:?}");
        }
        progress.clear();
    }

    #[test]
    fn without_a_known_length_the_rate_alone_is_drawn() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        let progress = Progress::on(target, None, BytesRead::default());
        progress.show(3);
        progress.bar.force_draw();
        let drawn = paper.0.lock().unwrap().clone();
        assert!(
            drawn.contains("3 rows, ") && !drawn.contains('%'),
            "{drawn:?}"
        );
    }
}
