//! Streaming reads of values that should not be in memory as a whole.

use crate::tables::codec::TableKey;
use crate::tables::table::Table;
use crate::types::error::{Error, Result};
use std::io::{self, BufRead, Read};
use tidalite_kv::{Chunks, PageSlice};
use tidalite_pager::{DiskError, Error as StoreError};

impl<K: TableKey + ?Sized> Table<'_, K> {
    /// Opens the value of a key as a stream of bytes; returns `None` if the key does not exist.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// let mut tx = db.begin_write()?;
    /// tx.table("films")?.put(b"tide", &vec![7; 3_000_000])?;
    /// tx.commit()?;
    /// let snap = db.begin_read()?;
    /// let films = snap.table("films")?.ok_or("no table")?;
    /// let mut film = films.read_value(b"tide")?.ok_or("no such film")?;
    /// assert_eq!(film.left(), 3_000_000);
    /// std::io::copy(&mut film, &mut std::io::sink())?;
    /// assert_eq!(film.left(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`get`](Self::get), except that the pieces of a long value are read while streaming: damage in a piece is
    /// an error of the stream.
    ///
    /// # Cost
    /// One page per level; then one piece of at most 64 KiB at a time, borrowed without a copy if the file is mapped.
    pub fn read_value(&self, key: &K) -> Result<Option<ValueReader<'_>>> {
        let value = self.find(&key.key_code())?;
        Ok(value.map(|value| ValueReader {
            left: value.len(),
            chunks: value.chunks(),
            piece: None,
            at: 0,
        }))
    }
}

/// A stream of the bytes of a value, returned by [`Table::read_value`]. [`BufRead`] borrows the stored pieces of the
/// value without copying.
///
/// An error of the file becomes an [`io::Error`] that contains a [`tidalite::Error`](crate::Error), of kind
/// `InvalidData` for damage. After an error the stream returns only errors.
pub struct ValueReader<'t> {
    chunks: Chunks<'t>,
    piece: Option<PageSlice<'t>>,
    /// Number of bytes of the current piece that were consumed.
    at: usize,
    left: u64,
}

impl ValueReader<'_> {
    /// Number of bytes of the value that were not consumed yet.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    fn take_next(&mut self) -> io::Result<()> {
        (self.piece, self.at) = (None, 0);
        match self.chunks.next() {
            Some(Ok(piece)) => {
                self.piece = Some(piece);
                Ok(())
            }
            Some(Err(error)) => Err(failed(error)),
            // After an error there are no more pieces. This must not look like the end of the value.
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

fn failed(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::Corrupt(_) => io::ErrorKind::InvalidData,
        StoreError::Disk(DiskError::Io { source, .. }) => source.kind(),
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, Error::from(error))
}

impl BufRead for ValueReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let taken = |piece: &PageSlice<'_>| self.at >= piece.len();
        if self.left > 0 && self.piece.as_ref().is_none_or(taken) {
            self.take_next()?;
        }
        Ok(self.piece.as_deref().map_or(&[], |piece| &piece[self.at..]))
    }

    fn consume(&mut self, amount: usize) {
        let here = self.piece.as_deref().map_or(0, <[u8]>::len) - self.at;
        assert!(amount <= here, "no more than was lent");
        self.at += amount;
        self.left = self.left.saturating_sub(amount as u64);
    }
}

impl Read for ValueReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(bytes)?;
        self.consume(read);
        Ok(read)
    }
}
