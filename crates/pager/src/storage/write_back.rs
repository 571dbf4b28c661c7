//! What a transaction writes much of begins to go to the medium while the rest is still being handed over: the sync at the end
//! then waits for the last piece only, not for all.
//!
//! Measured with transactions of 10,000 random pairs (5 to 37 MB each): pieces of 1 MiB give 10 to 22 %, of 256 KiB more calls and no more
//! gain where much is written, of 4 MiB nothing. A failure shows at the sync, which counts.

use super::Storage;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

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
/// Dropping it waits for the request that it has in hand and leaves the others to the sync: no thread holds the file longer than its transaction.
#[derive(Debug)]
pub(crate) struct Beside {
    pieces: Option<Sender<(u64, u64)>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Begins it; `None` when the system gives no thread.
    pub(crate) fn begin(storage: &Arc<dyn Storage>) -> Option<Self> {
        let (sender, pieces) = channel::<(u64, u64)>();
        let (storage, stop) = (Arc::clone(storage), Arc::<AtomicBool>::default());
        let stopped = Arc::clone(&stop);
        let run = move || {
            let wanted = pieces
                .iter()
                .take_while(|_| !stopped.load(Ordering::Relaxed));
            wanted.for_each(|(at, len)| storage.write_back(at, len));
        };
        let thread = thread::Builder::new().name("tidalite-write".into());
        let thread = thread.spawn(run).ok()?;
        Some(Self {
            pieces: Some(sender),
            stop,
            thread: Some(thread),
        })
    }

    fn write_back(&self, storage: &dyn Storage, at: u64, len: u64) {
        let sent = self.pieces.as_ref().map(|pieces| pieces.send((at, len)));
        if sent.is_none_or(|sent| sent.is_err()) {
            storage.write_back(at, len);
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.pieces = None;
        // It has nothing to say: if it has panicked, what it was to ask for is left to the sync.
        drop(self.thread.take().map(JoinHandle::join));
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
    fn a_thread_asks_for_what_it_was_given_and_ends_with_its_transaction() {
        let asked = Arc::new(Asked::default());
        let storage: Arc<dyn Storage> = Arc::clone(&asked) as Arc<dyn Storage>;
        let beside = Beside::begin(&storage).unwrap();
        let mut back = WriteBack::new(None);
        for page in 0..1024 {
            back.note(&*storage, Some(&beside), page * 4096, 4096);
        }
        let pieces = [0, 1, 2, 3].map(|number| (number << 20, 1 << 20));
        while asked.0.lock().unwrap().len() < pieces.len() {
            std::thread::yield_now();
        }
        for page in 0..1024 {
            back.note(&*storage, Some(&beside), page * 4096, 4096);
        }
        drop((beside, storage));
        assert_eq!(Arc::strong_count(&asked), 1, "nobody holds the file");
        let asked = asked.0.lock().unwrap();
        let all = pieces.into_iter().cycle();
        assert!(asked.iter().zip(all).all(|(asked, given)| *asked == given));
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
