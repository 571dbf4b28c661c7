//! Removes many messages at once: expired messages, or all matches of a filter.

use crate::topics::expiry;
use crate::topics::filter::Filter;
use crate::topics::found::SearchOptions;
use crate::topics::list::search;
use crate::topics::parts::{Part, change, part};
use crate::topics::read::TopicsReader;
use crate::topics::record;
use crate::topics::write::TopicsWriter;
use tidalite_base::Corrupt;
use tidalite_pager::{Error, PageRead, PageWrite, Result};

/// Result of a maintenance step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopicsMaintenance {
    /// Number of expired messages that were removed.
    pub expired: u64,
    /// Whether work remains.
    pub more: bool,
}

/// Result of a removal by filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number of messages that were removed, or would be removed in a dry run.
    pub messages: u64,
    /// Position at which the removal continues; `None` at the end.
    pub next: Option<Vec<u8>>,
}

/// A row of the expiry index that is due.
struct Due {
    row: Vec<u8>,
    key: Vec<u8>,
    /// The actual time of expiry, if the message has not expired yet: its row moves to that time.
    refiled: Option<i64>,
}

#[cold]
fn damaged(row: &[u8], what: &str) -> Error {
    let found = format!("no {what} for the row {}", row.escape_ascii());
    Corrupt::new("expiry index", 0, found, "a topic with a message").into()
}

impl<R: PageRead> TopicsReader<R> {
    /// Whether [`TopicsWriter::maintain`] has work at the time `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One row.
    pub fn is_maintenance_due(&self, now: i64) -> Result<bool> {
        let mut rows = part(&self.root, &self.r, Part::Expiry)?.cursor(&self.r)?;
        Ok(rows.first()? && expiry::parse(rows.key())?.0 <= now)
    }
}

impl<W: PageWrite> TopicsWriter<'_, W> {
    /// Removes messages that have expired at the time `now`; reads at most `limit` rows of the expiry index.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// Two descents for each row, and the removal of the message. A row can belong to a message that was published
    /// again with a later expiry; the row then moves to that time, and the message is read and written. Needs memory
    /// for the rows and the keys of their topics, and for one message at a time.
    pub fn maintain(&mut self, now: i64, limit: u64) -> Result<TopicsMaintenance> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (due, more) = self.due(now, limit)?;
        let mut dead = Vec::new();
        let mut live = Vec::new();
        for due in due {
            match due.refiled {
                Some(filed) => live.push((due.row, due.key, filed)),
                None => dead.push(due.key),
            }
        }
        if !live.is_empty() {
            change(self.root, self.w, Part::Messages, &mut |w, table| {
                // Each record is read only when it is changed, because all records together may be larger than memory.
                for (row, key, filed) in &live {
                    let (_, id) = expiry::parse(row)?;
                    let Some(record) = table.get(w, key)? else {
                        return Err(damaged(row, "message"));
                    };
                    let record = record::renumbered(&record, id, Some(*filed))?;
                    table.insert(w, key, &record)?;
                }
                Ok(())
            })?;
            change(self.root, self.w, Part::Expiry, &mut |w, table| {
                for (row, _, filed) in &live {
                    let (_, id) = expiry::parse(row)?;
                    table.remove(w, row)?;
                    table.insert(w, &expiry::row_of(*filed, id), &[])?;
                }
                Ok(())
            })?;
        }
        let expired = self.remove_keys(&dead)?;
        Ok(TopicsMaintenance { expired, more })
    }

    /// The first rows of the expiry index with times up to `now`, and whether there are more.
    fn due(&self, now: i64, limit: usize) -> Result<(Vec<Due>, bool)> {
        let w = self.pages();
        let (ids, messages) = (
            part(self.root, w, Part::Ids)?,
            part(self.root, w, Part::Messages)?,
        );
        let mut rows = part(self.root, w, Part::Expiry)?.cursor(w)?;
        let mut there = rows.first()?;
        let mut due = Vec::new();
        while there {
            let (filed, id) = expiry::parse(rows.key())?;
            if filed > now {
                break;
            }
            if due.len() >= limit {
                return Ok((due, true));
            }
            let Some(key) = ids.get(w, &id.to_be_bytes())? else {
                return Err(damaged(rows.key(), "topic"));
            };
            let key = key.to_vec()?;
            let Some(value) = messages.get(w, &key)? else {
                return Err(damaged(rows.key(), "message"));
            };
            let head = record::head_in(&value)?;
            if head.id != id || head.filed != Some(filed) {
                return Err(damaged(rows.key(), "message"));
            }
            let refiled = head.expires.filter(|expires| *expires > now);
            due.push(Due {
                row: rows.key().to_vec(),
                key,
                refiled,
            });
            there = rows.next()?;
        }
        Ok((due, false))
    }

    /// Removes at most `limit` messages whose topics match a filter, expired or not, beginning at the position `token`
    /// of an earlier call. A dry run only counts them. A call may remove fewer messages even if more exist.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another filter; a damaged page, a full disk.
    ///
    /// # Cost
    /// As much as a page of a `TopicSearch`, and the removal of the messages in one batch.
    pub fn remove_matches(
        &mut self,
        filter: &Filter,
        token: Option<&[u8]>,
        limit: u64,
        is_dry_run: bool,
    ) -> Result<Removed> {
        let mut search = search(filter, token, SearchOptions::default().rows_max)?;
        let mut keys = Vec::new();
        let found = search.run(&self.reader(), None, limit, &mut |key, _, _, _| {
            if !is_dry_run {
                keys.push(key.to_vec());
            }
            Ok(())
        })?;
        self.remove_keys(&keys)?;
        Ok(Removed {
            messages: found.delivered,
            next: (!search.is_done()).then(|| search.token()),
        })
    }
}
