//! A file in memory.

use super::{Growth, Storage};
use std::io;
use std::sync::{PoisonError, RwLock};

/// A data file in memory, which is lost when the process ends.
#[derive(Debug, Default)]
pub struct MemoryStorage {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryStorage {
    /// Creates an empty data file in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a data file in memory with these contents.
    #[must_use]
    pub fn from_image(bytes: Vec<u8>) -> Self {
        Self {
            bytes: RwLock::new(bytes),
        }
    }
}

impl Storage for MemoryStorage {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let all = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        let range = range(at, bytes.len(), all.len())?;
        bytes.copy_from_slice(&all[range]);
        Ok(())
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let range = range(at, bytes.len(), all.len())?;
        all[range].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let all = self.bytes.read().unwrap_or_else(PoisonError::into_inner);
        Ok(all.len() as u64)
    }

    fn grow(&self, len: u64, _: Growth) -> io::Result<()> {
        let mut all = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if len > all.len() {
            let more = len - all.len();
            all.try_reserve(more)
                .map_err(|_| io::ErrorKind::StorageFull)?;
            all.resize(len, 0);
        }
        Ok(())
    }

    fn cut(&self, len: u64) -> io::Result<()> {
        let mut all = self.bytes.write().unwrap_or_else(PoisonError::into_inner);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        all.truncate(len);
        Ok(())
    }
}

fn range(at: u64, len: usize, total: usize) -> io::Result<std::ops::Range<usize>> {
    let end = at.checked_add(len as u64);
    match end {
        Some(end) if end <= total as u64 => Ok(at as usize..end as usize),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
