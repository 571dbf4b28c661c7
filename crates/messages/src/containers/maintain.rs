//! Maintenance: removes expired messages, surplus messages of containers that exceed their limits, deletions and
//! dropped containers that can no longer be restored, and old idempotency keys.

use crate::containers::due::{Due, Kind};
use crate::containers::keys::{container_key, dropped_key, text_of};
use crate::containers::parts::{Part, damaged, part};
use crate::containers::read::ContainersReader;
use crate::containers::record::DroppedRecord;
use crate::containers::runs::Runs;
use crate::containers::seen;
use crate::containers::sweep::{RemovalReason, RemovedMessage, collect, read_bounds};
use crate::containers::write::ContainersWriter;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Result};
use tidalite_time::Timestamp;

/// Messages that one maintenance step has removed from one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedSpan {
    /// Number of the container.
    pub container: u32,
    /// Its name.
    pub name: String,
    /// Time of the oldest removed message.
    pub from: Timestamp,
    /// Time of the newest removed message. Protected messages between the two times are kept, and other messages with
    /// exactly this time may be kept, too.
    pub to: Timestamp,
    /// Number of removed messages.
    pub messages: u64,
}

/// Result of a maintenance step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainersMaintenance {
    /// The containers from which messages were removed.
    pub removed: Vec<RemovedSpan>,
    /// Number of messages that were removed because they had expired.
    pub expired: u64,
    /// Number of messages that were removed because their container exceeded a limit.
    pub rotated: u64,
    /// Number of deleted messages that can no longer be restored.
    pub freed_messages: u64,
    /// Numbers and names of dropped containers that were removed with their contents.
    pub freed_containers: Vec<(u32, String)>,
    /// Number of idempotency keys that were forgotten.
    pub forgotten_keys: u64,
    /// Whether work remains.
    pub more: bool,
}

/// Callback that receives each message that is removed.
pub type OnRemoved<'f> = dyn FnMut(&RemovedMessage) -> Result<()> + 'f;

/// Number of rows whose removal as a range costs as much as reading one row.
const FREED_PER_ROW: u64 = 64;

/// The first row of `Due`, if its time has passed.
fn next_due<R: PageRead>(root: &Tree, r: &R, now: i64) -> Result<Option<Due>> {
    let mut rows = part(root, r, Part::Due)?.cursor(r)?;
    if !rows.first()? {
        return Ok(None);
    }
    let due = Due::decode(rows.key())?;
    Ok((due.time <= now).then_some(due))
}

impl<R: PageRead> ContainersReader<R> {
    /// Whether [`ContainersWriter::maintain`] has work at the time `now`.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// Two rows.
    pub fn is_maintenance_due(&self, now: i64) -> Result<bool> {
        Ok(next_due(&self.root, &self.r, now)?.is_some()
            || seen::is_due(&self.root, &self.r, self.options.window_ns(), now)?)
    }
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Does a bounded step of the maintenance that is due at `now`; reads about `budget` rows. `on_removed` receives
    /// each message that is removed, except messages of deletions and dropped containers.
    ///
    /// # Errors
    /// Errors of `on_removed`; a damaged page, a full disk. After any error the transaction must be rolled back.
    ///
    /// # Cost
    /// One row if no work is due. Otherwise the rows that are removed, and a few rows for each container, with memory
    /// for the messages that are removed from one container.
    pub fn maintain(
        &mut self,
        now: i64,
        budget: u64,
        on_removed: &mut OnRemoved<'_>,
    ) -> Result<ContainersMaintenance> {
        let mut done = ContainersMaintenance::default();
        let mut left = budget;
        let mut is_changed = false;
        while let Some(due) = next_due(self.root, &*self.w, now)? {
            if left == 0 {
                break;
            }
            is_changed = true;
            let cost = match due.kind {
                Kind::Container => self.sweep_container(now, due, left, (&mut done, on_removed))?,
                Kind::Deletion => {
                    let deletion = (due.container, due.deletion);
                    let freed = self.remove_deletion(deletion, due.time)?;
                    done.freed_messages += freed;
                    freed / FREED_PER_ROW
                }
                Kind::Dropped => self.remove_dropped(due, &mut done)?,
            };
            left = left.saturating_sub(cost.max(1));
        }
        let window = self.options.window_ns();
        done.forgotten_keys = seen::prune(self.root, self.w, window, now, left)?;
        left -= done.forgotten_keys;
        done.more = left == 0;
        if is_changed {
            self.save_state()?;
        }
        Ok(done)
    }

    fn name_of(&self, number: u32) -> Result<String> {
        let w = &*self.w;
        match part(self.root, w, Part::Numbers)?.get(w, &container_key(number))? {
            Some(name) => text_of(&name.bytes()?).map(str::to_owned),
            None => Err(damaged(
                "number of a container",
                number,
                "a container with this number",
            )),
        }
    }

    /// Removes messages of one container; returns the number of rows that were read.
    fn sweep_container(
        &mut self,
        now: i64,
        due: Due,
        rows_max: u64,
        (done, on_removed): (&mut ContainersMaintenance, &mut OnRemoved<'_>),
    ) -> Result<u64> {
        let name = self.name_of(due.container)?;
        // `no_container` is not used here: it creates a refusal, after which nothing has changed, but this step may
        // already have made changes.
        let mut record = self.find_record(&name)?.ok_or_else(|| no_record(&name))?;
        if (record.number, record.due) != (due.container, due.time) {
            let found = format!("the time {} in the record of {name:?}", record.due);
            return Err(damaged("row of work that is due", due.time, found));
        }
        let options = record.options(&self.options.defaults).clone();
        let (mut runs, mut removed) = (Runs::default(), Vec::new());
        let all = (&mut runs, &mut removed);
        let before = (record.messages, record.bytes);
        let swept = collect(
            self.root,
            &*self.w,
            &mut record,
            &options,
            now,
            rows_max,
            all,
        )?;
        for message in &removed {
            on_removed(message)?;
            match message.reason {
                RemovalReason::Expired => done.expired += 1,
                RemovalReason::Rotated => done.rotated += 1,
            }
        }
        if !runs.is_empty() {
            self.change(Part::Messages, &mut |w, table| runs.remove(w, table))?;
        }
        if swept.needs_bounds {
            read_bounds(self.root, &*self.w, &mut record)?;
        }
        if swept.is_done && record.wanted_due(&options) <= now {
            let found = format!("{} messages, and no more rows", record.messages);
            return Err(damaged("record of a container", found, "as many rows"));
        }
        let (messages, bytes) = (before.0 - record.messages, before.1 - record.bytes);
        self.state.messages = self.state.messages.saturating_sub(messages);
        self.state.bytes = self.state.bytes.saturating_sub(bytes);
        self.save_record(&name, &mut record)?;
        if let (Some(first), Some(last)) = (removed.first(), removed.last()) {
            done.removed.push(RemovedSpan {
                container: due.container,
                name,
                from: first.message.key.time,
                to: last.message.key.time,
                messages: removed.len() as u64,
            });
        }
        Ok(swept.examined)
    }

    /// Removes a dropped container; returns the number of row reads that have the same cost.
    fn remove_dropped(&mut self, due: Due, done: &mut ContainersMaintenance) -> Result<u64> {
        let name = self.name_of(due.container)?;
        let key = dropped_key(&name, due.container);
        let dropped = {
            let w = &*self.w;
            match part(self.root, w, Part::Dropped)?.get(w, &key)? {
                Some(found) => DroppedRecord::decode(&found.bytes()?)?,
                None => return Err(no_record(&name)),
            }
        };
        if dropped.free_at != due.time {
            return Err(damaged(
                "time of a dropped container",
                dropped.free_at,
                due.time,
            ));
        }
        self.remove_rows(due.container)?;
        self.change(Part::Dropped, &mut |w, table| table.remove(w, &key))?;
        self.change(Part::Due, &mut |w, table| table.remove(w, &due.encode()))?;
        done.freed_containers.push((due.container, name));
        Ok(dropped.record.messages / FREED_PER_ROW)
    }
}

/// Creates the error for a row of `Due` whose container has no record.
#[cold]
fn no_record(name: &str) -> Error {
    let found = format!("no record of the container {name:?}");
    damaged("row of work that is due", found, "a record")
}
