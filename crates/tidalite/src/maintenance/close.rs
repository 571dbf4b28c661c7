//! Closing a database so that its file is no longer than it need be.

use crate::database::handle::Database;
use crate::types::error::{Error, Result};
use tidalite_pager::Error as StoreError;

/// Steps of so many bytes before a file is closed.
const CLOSING_STEPS: usize = 8;

const CLOSING_BYTES: u64 = 256 << 10;

impl Database {
    /// Makes everything durable, empties the log of small commits and closes this handle: the data file alone is the whole database then. (Clones,
    /// snapshots and other processes keep the file open.) The pages of a log that is much of a small file are given back.
    ///
    /// # Errors
    /// As for `sync`.
    pub fn close(self) -> Result<()> {
        if !self.pager.options().read_only
            && self
                .pager
                .pages_behind_ballast()?
                .is_some_and(|pages| pages > 0)
        {
            self.make_room_behind_log()?;
        }
        Ok(self.pager.clone().close()?)
    }

    /// Before a small file is closed: the few pages behind the log would keep the file as long as it is.
    fn make_room_behind_log(&self) -> Result<()> {
        for _ in 0..CLOSING_STEPS {
            match self.compact(CLOSING_BYTES) {
                Ok(step) if !step.done => {}
                Ok(_) => break,
                // The file is as long as it was.
                Err(Error::Store(StoreError::DiskFull { .. } | StoreError::FileFull { .. })) => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
