//! A read-only file in memory with flipped bits.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use tidalite::storage::Storage;
use tidalite::tuning::Verify;
use tidalite::{Database, Options, Tuning};

/// Page size in bytes of the file under test.
pub(super) const PAGE_BYTES: usize = 512;
/// Size in bytes of the head of the file: superblocks and meta blocks.
pub(super) const HEAD_BYTES: usize = 6 * 4096;

/// A read-only file in mapped memory with flipped bits.
struct Flipped(Box<[u8]>);

impl Storage for Flipped {
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let source = self.mapped(at, bytes.len());
        bytes.copy_from_slice(source.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn grow(&self, _: u64, _: tidalite::storage::Growth) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn mapped(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at).ok()?;
        self.0.get(from..from.checked_add(len)?)
    }
}

/// Opens the file with the bits of `mask` flipped in the byte at offset `at`.
pub(super) fn open(bytes: &[u8], at: usize, mask: u8) -> tidalite::Result<Database> {
    let mut bytes = Box::<[u8]>::from(bytes);
    bytes[at] ^= mask;
    open_image(bytes)
}

pub(super) fn open_image(image: Box<[u8]>) -> tidalite::Result<Database> {
    Options::new()
        .read_only(true)
        .tuning(Tuning::new().verify(Verify::Always))
        .open_storage(Arc::new(Flipped(image)))
}
