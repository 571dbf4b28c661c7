//! The output of an export: standard output, or a file that is compressed according to its name.
//!
//! A file gets its final name only when it is complete.

use crate::exit::{Exit, Failure, Outcome};
use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Number of uncompressed bytes in one Zstandard frame.
const FRAME: usize = 4 << 20;

/// The compression of the output.
enum Packing<W: Write> {
    Plain(W),
    Gzip(Box<GzEncoder<W>>),
    Zstd(Frames<W>),
}

/// The output file of an export in progress.
pub(crate) struct Target {
    packing: Packing<BufWriter<File>>,
    unfinished: PathBuf,
    path: PathBuf,
}

impl Target {
    /// Creates the output file; the extension of its name determines the compression. It must not exist yet, unless
    /// `replace` is true.
    pub(crate) fn create(path: &Path, replace: bool) -> Outcome<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str());
        Self::open(path, replace, extension)
    }

    /// Like `create`, for bytes that are written unchanged, whatever the name.
    pub(crate) fn unchanged(path: &Path, replace: bool) -> Outcome<Self> {
        Self::open(path, replace, None)
    }

    fn open(path: &Path, replace: bool, packing: Option<&str>) -> Outcome<Self> {
        if !replace && path.exists() {
            return Err(
                Failure::new(Exit::Failure, format!("{} exists already", path.display()))
                    .hint("give another name, or --replace"),
            );
        }
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".part");
        let unfinished = PathBuf::from(unfinished);
        // Removes a file that an interrupted export has left. If it is a symbolic link, the link itself is removed.
        let _ = std::fs::remove_file(&unfinished);
        let file = File::create_new(&unfinished)
            .map_err(|error| Failure::file("cannot write", &unfinished, &error))?;
        let out = BufWriter::with_capacity(256 * 1024, file);
        let packing = match packing {
            Some("gz") => Packing::Gzip(Box::new(GzEncoder::new(out, Compression::default()))),
            Some("zst") => Packing::Zstd(Frames {
                out,
                waiting: Vec::with_capacity(FRAME),
            }),
            _ => Packing::Plain(out),
        };
        Ok(Self {
            packing,
            unfinished,
            path: path.to_owned(),
        })
    }

    /// Completes the file and gives it its final name.
    pub(crate) fn finish(mut self) -> Outcome {
        let done = match &mut self.packing {
            Packing::Plain(out) => out.flush(),
            Packing::Gzip(out) => out.try_finish().and_then(|()| out.get_mut().flush()),
            Packing::Zstd(out) => out.frame().and_then(|()| out.out.flush()),
        };
        done.and_then(|()| std::fs::rename(&self.unfinished, &self.path))
            .map_err(|error| Failure::file("cannot write", &self.path, &error))
    }
}

impl Drop for Target {
    /// Removes the incomplete file after a failure. After `finish`, no file has the temporary name any more.
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.unfinished);
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.packing {
            Packing::Plain(out) => out.write(bytes),
            Packing::Gzip(out) => out.write(bytes),
            Packing::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer of Zstandard frames, each for a batch of bytes; consecutive frames are one stream (RFC 8878).
struct Frames<W> {
    out: W,
    waiting: Vec<u8>,
}

impl<W: Write> Frames<W> {
    fn frame(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            let frame = compress_to_vec(&self.waiting[..], CompressionLevel::Fastest);
            self.out.write_all(&frame)?;
            self.waiting.clear();
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(FRAME - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        if self.waiting.len() == FRAME {
            self.frame()?;
        }
        Ok(taken)
    }
}
