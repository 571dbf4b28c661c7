//! Listing containers.

use crate::containers::keys::{split_dropped, text_of};
use crate::containers::manage::DroppedContainer;
use crate::containers::parts::{Part, part};
use crate::containers::read::{ContainerInfo, ContainersReader};
use crate::containers::record::{DroppedRecord, Record};
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

impl<R: PageRead> ContainersReader<R> {
    /// Containers whose names start with `prefix` and follow the name `after`, sorted by name; at most `limit`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A descent, and a row for each container.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ContainerInfo>> {
        let mut rows = part(&self.root, &self.r, Part::Containers)?.cursor(&self.r)?;
        let mut there = match after {
            Some(after) if after >= prefix => rows.seek_gt(after.as_bytes())?,
            _ => rows.seek_ge(prefix.as_bytes())?,
        };
        let mut found = Vec::new();
        while there && found.len() < limit && rows.key().starts_with(prefix.as_bytes()) {
            let record = Record::decode(&rows.value()?.bytes()?)?;
            found.push(self.info(text_of(rows.key())?, record));
            there = rows.next()?;
        }
        Ok(found)
    }

    /// Dropped containers whose names start with `prefix` and that can be restored at `now`, sorted by name and number,
    /// beginning after `after`; at most `limit`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn dropped(
        &self,
        prefix: &str,
        now: i64,
        after: Option<(&str, u32)>,
        limit: usize,
    ) -> Result<Vec<DroppedContainer>> {
        let mut rows = part(&self.root, &self.r, Part::Dropped)?.cursor(&self.r)?;
        let mut there = match after {
            Some((name, number)) if name >= prefix => {
                rows.seek_gt(&crate::containers::keys::dropped_key(name, number))?
            }
            _ => rows.seek_ge(prefix.as_bytes())?,
        };
        let mut found = Vec::new();
        while there && found.len() < limit && rows.key().starts_with(prefix.as_bytes()) {
            let (name, number) = split_dropped(rows.key())?;
            let row = DroppedRecord::decode(&rows.value()?.bytes()?)?;
            if row.free_at > now {
                found.push(DroppedContainer {
                    name: name.to_owned(),
                    number,
                    messages: row.record.messages,
                    bytes: row.record.bytes,
                    dropped_at: Timestamp(row.dropped_at),
                    free_at: Some(Timestamp(row.free_at)),
                });
            }
            there = rows.next()?;
        }
        Ok(found)
    }
}
