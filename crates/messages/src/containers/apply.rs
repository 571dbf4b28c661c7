//! The third step of an append: resolves and plans the messages, and writes all parts.
//!
//! ```text
//! fields      new names of fields
//! numbers     new containers
//! messages    one row for each message, in the order of their keys; then the removals of rotated ones
//! latest      one row for each container
//! seen        idempotency keys
//! due         containers whose oldest message has become older, or that exceed a limit
//! containers  one record for each container
//! state       totals
//! ```
//!
//! A call opens each part at most once, and only if the part changes.

use crate::containers::append::{Append, AppendChanges, Appended};
use crate::containers::keys::{MESSAGE_KEY_BYTES, container_key};
use crate::containers::latest::Latest;
use crate::containers::options::{COUNT_MAX, ContainerOverflow};
use crate::containers::parts::{Part, damaged, part, within};
use crate::containers::plan::{LatestChange, Plan, Planner, Put};
use crate::containers::resolve::Resolved;
use crate::containers::runs::Runs;
use crate::containers::seen;
use crate::containers::sweep::{RemovedMessage, collect, read_bounds};
use crate::containers::write::ContainersWriter;
use tidalite_pager::{Error, PageWrite, Refusal, Result};

/// Number of rows of one container that an append reads to remove old messages, in addition to twice the number of
/// messages that the container receives. Later calls and `maintain` remove the rest.
const SWEPT_ROWS: u64 = 64;

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Appends messages to their containers. All messages are checked first; then the outcome of each is determined,
    /// and all changes are made. The messages of a container are applied in the order of their times, and messages with
    /// equal times in the order of the call.
    /// Also returns the newest times that the containers had before. `may_create` returns whether a container with the
    /// given name may be created.
    ///
    /// # Errors
    /// `Limit`, `InvalidName` and `InvalidInput` for messages that no container takes (names, documents, idempotency
    /// keys that are too long, more names of fields than the options allow), `AlreadyExists` for a new container that
    /// may not be created: nothing has changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Sorts the messages. Writes a row in the table of messages for each message, and a record and a row of latest
    /// values for each container. A message that is not later than the newest one of its container is looked up first.
    /// In a full container that rotates, the removed messages are read.
    pub fn append_changes<'n>(
        &mut self,
        now: i64,
        items: &[Append<'n>],
        may_create: &dyn Fn(&str) -> bool,
    ) -> Result<AppendChanges<'n>> {
        if items.is_empty() {
            return Ok(AppendChanges::default());
        }
        let pages = (&*self.root, &*self.w);
        let mut resolved = Resolved::new(pages, &self.options, &self.state, now, items)?;
        let mut new = resolved.targets.iter().filter(|target| target.is_new);
        if let Some(target) = new.find(|target| !may_create(target.name)) {
            return Err(Error::refused(
                Refusal::AlreadyExists,
                format!("the new container {:?}, whose series exists", target.name),
                "a container without a series: rename the series, or give the container another name",
            ));
        }
        let encoded = resolved.encode(
            pages,
            &self.options,
            &self.state,
            &mut self.fields,
            (now, items),
        );
        if let Err(error) = encoded.and_then(|()| self.check_totals(&resolved)) {
            self.fields.discard();
            return Err(error);
        }
        let newest = resolved.targets.iter();
        let newest = newest.map(|target| (target.name, target.record.newest));
        let mut newest_before: Vec<(&str, i64)> = newest.collect();
        newest_before.sort_unstable();
        let mut appended = Appended::default();
        self.sweep(&mut resolved, now, SweepTime::Before, &mut appended.expired)?;
        let mut planner = Planner::new((&*self.root, &*self.w), &self.options, now)?;
        let mut plan = planner.plan(&mut resolved, items)?;
        self.work.lookups += planner.lookups;
        self.write(now, &mut resolved, &plan, &mut appended)?;
        let outcomes = std::mem::take(&mut plan.outcomes).into_iter();
        appended.outcomes = outcomes
            .map(|outcome| outcome.ok_or_else(|| damaged("append", "no outcome", "one")))
            .collect::<Result<_>>()?;
        Ok(AppendChanges {
            appended,
            newest_before,
        })
    }

    /// Checks that the totals do not become too large.
    fn check_totals(&self, resolved: &Resolved<'_>) -> Result<()> {
        let (more, bytes) = (resolved.order.len() as u64, resolved.bytes.len() as u64);
        within("messages of a table", self.state.messages + more, COUNT_MAX)?;
        let bytes = bytes + more * MESSAGE_KEY_BYTES as u64;
        within("bytes of a table", self.state.bytes + bytes, COUNT_MAX)
    }

    fn write(
        &mut self,
        now: i64,
        resolved: &mut Resolved<'_>,
        plan: &Plan<'_>,
        appended: &mut Appended,
    ) -> Result<()> {
        self.fields.store(self.root, self.w, &mut self.state)?;
        self.create_containers(resolved, appended)?;
        self.put_messages(&plan.puts, &resolved.bytes)?;
        self.sweep(resolved, now, SweepTime::After, &mut appended.rotated)?;
        self.set_latest(&plan.latest, &resolved.bytes)?;
        if !plan.seen.is_empty() {
            self.work.parts += 2;
            seen::add(self.root, self.w, &plan.seen, now)?;
            let window = self.options.window_ns();
            seen::prune(self.root, self.w, window, now, 2 * plan.seen.len() as u64)?;
        }
        self.save_records(resolved)
    }

    fn create_containers(
        &mut self,
        resolved: &Resolved<'_>,
        appended: &mut Appended,
    ) -> Result<()> {
        let new = resolved.targets.iter().filter(|target| target.is_new);
        let new = new.map(|target| (target.name.to_owned(), target.record.number));
        appended.created = new.collect();
        let Some((_, last)) = appended.created.last() else {
            return Ok(());
        };
        self.state.next_container = last + 1;
        self.state.containers += appended.created.len() as u64;
        let created = &appended.created;
        self.change(Part::Numbers, &mut |w, table| {
            let rows = created.iter();
            let rows = rows.map(|(name, number)| (container_key(*number), name));
            table.extend(w, rows).map(drop)
        })
    }

    fn put_messages(&mut self, puts: &[Put], bytes: &[u8]) -> Result<()> {
        if puts.is_empty() {
            return Ok(());
        }
        let last = {
            let mut rows = part(self.root, &*self.w, Part::Messages)?.cursor(&*self.w)?;
            rows.last()?.then(|| rows.key().to_vec())
        };
        // Rows after all existing ones are packed without a descent for each.
        let inside = last.map_or(0, |last| {
            puts.partition_point(|put| put.key[..] <= last[..])
        });
        self.change(Part::Messages, &mut |w, table| {
            for put in &puts[..inside] {
                table.insert(w, &put.key, &bytes[put.row.clone()])?;
            }
            let mut behind = puts[inside..].iter();
            table.extend_lent(w, |add| {
                behind.try_for_each(|put| add(&put.key, &bytes[put.row.clone()]))
            })
        })
    }

    fn set_latest(&mut self, changes: &[LatestChange], bytes: &[u8]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        self.change(Part::Latest, &mut |w, table| {
            for group in changes.chunk_by(|a, b| a.container == b.container) {
                let key = container_key(group[0].container);
                let row = table.get(w, &key)?;
                let mut latest = match &row {
                    Some(row) => Latest::decode(row)?,
                    None => Latest::default(),
                };
                let mut is_changed = false;
                for change in group {
                    is_changed |= latest.set(change.time, &bytes[change.document.clone()])?;
                }
                if is_changed {
                    table.insert(w, &key, &latest.encode())?;
                }
            }
            Ok(())
        })
    }

    /// Removes expired and surplus messages from the containers of an append, a bounded number for each.
    fn sweep(
        &mut self,
        resolved: &mut Resolved<'_>,
        now: i64,
        time: SweepTime,
        removed: &mut Vec<RemovedMessage>,
    ) -> Result<()> {
        let (mut runs, mut unbounded) = (Runs::default(), Vec::new());
        let (root, w, defaults) = (&*self.root, &*self.w, &self.options.defaults);
        for (at, target) in resolved.targets.iter_mut().enumerate() {
            let record = &mut target.record;
            let options = record.options(defaults).clone();
            let is_due = match time {
                SweepTime::Before => {
                    let rows = &resolved.rows[target.items.clone()];
                    let more = rows
                        .iter()
                        .map(|row| (MESSAGE_KEY_BYTES + row.len()) as u64);
                    let (messages, bytes) = record.unprotected();
                    let full = options.is_over(
                        messages + rows.len() as u64,
                        bytes.saturating_add(more.sum()),
                    );
                    let oldest = record.unprotected_from;
                    options.overflow == ContainerOverflow::Reject
                        && full
                        && options.is_expired(oldest, false, now)
                }
                SweepTime::After => {
                    options.overflow == ContainerOverflow::DropOldest && record.is_over(&options)
                }
            };
            if !is_due {
                continue;
            }
            let rows_max = SWEPT_ROWS + 2 * target.items.len() as u64;
            let all = (&mut runs, &mut *removed);
            let swept = collect(root, w, record, &options, now, rows_max, all)?;
            if swept.needs_bounds {
                unbounded.push(at);
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.change(Part::Messages, &mut |w, table| runs.remove(w, table))?;
        for at in unbounded {
            let record = &mut resolved.targets[at].record;
            read_bounds(self.root, &*self.w, record)?;
        }
        Ok(())
    }

    fn save_records(&mut self, resolved: &mut Resolved<'_>) -> Result<()> {
        let mut dues = Vec::new();
        for target in &mut resolved.targets {
            let record = &mut target.record;
            let wanted = record.wanted_due(record.options(&self.options.defaults));
            if wanted < record.due {
                dues.push((record.number, record.due, wanted));
                record.due = wanted;
            }
            let (messages, bytes) = target.before;
            self.state.messages = (self.state.messages + record.messages).saturating_sub(messages);
            self.state.bytes = (self.state.bytes + record.bytes).saturating_sub(bytes);
        }
        self.refile(&dues)?;
        self.change(Part::Containers, &mut |w, table| {
            for target in &resolved.targets {
                table.insert(w, target.name.as_bytes(), &target.record.encode())?;
            }
            Ok(())
        })?;
        self.save_state()
    }
}

/// The time of a removal: before or after the new messages are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SweepTime {
    /// Expired messages of full containers that reject new ones.
    Before,
    /// The oldest messages of containers that rotate.
    After,
}
