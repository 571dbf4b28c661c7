//! Maintenance of topics, queues, buckets and containers: removes messages and objects that have expired, are older
//! than a retention, or exceed a maximum.
//!
//! Invariants: 1. The tables with work are found in a snapshot; a table without work costs neither the writer lock nor a
//! commit. 2. A table that fails is rolled back alone, and stops no other work. 3. Messages get half of the time at most. If
//! that is over, the next call begins after the table at which this call ended.

use super::report::{FailedTable, MaintainedMessages};
use super::run::Run;
use crate::catalog::commit_clock::ClockReading;
use crate::database::handle::Database;
use crate::txn::read::ReadTxn;
use crate::txn::write::WriteTxn;
use crate::types::error::kind::ErrorKind;
use crate::types::error::{Error, Result};
use crate::types::table_types::TableLayout;
use std::sync::PoisonError;
use tidalite_time::Timestamp;

/// Number of messages, objects and other rows that one commit removes, about.
const ROWS_EACH: u64 = 1000;
/// Number of tables that one commit maintains.
const TABLES_EACH: usize = 64;

/// A table of topics, a queue, a bucket or a table of containers.
struct MessageTable {
    name: String,
    layout: TableLayout,
}

/// The result of one step in a table.
#[derive(Clone, Copy, Default)]
struct Step {
    messages: u64,
    objects: u64,
    /// Whether work may remain.
    more: bool,
}

impl Run<'_> {
    /// Maintains the tables that have work at the time `now`; `ahead` is the reading of the clocks if the wall clock is
    /// ahead. Tables that fail are listed in the report.
    pub(super) fn maintain_messages(
        &mut self,
        now: Timestamp,
        ahead: Option<ClockReading>,
    ) -> Result<()> {
        let due = self.due_messages(now)?;
        let mut clock = self.clock.half(!self.budget.time.is_zero());
        // Indices in `due`: the next table, and the last one that was counted.
        let (mut next, mut counted) = (0, None);
        while next < due.len() {
            let txn = match clock.is_over() {
                true => None,
                false => (self.begin)()?,
            };
            let Some(mut txn) = txn else {
                self.more_messages = true;
                break;
            };
            let (from, mut last, mut has_work) = (next, next, false);
            let mut all = MaintainedMessages {
                commits: 1,
                ..MaintainedMessages::default()
            };
            while next < due.len()
                && next - from < TABLES_EACH
                && all.messages + all.objects < ROWS_EACH
            {
                last = next;
                let table = &due[next];
                let left = ROWS_EACH - all.messages - all.objects;
                match txn.nested(|txn| txn.maintain_messages(table, now, left)) {
                    Ok(Some(step)) => {
                        has_work = true;
                        all.messages += step.messages;
                        all.objects += step.objects;
                        all.tables += u64::from(counted.replace(next) != Some(next));
                        if step.more {
                            break;
                        }
                    }
                    // Another transaction has done the work, or dropped the table.
                    Ok(None) => {}
                    Err(error) => {
                        self.fail(&table.name, error);
                        if txn.check_usable().is_err() {
                            // The earlier steps of this transaction are lost, too.
                            (has_work, self.more_messages) = (false, true);
                            next += 1;
                            break;
                        }
                    }
                }
                next += 1;
            }
            self.database.go_on_after(&due[last].name);
            if !has_work {
                continue;
            }
            match txn.commit() {
                Ok(_) => self.done.messages.add(&all),
                // The commit was rolled back. Removals for a cap may make room.
                Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Damaged) => {
                    self.fail(&due[from].name, error);
                    self.more_messages = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        match ahead {
            Some(reading) if !self.more_messages => self.note_waiting(reading),
            _ => Ok(()),
        }
    }

    /// Notes in the report if tables have work by the wall clock, which is ahead.
    fn note_waiting(&mut self, reading: ClockReading) -> Result<()> {
        let snap = self.database.begin_read()?;
        for name in snap.tables()? {
            let has_failed = self.done.failed.iter().any(|one| one.table == name);
            if !has_failed && matches!(snap.due_table(&name, reading.wall), Ok(Some(_))) {
                self.done.clock_ahead = Some(reading);
                break;
            }
        }
        Ok(())
    }

    fn fail(&mut self, table: &str, error: Error) {
        self.done.failed.push(FailedTable {
            table: table.to_owned(),
            kind: error.kind(),
            problem: error.to_string(),
        });
        self.failed.get_or_insert(error);
    }

    /// The tables that have work at the time `now`, beginning after the one at which the last call ended.
    fn due_messages(&mut self, now: Timestamp) -> Result<Vec<MessageTable>> {
        let snap = self.database.begin_read()?;
        let mut due = Vec::new();
        for name in snap.tables()? {
            match snap.due_table(&name, now) {
                Ok(table) => due.extend(table),
                Err(error) => self.fail(&name, error),
            }
        }
        let after = self.database.shared.messages_after.lock();
        let after = after.unwrap_or_else(PoisonError::into_inner);
        let first = due.partition_point(|table| table.name <= *after);
        due.rotate_left(first);
        Ok(due)
    }
}

impl MaintainedMessages {
    pub(super) fn add(&mut self, other: &Self) {
        self.tables += other.tables;
        self.messages += other.messages;
        self.objects += other.objects;
        self.commits += other.commits;
    }
}

impl Database {
    /// Makes the next call begin after this table.
    fn go_on_after(&self, table: &str) {
        let after = self.shared.messages_after.lock();
        let mut after = after.unwrap_or_else(PoisonError::into_inner);
        table.clone_into(&mut after);
    }
}

impl ReadTxn {
    /// The table with this name, if it has messages or objects to maintain at the time `now`.
    fn due_table(&self, name: &str, now: Timestamp) -> Result<Option<MessageTable>> {
        let Some(types) = self.table_types(name)? else {
            return Ok(None);
        };
        let layout = types.layout();
        let is_due = match layout {
            TableLayout::Topics => match self.topics(name)? {
                Some(topics) => topics.is_maintenance_due(now)?,
                None => false,
            },
            TableLayout::Queue => match self.queue(name)? {
                Some(queue) => queue.is_maintenance_due(now)?,
                None => false,
            },
            TableLayout::Bucket => match self.bucket(name)? {
                Some(bucket) => bucket.is_maintenance_due(now)?,
                None => false,
            },
            TableLayout::Containers => match self.containers(name)? {
                Some(containers) => containers.is_maintenance_due(now)?,
                None => false,
            },
            TableLayout::Rows
            | TableLayout::Hash
            | TableLayout::Buffered
            | TableLayout::Relation => false,
        };
        let name = name.to_owned();
        Ok(is_due.then_some(MessageTable { name, layout }))
    }
}

impl WriteTxn {
    /// Does a step of the maintenance of a table at the time `now`: removes about `rows` rows. Returns `None`, and
    /// changes nothing, if the table has no work or is another one by now.
    fn maintain_messages(
        &mut self,
        table: &MessageTable,
        now: Timestamp,
        rows: u64,
    ) -> Result<Option<Step>> {
        let name = &table.name;
        let types = self.table_types(name)?;
        if types.map(|types| types.layout()) != Some(table.layout) {
            return Ok(None);
        }
        let mut step = Step::default();
        match table.layout {
            TableLayout::Topics => {
                let mut topics = self.topics(name)?;
                if !topics.view()?.is_maintenance_due(now)? {
                    return Ok(None);
                }
                let done = topics.maintain_at(now, rows)?;
                (step.messages, step.more) = (done.expired, done.more);
            }
            TableLayout::Queue => {
                let mut queue = self.queue(name)?;
                if !queue.view()?.is_maintenance_due(now)? {
                    return Ok(None);
                }
                let done = queue.maintain_at(now, rows)?;
                (step.messages, step.more) = (done.expired + done.aged, done.more);
            }
            TableLayout::Bucket => {
                let mut bucket = self.bucket(name)?;
                if !bucket.view()?.is_maintenance_due(now)? {
                    return Ok(None);
                }
                let done = bucket.maintain_at(now, rows)?;
                (step.objects, step.more) = (done.expired.objects, done.more);
            }
            TableLayout::Containers => {
                let mut containers = self.containers(name)?;
                if !containers.view()?.is_maintenance_due(now)? {
                    return Ok(None);
                }
                let done = containers.maintain_at(now, rows)?;
                (step.messages, step.more) = (done.expired + done.rotated, done.more);
                // Rows of the series that cannot be stored must fail here, not in the step of another table.
                self.savepoint()?;
            }
            TableLayout::Rows
            | TableLayout::Hash
            | TableLayout::Buffered
            | TableLayout::Relation => return Ok(None),
        }
        Ok(Some(step))
    }
}
