//! The progress of a long query: a spinner on standard error with the number of rows so far.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time after which the spinner appears.
pub(crate) const APPEARS_AFTER: Duration = Duration::from_millis(500);

/// Time between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Shows the progress of one query until it is dropped. A thread draws it, because the query may compute for a long
/// time before its first row.
pub(crate) struct Progress {
    rows: Arc<AtomicU64>,
    /// Dropping this ends the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts measuring time. Nothing is drawn before `delay` has passed.
    pub(crate) fn start(delay: Duration, target: ProgressDrawTarget) -> Self {
        let rows = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = channel::<()>();
        let shown = Arc::clone(&rows);
        let thread = std::thread::spawn(move || {
            if stopped.recv_timeout(delay) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::with_draw_target(None, target);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed}  {msg}") {
                bar.set_style(style);
            }
            loop {
                bar.set_message(format!("{} rows", shown.load(Ordering::Relaxed)));
                bar.tick();
                if stopped.recv_timeout(TICK) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            bar.finish_and_clear();
        });
        Self {
            rows,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Sets the number of rows that have been read.
    pub(crate) fn rows(&self, rows: u64) {
        self.rows.store(rows, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    /// Removes the spinner, so that the next output begins on an empty line.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic in the thread affects only the spinner.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::TermLike;
    use std::io;
    use std::sync::Mutex;

    /// A terminal that collects all output.
    #[derive(Clone, Debug, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            80
        }
        fn move_cursor_up(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _n: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.write_str("<clear>")
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn target(paper: &Paper) -> ProgressDrawTarget {
        ProgressDrawTarget::term_like(Box::new(paper.clone()))
    }

    #[test]
    fn a_short_query_shows_nothing() {
        let paper = Paper::default();
        drop(Progress::start(Duration::from_secs(3600), target(&paper)));
        assert_eq!(*paper.0.lock().unwrap(), "");
    }

    #[test]
    fn a_long_query_shows_its_rows_and_clears_them() {
        let paper = Paper::default();
        let progress = Progress::start(Duration::ZERO, target(&paper));
        progress.rows(7);
        while !paper.0.lock().unwrap().contains("7 rows") {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(progress);
        let text = paper.0.lock().unwrap();
        assert!(text.ends_with("<clear>"), "{text}");
    }
}
