//! Changes of the other parts that result from changes of messages. They are collected while the messages are written.

use crate::topics::expiry::{self, ROW_BYTES};
use crate::topics::old::Old;
use crate::topics::record::Numbers;

/// Changes of the parts other than the messages.
#[derive(Default)]
pub(super) struct Follow {
    /// Ids of new topics, ascending, with the index of their change.
    pub(super) created: Vec<(u64, u32)>,
    pub(super) removed: Vec<(u64, u32)>,
    /// Rows of the expiry index, each with a flag: true if it is added, false if it is removed.
    pub(super) expiry: Vec<([u8; ROW_BYTES], bool)>,
    /// Indexes of the changes that had an effect, for the feed.
    pub(super) changed: Vec<(u32, bool)>,
}

impl Follow {
    pub(super) fn remove(&mut self, index: usize, old: Option<&Old>) {
        if let Some(old) = old {
            self.removed.push((old.head.id, index as u32));
            if let Some(filed) = old.head.filed {
                let row = expiry::row_of(filed, old.head.id);
                self.expiry.push((row, false));
            }
        }
    }

    pub(super) fn refile(&mut self, numbers: &Numbers, old: Option<&Old>) {
        let before = old.and_then(|old| old.head.filed);
        if before == numbers.filed {
            return;
        }
        if let Some(before) = before {
            let row = expiry::row_of(before, numbers.id);
            self.expiry.push((row, false));
        }
        if let Some(filed) = numbers.filed {
            let row = expiry::row_of(filed, numbers.id);
            self.expiry.push((row, true));
        }
    }
}
