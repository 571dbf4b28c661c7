//! A reader that reads ahead in a thread of its own, so that decompressing and parsing can use two cores.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};

/// Number of bytes in one block.
const BLOCK: usize = 256 * 1024;

/// Maximum number of blocks that were read ahead and wait to be used.
const WAITING: usize = 8;

/// An input that another thread reads ahead. After this value is dropped, that thread ends with its next block.
pub(crate) struct ReadAhead {
    blocks: Receiver<io::Result<Vec<u8>>>,
    block: Vec<u8>,
    at: usize,
}

impl ReadAhead {
    /// Starts a thread that reads the input that `open` returns. An error is returned at its place in the stream.
    pub(crate) fn start<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static) -> Self {
        let (send, blocks) = sync_channel(WAITING);
        std::thread::spawn(move || {
            let mut input = match open() {
                Ok(input) => input,
                Err(error) => return drop(send.send(Err(error))),
            };
            loop {
                let mut block = Vec::with_capacity(BLOCK);
                let read = input.by_ref().take(BLOCK as u64).read_to_end(&mut block);
                let last = read.is_err() || block.is_empty();
                // Data that were decompressed before the error are valid, so they are returned before the error.
                let sent = if block.is_empty() {
                    Ok(())
                } else {
                    send.send(Ok(block))
                };
                let sent = match read {
                    Err(error) => send.send(Err(error)),
                    Ok(_) => sent,
                };
                if last || sent.is_err() {
                    return;
                }
            }
        });
        Self {
            blocks,
            block: Vec::new(),
            at: 0,
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            match self.blocks.recv() {
                Ok(block) => (self.block, self.at) = (block?, 0),
                // The other thread has ended, so there is no more input.
                Err(_) => return Ok(0),
            }
        }
        let bytes = buffer.len().min(self.block.len() - self.at);
        buffer[..bytes].copy_from_slice(&self.block[self.at..self.at + bytes]);
        self.at += bytes;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("it broke"));
            }
            let bytes = buffer.len().min(self.0);
            buffer[..bytes].fill(b'x');
            self.0 -= bytes;
            Ok(bytes)
        }
    }

    #[test]
    fn everything_before_an_error_arrives() {
        let mut ahead = ReadAhead::start(|| Ok(Broken(3 * BLOCK + 17)));
        let mut all = Vec::new();
        let error = ahead.read_to_end(&mut all).unwrap_err();
        assert_eq!(error.to_string(), "it broke");
        assert_eq!(all.len(), 3 * BLOCK + 17);
    }

    #[test]
    fn an_endless_input_can_be_left() {
        let mut ahead = ReadAhead::start(|| Ok(io::repeat(7)));
        let mut some = [0; 1000];
        ahead.read_exact(&mut some).unwrap();
        assert_eq!(some, [7; 1000]);
    }
}
