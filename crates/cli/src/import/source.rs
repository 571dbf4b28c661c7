//! Opens the inputs of an import, and decompresses them.

use super::ahead::ReadAhead;
use crate::exit::{Failure, Outcome};
use crate::import::given::Given;
use flate2::bufread::GzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// First bytes of a gzip member (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// First bytes of a Zstandard frame (RFC 8878).
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The second to fourth byte of a skippable Zstandard frame; the first byte is 0x50 to 0x5f.
const ZSTD_SKIPPED_MAGIC: [u8; 3] = [0x2a, 0x4d, 0x18];

/// Length in bytes of the longest of these signatures.
const MAGIC_BYTES: u64 = 4;

/// Number of bytes that were read from the file so far, before decompression.
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

/// An input that was opened.
pub(crate) struct Source {
    /// A reader of the decompressed text.
    pub reader: Box<dyn Read + Send>,
    /// Number of bytes that were read from the file so far, before decompression.
    pub bytes_read: BytesRead,
    /// Size of the file in bytes; `None` for standard input.
    pub bytes_total: Option<u64>,
    /// Whether the file is compressed with gzip or zstd.
    pub is_packed: bool,
    /// The types of the columns, if the input has any.
    pub given: Vec<Given>,
}

/// Opens a file, or standard input for `-`. Compression with gzip or Zstandard is recognised by the first bytes, not by
/// the name, and decompressed in a thread of its own.
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
                .hint("list the files in it"),
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
    // All bytes of the signature are awaited, because a pipe may deliver them one by one.
    let mut head = Vec::new();
    (&mut buffered)
        .take(MAGIC_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| Failure::file("cannot read", path, &error))?;
    let (is_gzip, is_zstd) = (head.starts_with(&GZIP_MAGIC), begins_zstd(&head));
    let whole = io::Cursor::new(head).chain(buffered);
    let reader: Box<dyn Read + Send> = if is_gzip {
        Box::new(ReadAhead::start(move || Ok(GzipMembers::new(whole))))
    } else if is_zstd {
        Box::new(ReadAhead::start(move || Ok(ZstdFrames::new(whole))))
    } else {
        Box::new(whole)
    };
    Ok(Source {
        reader,
        bytes_read,
        bytes_total: total,
        is_packed: is_gzip || is_zstd,
        given: Vec::new(),
    })
}

/// Whether these are the first bytes of a Zstandard frame or of a skippable frame, with which the output of parallel
/// compressors begins.
fn begins_zstd(head: &[u8]) -> bool {
    head.starts_with(&ZSTD_MAGIC)
        || matches!(head, [first, rest @ ..] if first >> 4 == 5 && rest.starts_with(&ZSTD_SKIPPED_MAGIC))
}

/// A reader of consecutive Zstandard frames, as `cat a.zst b.zst` writes them. Skippable frames are skipped, and the
/// checksum of a frame is verified if it has one: damage that decompresses without an error would give numbers that
/// were never measured.
struct ZstdFrames<R> {
    input: R,
    decoder: FrameDecoder,
    /// Whether the decoder is within a frame: a frame has begun, and not all of its data were returned.
    within: bool,
}

impl<R: BufRead> ZstdFrames<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            decoder: FrameDecoder::new(),
            within: false,
        }
    }

    /// Begins the next frame; returns false after the last one.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            let length = match self.decoder.reset(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => u64::from(length),
                Err(error) => return Err(damaged(error)),
            };
            let mut frame = (&mut self.input).take(length);
            if io::copy(&mut frame, &mut io::sink())? < length {
                return Err(damaged("a skippable frame is incomplete"));
            }
        }
        Ok(false)
    }

    /// Verifies the checksum of the frame whose data were all returned.
    fn end(&self) -> io::Result<()> {
        let told = self.decoder.get_checksum_from_data();
        if told.is_some() && told != self.decoder.get_calculated_checksum() {
            return Err(damaged("a frame has a wrong checksum"));
        }
        Ok(())
    }
}

impl<R: BufRead> Read for ZstdFrames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.within && !self.begin()? {
                return Ok(0);
            }
            self.within = true;
            let decoder = &mut self.decoder;
            while decoder.can_collect() == 0 && !decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                decoder
                    .decode_blocks(&mut self.input, one)
                    .map_err(damaged)?;
            }
            let read = decoder.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.end()?;
            self.within = false;
        }
    }
}

/// A reader of consecutive gzip members, as `cat a.gz b.gz` writes them. Zeros may follow the last member, as they do
/// on tapes and in blocks of fixed size: `gzip` ignores these, too. Anything else there is damage.
struct GzipMembers<R> {
    /// The current gzip member; `None` after the last one.
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(input: R) -> Self {
        let member = Some(GzDecoder::new(input));
        Self { member }
    }

    /// Begins the next gzip member after the end of the current one, if there is another.
    fn begin(&mut self) -> io::Result<()> {
        let Some(member) = self.member.take() else {
            return Ok(());
        };
        let mut input = member.into_inner();
        let mut padded = false;
        loop {
            let bytes = input.fill_buf()?;
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            match bytes.get(zeros) {
                None if bytes.is_empty() => return Ok(()),
                None => {}
                Some(_) if padded || zeros > 0 || bytes[0] != GZIP_MAGIC[0] => {
                    return Err(damaged(
                        "the compressed data is followed by bytes other than zeros",
                    ));
                }
                Some(_) => break,
            }
            padded = true;
            input.consume(zeros);
        }
        self.member = Some(GzDecoder::new(input));
        Ok(())
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let read = member.read(buffer).map_err(|error| {
                io::Error::new(error.kind(), format!("the gzip data are damaged ({error})"))
            })?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.begin()?;
        }
        Ok(0)
    }
}

fn damaged(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use std::io::Write;

    const ZSTD_OF_THE_TOOL: &[u8] = &[
        0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0xa1, 0x00, 0x00, 0x74, 0x69, 0x6d, 0x65, 0x2c, 0x61,
        0x0a, 0x32, 0x30, 0x31, 0x34, 0x2d, 0x30, 0x36, 0x2d, 0x30, 0x31, 0x2c, 0x31, 0x0a, 0x48,
        0xb7, 0xb8, 0xcc,
    ];

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
    fn zeros_behind_gzip_are_passed_over_and_nothing_else_is() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"a,b\n1,2\n").unwrap();
        let zipped = encoder.finish().unwrap();
        let read = |end: &[u8]| {
            let bytes = [&zipped[..], end].concat();
            let mut source = decoded(io::Cursor::new(bytes), Path::new("x"), None).unwrap();
            let mut text = String::new();
            source.reader.read_to_string(&mut text).map(|_| text)
        };
        for zeros in [0, 1, 511, 1_000_000] {
            assert_eq!(read(&vec![0; zeros]).unwrap(), "a,b\n1,2\n");
        }
        let behind_zeros = [&[0; 300][..], &zipped].concat();
        for wrong in [
            &b"x"[..],
            b"\0\0x",
            &zipped[..9],
            &[0x1f, 0, 0],
            &behind_zeros,
        ] {
            let error = read(wrong).unwrap_err();
            let kinds = [io::ErrorKind::InvalidData, io::ErrorKind::InvalidInput];
            let cut = error.kind() == io::ErrorKind::UnexpectedEof;
            assert!(cut || kinds.contains(&error.kind()), "{error}");
        }
        assert_eq!(read(&zipped).unwrap(), "a,b\n1,2\na,b\n1,2\n");
    }

    #[test]
    fn zstandard_frames_are_joined_and_damage_is_reported() {
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
        let mut with_skipped = vec![0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 7, 7];
        with_skipped.extend_from_slice(&packed);
        with_skipped.extend_from_slice(&[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
        assert_eq!(read(with_skipped.clone()).unwrap(), "a,b\n1,2\n");
        with_skipped[4] = 255;
        assert!(read(with_skipped).is_err());
        packed.truncate(packed.len() - 3);
        assert!(read(packed).is_err());
    }

    /// If damage in a frame does not prevent its decompression, the checksum shows the damage. `zstd` made this frame
    /// from "time,a\n2014-06-01,1\n".
    #[test]
    fn another_number_in_a_zstandard_frame_is_damage() {
        let whole = ZSTD_OF_THE_TOOL;
        let read = |bytes: &[u8]| {
            let mut text = String::new();
            let frames = ZstdFrames::new(bytes).read_to_string(&mut text);
            frames.map(|_| text)
        };
        assert_eq!(read(whole).unwrap(), "time,a\n2014-06-01,1\n");
        let mut other = whole.to_vec();
        let at = other.iter().rposition(|&byte| byte == b'1').unwrap();
        other[at] = b'9';
        let error = read(&other).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("checksum"), "{error}");
    }

    #[test]
    fn a_pipe_that_gives_one_byte_at_a_time_is_known_too() {
        struct Slow(io::Cursor<Vec<u8>>);
        impl Read for Slow {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let most = buffer.len().min(1);
                self.0.read(&mut buffer[..most])
            }
        }
        let slow = Slow(io::Cursor::new(ZSTD_OF_THE_TOOL.to_vec()));
        let mut text = String::new();
        let mut source = decoded(slow, Path::new("-"), None).unwrap();
        source.reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "time,a\n2014-06-01,1\n");
    }

    #[test]
    fn missing_files_and_directories() {
        let exit = |path: &str| open(Path::new(path)).map(|_| ()).unwrap_err().exit;
        assert_eq!(exit("/no/such/file.csv"), Exit::NotFound);
        assert_eq!(exit("/"), Exit::BadInput);
    }
}
