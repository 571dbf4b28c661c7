//! Reads the bytes of a file or of standard input, with a progress bar.

use crate::exit::{Failure, Outcome};
use crate::progress::Progress;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file or standard input that is being read.
pub(super) struct Source {
    input: Box<dyn Read>,
    /// `None` for standard input.
    path: Option<PathBuf>,
    /// Size in bytes, if it is known.
    pub size: Option<u64>,
    /// Number of bytes read.
    done: u64,
    bar: Option<Progress>,
    /// The error that ended the reading.
    error: Option<io::Error>,
}

impl Source {
    /// Opens a file, or standard input if no path or `-` is given.
    pub(super) fn open(path: Option<&Path>, quiet: bool) -> Outcome<Self> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let (input, size): (Box<dyn Read>, _) = match path {
            None => (Box::new(io::stdin()), None),
            Some(path) => {
                let fail = |error: io::Error| Failure::file("cannot read", path, &error);
                let file = File::open(path).map_err(fail)?;
                let metadata = file.metadata().map_err(fail)?;
                if metadata.is_dir() {
                    return Err(
                        Failure::bad_input(format!("{} is a folder", path.display()))
                            .hint("an object has the bytes of one file"),
                    );
                }
                // Pipes and devices have no size.
                let size = metadata.is_file().then_some(metadata.len());
                (Box::new(file), size)
            }
        };
        Ok(Self {
            input,
            path: path.map(Path::to_owned),
            size,
            done: 0,
            bar: size.map(|_| Progress::new(quiet, false)),
            error: None,
        })
    }

    /// Fills a buffer, unless the input ends earlier; returns the number of bytes.
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Outcome<usize> {
        let mut len = 0;
        while len < buffer.len() {
            match self.read(&mut buffer[len..]) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    return Err(self
                        .failure()
                        .unwrap_or_else(|| Failure::bad_input("reading failed")));
                }
            }
        }
        Ok(len)
    }

    /// The failure of reading, if an error occurred.
    pub(super) fn failure(&mut self) -> Option<Failure> {
        let error = self.error.take()?;
        Some(match &self.path {
            Some(path) => Failure::file("cannot read", path, &error),
            None => crate::commands::messages::reading_failed(&error),
        })
    }

    /// Removes the progress bar.
    pub(super) fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.input.read(buffer) {
            Ok(read) => {
                self.done += read as u64;
                if let (Some(bar), Some(size)) = (&self.bar, self.size) {
                    bar.show_bytes(self.done, size.max(self.done), "reading");
                }
                Ok(read)
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::Interrupted {
                    self.error = Some(io::Error::new(error.kind(), error.to_string()));
                }
                Err(error)
            }
        }
    }
}
