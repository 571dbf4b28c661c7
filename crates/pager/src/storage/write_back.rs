//! What a transaction writes much of begins to go to the medium while the rest is still being handed over: the sync at the end
//! then waits for the last piece only, not for all.
//!
//! Measured with transactions of 10,000 random pairs (5 to 37 MB each): pieces of 1 MiB give 10 to 22 %, of 256 KiB more calls and no more
//! gain where much is written, of 4 MiB nothing. A failure shows at the sync, which counts.

use super::Storage;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

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

    /// These bytes were written. `beside` asks, if there is one.
    pub(crate) fn note(
        &mut self,
        storage: &dyn Storage,
        beside: Option<&Beside>,
        at: u64,
        len: u64,
    ) {
        self.bytes += len;
        (self.from, self.to) = (self.from.min(at), self.to.max(at + len));
        if self.bytes >= self.piece_bytes {
            let (from, bytes) = (self.from, self.to - self.from);
            match beside {
                Some(beside) => beside.write_back(storage, from, bytes),
                None => storage.write_back(from, bytes),
            }
            (self.from, self.to, self.bytes) = (u64::MAX, 0, 0);
        }
    }
}

/// A thread that asks in place of the one that writes. Where pages lie here and there each is a request of its own, the queue of the
/// disk is full soon, and who asks for more waits: for half of the time of such a commit, while there was work to do.
#[derive(Debug)]
pub(crate) struct Beside(Sender<(u64, u64)>);

impl Beside {
    /// Begins it; `None` when the system gives no thread. It ends by itself, with what it was given last.
    pub(crate) fn begin(storage: &Arc<dyn Storage>) -> Option<Self> {
        let (sender, pieces) = channel::<(u64, u64)>();
        let storage = Arc::clone(storage);
        let run = move || {
            pieces
                .iter()
                .for_each(|(at, len)| storage.write_back(at, len));
        };
        let thread = thread::Builder::new().name("tidalite-write".into());
        thread.spawn(run).ok().map(|_| Self(sender))
    }

    fn write_back(&self, storage: &dyn Storage, at: u64, len: u64) {
        if self.0.send((at, len)).is_err() {
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
    use super::{Beside, PIECE_BYTES_MAX, PIECE_BYTES_MIN, WriteBack};
    use crate::storage::{Growth, Storage};
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Default)]
    struct Asked(Mutex<Vec<(u64, u64)>>);

    impl Storage for Asked {
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
            Ok(())
        }
        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
            Ok(())
        }
        fn write_back(&self, at: u64, len: u64) {
            self.0.lock().unwrap().push((at, len));
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn sync_all(&self) -> io::Result<()> {
            Ok(())
        }
        fn len(&self) -> io::Result<u64> {
            Ok(0)
        }
        fn grow(&self, _: u64, _: Growth) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_byte_is_asked_for_once_in_pieces() {
        for (total, piece) in [
            (None, PIECE_BYTES_MAX),
            (Some(64 << 20), PIECE_BYTES_MAX),
            (Some(4 << 20), 512 << 10),
            (Some(1 << 20), PIECE_BYTES_MIN),
        ] {
            let (asked, mut back) = (Asked::default(), WriteBack::new(total));
            for page in 0..1024 {
                back.note(&asked, None, 8192 + page * 4096, 4096);
            }
            let asked = asked.0.into_inner().unwrap();
            let pieces = (0..(1024 * 4096) / piece).map(|number| (8192 + number * piece, piece));
            assert_eq!(asked, Vec::from_iter(pieces), "{total:?}");
        }
    }

    #[test]
    fn a_thread_asks_for_all_that_it_was_given() {
        let asked = Arc::new(Asked::default());
        let storage: Arc<dyn Storage> = Arc::clone(&asked) as Arc<dyn Storage>;
        let beside = Beside::begin(&storage).unwrap();
        let mut back = WriteBack::new(None);
        for page in 0..1024 {
            back.note(&*storage, Some(&beside), page * 4096, 4096);
        }
        drop((beside, storage));
        // It ends when it has asked.
        while Arc::strong_count(&asked) > 1 {
            std::thread::yield_now();
        }
        let pieces = [0, 1, 2, 3].map(|number| (number << 20, 1 << 20));
        assert_eq!(*asked.0.lock().unwrap(), pieces);
    }

    #[test]
    fn little_is_left_to_the_sync() {
        let (asked, mut back) = (Asked::default(), WriteBack::new(Some(100 << 10)));
        for page in 0..25 {
            back.note(&asked, None, page * 4096, 4096);
        }
        assert!(asked.0.into_inner().unwrap().is_empty());
    }
}
