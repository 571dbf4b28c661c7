//! Closing a database so that its file is no longer than necessary.

use crate::database::handle::Database;
use crate::types::error::Result;
use crate::types::error::kind::ErrorKind;

/// Maximum number of compaction steps, of `CLOSING_BYTES` each, before a file is closed.
const CLOSING_STEPS: usize = 8;

const CLOSING_BYTES: u64 = 256 << 10;

impl Database {
    /// Makes everything durable, empties the log of small commits and closes this handle: the data file alone is then
    /// the whole database. (Clones, snapshots and other processes keep the file open.) If the log is a large part of a
    /// small file, the pages of the log are freed and cut off.
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

    /// Moves the few pages after the log to the front of the file, so that closing can truncate the file before the
    /// log. Called before a small file is closed.
    fn make_room_behind_log(&self) -> Result<()> {
        for _ in 0..CLOSING_STEPS {
            match self.compact(CLOSING_BYTES) {
                Ok(step) if !step.done => {}
                Ok(_) => break,
                // On a full disk the file keeps its length; that is no reason to fail the closing.
                Err(error) if error.kind() == ErrorKind::Full => {
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
