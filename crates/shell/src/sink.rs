//! The destination of one result: a file, a stream, or a terminal with a pager.

use crate::progress::Progress;
use std::io::{self, BufWriter, Write};
use std::process::{Child, Command, Stdio};

/// Number of lines at the bottom of the screen that a result must leave free, for the next prompt.
const LINES_FREE: usize = 1;

/// Writes one result.
pub(crate) struct Sink<'a> {
    out: &'a mut dyn Write,
    paging: Paging,
    /// The spinner. It ends before anything is written to the terminal on which it is drawn.
    progress: Option<Progress>,
}

/// Whether a pager shows the result.
enum Paging {
    /// Output is written immediately.
    Never,
    /// Output is held back until it is known whether it fits on the screen.
    Undecided {
        pager: Option<String>,
        held: Vec<u8>,
        lines_left: usize,
    },
    /// A pager shows the output. Its standard input becomes `None` when the user quits it.
    Shows {
        child: Child,
        input: Option<BufWriter<std::process::ChildStdin>>,
    },
}

impl<'a> Sink<'a> {
    /// Writes to a stream. `progress` is ended together with the sink.
    pub(crate) fn stream(out: &'a mut dyn Write, progress: Option<Progress>) -> Self {
        Self {
            out,
            paging: Paging::Never,
            progress,
        }
    }

    /// Writes to a terminal of this height. A taller result goes to the pager, if one is given.
    pub(crate) fn paged(
        out: &'a mut dyn Write,
        pager: Option<String>,
        height: u16,
        progress: Option<Progress>,
    ) -> Self {
        let paging = Paging::Undecided {
            pager,
            held: Vec::new(),
            lines_left: usize::from(height).saturating_sub(LINES_FREE),
        };
        Self {
            out,
            paging,
            progress,
        }
    }

    /// Shows the number of rows so far.
    pub(crate) fn rows(&self, rows: u64) {
        if let Some(progress) = &self.progress {
            progress.rows(rows);
        }
    }

    /// True if the user has quit the pager, so that no further output is needed.
    pub(crate) fn is_left(&self) -> bool {
        matches!(&self.paging, Paging::Shows { input: None, .. })
    }

    /// Writes output that was held back, or waits until the user quits the pager.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.paging, Paging::Never) {
            Paging::Never => {}
            Paging::Undecided { held, .. } => {
                self.progress = None;
                self.out.write_all(&held)?;
            }
            Paging::Shows { mut child, input } => {
                // The user may quit the pager before it has read all output.
                drop(input.map(|mut input| input.flush()));
                child.wait()?;
            }
        }
        self.out.flush()
    }

    /// Starts the pager and passes it the output that was held back. If no pager can be started, the output goes to the
    /// terminal.
    fn page(&mut self) -> io::Result<()> {
        let paging = std::mem::replace(&mut self.paging, Paging::Never);
        let Paging::Undecided { pager, held, .. } = paging else {
            return Ok(());
        };
        self.progress = None;
        self.out.flush()?;
        let child = pager.and_then(|pager| {
            let mut command = Command::new("sh");
            command.args(["-c", &pager]).stdin(Stdio::piped());
            command.spawn().ok()
        });
        match child {
            Some(mut child) => {
                let input = child.stdin.take().map(BufWriter::new);
                self.paging = Paging::Shows { child, input };
                self.write_all(&held)
            }
            None => self.out.write_all(&held),
        }
    }
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.paging {
            Paging::Never => return self.out.write(bytes),
            Paging::Shows { input, .. } => {
                // Output is discarded after the user has quit the pager.
                if let Some(stream) = input
                    && let Err(error) = stream.write_all(bytes)
                {
                    *input = None;
                    if error.kind() != io::ErrorKind::BrokenPipe {
                        return Err(error);
                    }
                }
            }
            Paging::Undecided {
                held, lines_left, ..
            } => {
                held.extend_from_slice(bytes);
                let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
                *lines_left = lines_left.saturating_sub(lines);
                if *lines_left == 0 {
                    self.page()?;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.paging {
            Paging::Never => self.out.flush(),
            // Nothing to do: output is held back or buffered for the pager until `finish`.
            Paging::Undecided { .. } | Paging::Shows { .. } => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a pager that stores its input in a file. Returns the output on the terminal, and the output in the file.
    fn paged(name: &str, pager: &str, text: &str) -> (String, Option<String>) {
        let file = std::env::temp_dir().join(format!("tidalite-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&file);
        let pager = pager.replace("FILE", &file.display().to_string());
        let mut out = Vec::new();
        let mut sink = Sink::paged(&mut out, Some(pager), 4, None);
        for line in text.split_inclusive('\n') {
            sink.write_all(line.as_bytes()).unwrap();
        }
        sink.finish().unwrap();
        let paged = std::fs::read_to_string(&file).ok();
        let _ = std::fs::remove_file(&file);
        (String::from_utf8(out).unwrap(), paged)
    }

    #[test]
    fn a_short_result_needs_no_pager() {
        let (out, paged) = paged("short", "cat > FILE", "1\n2\n");
        assert_eq!((out.as_str(), paged), ("1\n2\n", None));
    }

    #[test]
    fn a_tall_result_goes_through_the_pager() {
        let text = "1\n2\n3\n4\n5\n";
        let (out, paged) = paged("tall", "cat > FILE", text);
        assert_eq!((out.as_str(), paged.as_deref()), ("", Some(text)));
    }

    #[test]
    fn leaving_the_pager_is_no_error() {
        let text = "line\n".repeat(100_000);
        let (out, _) = paged("left", "true", &text);
        assert_eq!(out, "");
    }
}
