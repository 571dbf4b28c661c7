//! Runs of neighbouring rows that are removed: each run is removed as one range.

use crate::containers::keys::MESSAGE_KEY_BYTES;
use tidalite_kv::TableWriter;
use tidalite_pager::{PageWrite, Result};

type Key = [u8; MESSAGE_KEY_BYTES];

/// Keys of messages, collected in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    runs: Vec<(Key, Key)>,
}

impl Runs {
    /// Adds a key. `follows` is true if its row directly follows the row that was added last.
    pub(crate) fn push(&mut self, key: Key, follows: bool) {
        match self.runs.last_mut() {
            Some((_, last)) if follows => *last = key,
            _ => self.runs.push((key, key)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Removes the rows.
    pub(crate) fn remove<W: PageWrite>(&self, w: &mut W, table: &mut TableWriter) -> Result<()> {
        for (first, last) in &self.runs {
            if first == last {
                table.remove(w, first)?;
            } else {
                let end = [last, &[0][..]].concat();
                table.remove_range(w, first, &end)?;
            }
        }
        Ok(())
    }
}
