//! What a transaction writes much of begins to go to the medium while the rest is still being handed over: the sync at the end
//! then waits for the last piece only, not for all.
//!
//! Measured with transactions of 10,000 random pairs (5 to 37 MB each): pieces of 1 MiB give 10 to 22 %, of 256 KiB more calls and no more
//! gain where much is written, of 4 MiB nothing. A failure shows at the sync, which counts.

use super::Storage;
use std::fs::File;
use std::os::fd::AsRawFd;

/// So much at once, if it is so much in all.
const PIECE_BYTES_MAX: u64 = 1 << 20;
/// Less is not worth a call.
const PIECE_BYTES_MIN: u64 = 256 << 10;
/// Pieces in what is known to be written.
const PIECES: u64 = 8;

#[derive(Debug)]
pub(crate) struct WriteBack {
    piece_bytes: u64,
    /// What was written since the last piece lies in `[from, to)`.
    from: u64,
    to: u64,
    bytes: u64,
}

impl WriteBack {
    /// For so many bytes, if that is known.
    pub(crate) fn new(bytes: Option<u64>) -> Self {
        let piece_bytes = bytes.map_or(PIECE_BYTES_MAX, |bytes| bytes / PIECES);
        Self {
            piece_bytes: piece_bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX),
            from: u64::MAX,
            to: 0,
            bytes: 0,
        }
    }

    /// These bytes were written. Returns where a piece lies that is to be asked for now, and how long it is.
    pub(crate) fn note(&mut self, at: u64, len: u64) -> Option<(u64, u64)> {
        self.bytes += len;
        (self.from, self.to) = (self.from.min(at), self.to.max(at + len));
        if self.bytes < self.piece_bytes {
            return None;
        }
        let piece = (self.from, self.to - self.from);
        (self.from, self.to, self.bytes) = (u64::MAX, 0, 0);
        Some(piece)
    }

    /// These bytes were written; asks for a piece.
    pub(crate) fn ask(&mut self, storage: &dyn Storage, at: u64, len: u64) {
        if let Some((at, len)) = self.note(at, len) {
            storage.write_back(at, len);
        }
    }
}

/// Asks the system to begin to write these bytes of a file.
pub(super) fn begin(file: &File, at: u64, len: u64) {
    let (Ok(at), Ok(len)) = (i64::try_from(at), i64::try_from(len)) else {
        return;
    };
    // SAFETY: the descriptor is open as long as the file is, and the others are numbers.
    #[expect(unsafe_code, reason = "a call of the system without a wrapper")]
    unsafe {
        // What fails here fails at the sync, too.
        libc::sync_file_range(file.as_raw_fd(), at, len, libc::SYNC_FILE_RANGE_WRITE);
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE_BYTES_MAX, PIECE_BYTES_MIN, WriteBack};

    #[test]
    fn each_byte_is_asked_for_once_in_pieces() {
        for (total, piece) in [
            (None, PIECE_BYTES_MAX),
            (Some(64 << 20), PIECE_BYTES_MAX),
            (Some(4 << 20), 512 << 10),
            (Some(1 << 20), PIECE_BYTES_MIN),
        ] {
            let mut back = WriteBack::new(total);
            let asked = (0..1024).filter_map(|page| back.note(8192 + page * 4096, 4096));
            let pieces = (0..(1024 * 4096) / piece).map(|number| (8192 + number * piece, piece));
            assert!(asked.eq(pieces), "{total:?}");
        }
    }

    #[test]
    fn little_is_left_to_the_sync() {
        let mut back = WriteBack::new(Some(100 << 10));
        assert!((0..25).all(|page| back.note(page * 4096, 4096).is_none()));
    }
}
