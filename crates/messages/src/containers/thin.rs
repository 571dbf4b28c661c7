//! Thinning: of the older messages of a container, one remains for each step of time.
//!
//! A rule works from old to young, in steps of bounded work, and remembers how far it has got. The first message of a step
//! gets the fields that stand for the step, and the others are removed, in one transaction: until it commits, the messages
//! are as they were. Messages that arrive later for a time that a rule has passed stay until the next rule gets there.

use crate::containers::codec;
use crate::containers::dictionary::FieldNames;
use crate::containers::document::Document;
use crate::containers::keys::{MessageKey, behind_container, container_key};
use crate::containers::message::{StoredMessage, counted_bytes, put_head};
use crate::containers::parts::{Part, part};
use crate::containers::read::ContainersReader;
use crate::containers::runs::Runs;
use crate::containers::step_fields::StepFields;
use crate::containers::sweep::read_bounds;
use crate::containers::thinning::{Thinning, ThinningRow, ThinningRule};
use crate::containers::write::ContainersWriter;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Result of a call that thins a container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinned {
    /// Number of messages that were read.
    pub examined: u64,
    /// Number of messages that were removed.
    pub removed: u64,
    /// Number of messages that stand for several others.
    pub changed: u64,
    /// Times of the oldest and the newest message that was changed or removed; `None` if there was none.
    pub span: Option<(i64, i64)>,
    /// Whether the rules are done with all messages that are old enough.
    pub is_done: bool,
}

/// A step with several messages.
struct Step {
    first: StoredMessage,
    document: Document,
}

/// Changes that a rule makes.
#[derive(Default)]
struct Changes {
    steps: Vec<Step>,
    runs: Runs,
    removed: Vec<(i64, u64)>,
}

/// The messages of a step that have been read.
struct Open {
    step: i64,
    first: StoredMessage,
    fields: StepFields,
    messages: u64,
}

impl Open {
    fn close(self, changes: &mut Changes) {
        if self.messages > 1 {
            changes.steps.push(Step {
                first: self.first,
                document: self.fields.document(),
            });
        }
    }
}

fn step_of(time: i64, rule: &ThinningRule) -> i64 {
    time.div_euclid(rule.step_ns)
}

impl<R: PageRead> ContainersReader<R> {
    /// The rules by which a container is thinned; `None` if it has none.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    pub fn thinning(&self, container: &str) -> Result<Option<Thinning>> {
        let Some(record) = self.record(container)? else {
            return Ok(None);
        };
        let table = part(&self.root, &self.r, Part::Thinning)?;
        match table.get(&self.r, &container_key(record.number))? {
            Some(row) => Ok(Some(ThinningRow::decode(&row.bytes()?)?.thinning)),
            None => Ok(None),
        }
    }

    /// Names of containers with rules, behind the container with the number `after`, with their numbers; at most `limit`.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    pub fn thinned_containers(
        &self,
        after: Option<u32>,
        limit: usize,
    ) -> Result<Vec<(u32, String)>> {
        let mut rows = part(&self.root, &self.r, Part::Thinning)?.cursor(&self.r)?;
        let mut there = match after {
            Some(after) => rows.seek_ge(&behind_container(after))?,
            None => rows.first()?,
        };
        let mut found = Vec::new();
        while there && found.len() < limit {
            let number = crate::containers::keys::container_of(rows.key())?;
            // Dropped containers keep their rules.
            if let Some(name) = self.container_name(number)?
                && self
                    .record(&name)?
                    .is_some_and(|record| record.number == number)
            {
                found.push((number, name));
            }
            there = rows.next()?;
        }
        Ok(found)
    }

    pub(crate) fn check_thinning(
        &self,
        is_known: &dyn Fn(u32) -> bool,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut rows = part(&self.root, &self.r, Part::Thinning)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            ThinningRow::decode(&rows.value()?.bytes()?)?;
            let number = crate::containers::keys::container_of(rows.key())?;
            if rows.key().len() != container_key(number).len() || !is_known(number) {
                problem(format!(
                    "rules of thinning of container {number}, which does not exist"
                ));
            }
            there = rows.next()?;
        }
        Ok(())
    }
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Sets the rules by which a container is thinned, or removes them. New rules begin at the oldest message.
    ///
    /// # Errors
    /// `Unsupported` for a container that does not exist and for rules that cannot be used; a damaged page, a full disk.
    pub fn set_thinning(&mut self, container: &str, thinning: Option<Thinning>) -> Result<()> {
        let row = thinning.map(ThinningRow::new).transpose()?;
        let key = container_key(self.record(container)?.number);
        self.change(Part::Thinning, &mut |w, table| match &row {
            Some(row) => table.insert(w, &key, &row.encode()).map(drop),
            None => table.remove(w, &key).map(drop),
        })
    }

    /// Thins a container; reads about `examined_max` messages.
    ///
    /// # Errors
    /// `Unsupported` for a container that does not exist; a damaged page or row, a full disk.
    ///
    /// # Cost
    /// A descent for each rule, then the messages that have become old enough since the last call. Memory for the messages
    /// that stand for steps, and for the keys of the others.
    pub fn thin(&mut self, now: i64, container: &str, examined_max: u64) -> Result<Thinned> {
        let mut thinned = Thinned {
            is_done: true,
            ..Thinned::default()
        };
        let number = self.record(container)?.number;
        let key = container_key(number);
        let mut row = {
            let w = &*self.w;
            match part(self.root, w, Part::Thinning)?.get(w, &key)? {
                Some(row) => ThinningRow::decode(&row.bytes()?)?,
                None => return Ok(thinned),
            }
        };
        let before = row.done.clone();
        for (rule, done) in row.thinning.rules.iter().zip(&mut row.done) {
            let Some(old) = now.checked_sub(rule.age_ns) else {
                continue;
            };
            // Only whole steps: the last one ends at `end`.
            let end = step_of(old, rule).saturating_mul(rule.step_ns);
            if *done >= end {
                continue;
            }
            if thinned.examined >= examined_max {
                thinned.is_done = false;
                break;
            }
            let mut changes = Changes::default();
            let left = examined_max - thinned.examined;
            let span = (*done, end);
            let work = (&row.thinning, rule);
            let (reached, examined) = self.steps(number, work, span, left, &mut changes)?;
            thinned.examined += examined;
            *done = reached;
            thinned.is_done &= reached == end;
            self.apply_steps(container, changes, &mut thinned)?;
        }
        if row.done != before {
            self.change(Part::Thinning, &mut |w, table| {
                table.insert(w, &key, &row.encode()).map(drop)
            })?;
        }
        Ok(thinned)
    }

    /// Finds the steps with several messages in a span of times. Returns the time up to which it has looked, and the number of
    /// messages that it has read.
    fn steps(
        &self,
        number: u32,
        (thinning, rule): (&Thinning, &ThinningRule),
        (from, to): (i64, i64),
        examined_max: u64,
        changes: &mut Changes,
    ) -> Result<(i64, u64)> {
        let w = &*self.w;
        let names = FieldNames::read(self.root, w)?;
        let mut rows = part(self.root, w, Part::Messages)?.cursor(w)?;
        let mut there = rows.seek_ge(&MessageKey::new(number, from, 0).encode())?;
        let (mut open, mut examined, mut follows): (Option<Open>, _, _) = (None, 0, false);
        while there && rows.key() < &behind_container(number)[..] {
            let key = MessageKey::decode(rows.key())?;
            if key.time >= to {
                break;
            }
            let step = step_of(key.time, rule);
            if open.as_ref().is_some_and(|open| open.step != step) {
                if let Some(open) = open.take() {
                    open.close(changes);
                }
                if examined >= examined_max {
                    return Ok((step.saturating_mul(rule.step_ns).max(from), examined));
                }
            }
            examined += 1;
            let message = StoredMessage::decode(key, &rows.value()?.bytes()?)?;
            if message.is_protected {
                follows = false;
                there = rows.next()?;
                continue;
            }
            let document = codec::decode(&message.document, &|number| names.get(number))?;
            match &mut open {
                Some(open) => {
                    changes.runs.push(key.encode(), follows);
                    changes.removed.push((key.time, message.counted_bytes()));
                    open.fields.take(document, thinning);
                    open.messages += 1;
                    follows = true;
                }
                None => {
                    let mut fields = StepFields::default();
                    fields.take(document, thinning);
                    open = Some(Open {
                        step,
                        first: message,
                        fields,
                        messages: 1,
                    });
                    follows = false;
                }
            }
            there = rows.next()?;
        }
        if let Some(open) = open {
            open.close(changes);
        }
        Ok((to, examined))
    }

    /// Writes the messages that stand for steps, and removes the others.
    fn apply_steps(
        &mut self,
        container: &str,
        changes: Changes,
        thinned: &mut Thinned,
    ) -> Result<()> {
        if changes.steps.is_empty() {
            return Ok(());
        }
        let mut record = self.record(container)?;
        let (messages, bytes) = (record.messages, record.bytes);
        let mut written = Vec::with_capacity(changes.steps.len());
        for Step { first, document } in &changes.steps {
            let mut row = Vec::new();
            put_head(false, first.received, &mut row);
            {
                let (w, fields, state) = (&*self.w, &mut self.fields, &self.state);
                let table = part(self.root, w, Part::Fields)?;
                let mut number = |name: &str| fields.number(&table, w, state, name);
                codec::encode(document, &mut number, &mut row)?;
            }
            record.subtract(first.counted_bytes(), false);
            record.add(counted_bytes(row.len() as u64), false);
            written.push((first.key.encode(), row));
        }
        // All fields are known: they come from messages of this table.
        self.fields.store(self.root, self.w, &mut self.state)?;
        for (_, counted) in &changes.removed {
            record.subtract(*counted, false);
        }
        self.change(Part::Messages, &mut |w, table| {
            changes.runs.remove(w, table)?;
            written
                .iter()
                .try_for_each(|(key, row)| table.insert(w, key, row).map(drop))
        })?;
        let all = changes.steps.iter().map(|step| step.first.key.time);
        let all = all.chain(changes.removed.iter().map(|(time, _)| *time));
        for time in all {
            let (from, to) = thinned.span.unwrap_or((time, time));
            thinned.span = Some((from.min(time), to.max(time)));
        }
        thinned.changed += changes.steps.len() as u64;
        thinned.removed += changes.removed.len() as u64;
        record.changes += changes.removed.len() as u64 + changes.steps.len() as u64;
        read_bounds(self.root, &*self.w, &mut record)?;
        self.state.messages = self.state.messages.saturating_sub(messages) + record.messages;
        self.state.bytes = self.state.bytes.saturating_sub(bytes) + record.bytes;
        self.save_record(container, &mut record)?;
        self.save_state()
    }
}
