//! Where bytes of an import come from.

use super::ahead::ReadAhead;
use crate::exit::{Failure, Outcome};
use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Both blocks of a gzip stream begin so (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A Zstandard frame begins so (RFC 8878).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Bytes taken from the file so far, before decompression.
#[derive(Clone, Default)]
pub(crate) struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

struct Counted<R> {
    inner: R,
    bytes: BytesRead,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.add(read as u64);
        Ok(read)
    }
}

/// An opened input.
pub(crate) struct Source {
    /// Plain text, whatever the file was.
    pub reader: Box<dyn Read + Send>,
    /// Grows while the reader is read.
    pub bytes_read: BytesRead,
    /// Size of the file; none for standard input.
    pub bytes_total: Option<u64>,
}

/// Opens a file; `-` is standard input. Gzip and Zstandard are known by their first bytes, not by name, and
/// unpacked on a thread of their own.
pub(crate) fn open(path: &Path) -> Outcome<Source> {
    if path.as_os_str() == "-" {
        return decoded(io::stdin(), path, None);
    }
    let file = File::open(path).map_err(|error| Failure::file("cannot read", path, &error))?;
    let metadata = file
        .metadata()
        .map_err(|error| Failure::file("cannot read", path, &error))?;
    if metadata.is_dir() {
        return Err(
            Failure::bad_input(format!("{} is a directory", path.display()))
                .hint("name the files in it, one after the other"),
        );
    }
    decoded(file, path, Some(metadata.len()))
}

fn decoded(input: impl Read + Send + 'static, path: &Path, total: Option<u64>) -> Outcome<Source> {
    let bytes_read = BytesRead::default();
    let counted = Counted {
        inner: input,
        bytes: bytes_read.clone(),
    };
    let mut buffered = BufReader::with_capacity(256 * 1024, counted);
    let head = buffered
        .fill_buf()
        .map_err(|error| Failure::file("cannot read", path, &error))?;
    let reader: Box<dyn Read + Send> = if head.starts_with(&GZIP_MAGIC) {
        Box::new(ReadAhead::start(move || Ok(MultiGzDecoder::new(buffered))))
    } else if head.starts_with(&ZSTD_MAGIC) {
        Box::new(ReadAhead::start(move || Ok(ZstdFrames::new(buffered))))
    } else {
        Box::new(buffered)
    };
    Ok(Source {
        reader,
        bytes_read,
        bytes_total: total,
    })
}

/// Zstandard frames one behind the other, as `cat a.zst b.zst` leaves them.
struct ZstdFrames<R: BufRead> {
    state: Frames<R>,
}

enum Frames<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, ruzstd::decoding::FrameDecoder>>),
    Done,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(input: R) -> Self {
        Self {
            state: Frames::Between(input),
        }
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, Frames::Done) {
                Frames::Within(mut frame) => {
                    let read = frame.read(buffer).map_err(|error| damaged(&error))?;
                    self.state = if read == 0 && !buffer.is_empty() {
                        Frames::Between(frame.into_inner())
                    } else {
                        Frames::Within(frame)
                    };
                    if read > 0 || buffer.is_empty() {
                        return Ok(read);
                    }
                }
                Frames::Between(mut input) => {
                    if input.fill_buf()?.is_empty() {
                        return Ok(0);
                    }
                    let frame = StreamingDecoder::new(input).map_err(|error| {
                        io::Error::new(io::ErrorKind::InvalidData, error.to_string())
                    })?;
                    self.state = Frames::Within(Box::new(frame));
                }
                Frames::Done => return Ok(0),
            }
        }
    }
}

fn damaged(error: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use std::io::Write;

    #[test]
    fn gzip_is_known_by_content_and_members_are_joined() {
        let mut zipped = Vec::new();
        for part in ["a,b\n", "1,2\n"] {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(part.as_bytes()).unwrap();
            zipped.extend(encoder.finish().unwrap());
        }
        for bytes in [zipped, b"a,b\n1,2\n".to_vec()] {
            let total = bytes.len() as u64;
            let mut source = decoded(io::Cursor::new(bytes), Path::new("x"), Some(total)).unwrap();
            let mut text = String::new();
            source.reader.read_to_string(&mut text).unwrap();
            assert_eq!(text, "a,b\n1,2\n");
            assert_eq!(source.bytes_read.get(), total);
        }
    }

    #[test]
    fn zstandard_frames_are_joined_and_damage_is_told() {
        let mut packed = Vec::new();
        for part in ["a,b\n", "1,2\n"] {
            let level = ruzstd::encoding::CompressionLevel::Fastest;
            packed.extend(ruzstd::encoding::compress_to_vec(part.as_bytes(), level));
        }
        let read = |bytes: Vec<u8>| {
            let mut source = decoded(io::Cursor::new(bytes), Path::new("x"), None)?;
            let mut text = String::new();
            source
                .reader
                .read_to_string(&mut text)
                .map(|_| text)
                .map_err(Failure::from)
        };
        assert_eq!(read(packed.clone()).unwrap(), "a,b\n1,2\n");
        packed.truncate(packed.len() - 3);
        assert!(read(packed).is_err());
    }

    #[test]
    fn missing_files_and_directories() {
        let exit = |path: &str| open(Path::new(path)).map(|_| ()).unwrap_err().exit;
        assert_eq!(exit("/no/such/file.csv"), Exit::NotFound);
        assert_eq!(exit("/"), Exit::BadInput);
    }
}
