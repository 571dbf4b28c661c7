//! Thinning: of the older messages of a container, one per step of time remains.
//!
//! A rule proceeds from old to new messages, in bounded amounts of work, and stores its progress. The first message of
//! a step is replaced by one that represents the step, and the others are removed, in one transaction. Messages that
//! arrive later for a time that a rule has already processed remain until the next rule reaches that time.

use crate::containers::keys::{behind_container, container_key};
use crate::containers::message::counted_bytes;
use crate::containers::parts::{Part, part};
use crate::containers::read::ContainersReader;
use crate::containers::record::Record;
use crate::containers::step_fields::Figures;
use crate::containers::steps::{Search, Step};
use crate::containers::sweep::read_bounds;
use crate::containers::thinning::{Thinning, ThinningRow};
use crate::containers::write::ContainersWriter;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Result of a call that thins a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thinned {
    /// Number of messages that were read.
    pub examined: u64,
    /// Number of messages that were removed.
    pub removed: u64,
    /// Number of messages that now stand for several others.
    pub changed: u64,
    /// Times of the oldest and the newest message that was changed or removed, for each step or for several
    /// neighbouring steps of one rule. Spans of different rules can overlap.
    pub spans: Vec<(i64, i64)>,
    /// Whether there are more messages that are old enough.
    pub more: bool,
}

impl<R: PageRead> ContainersReader<R> {
    /// The thinning rules of a container; `None` if it has none.
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

    /// Names and numbers of containers with rules whose numbers follow `after`; at most `limit`.
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
    /// Sets the thinning rules of a container, or removes them. New rules begin at the oldest message.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `InvalidInput` for rules that cannot be used; a damaged page, a
    /// full disk.
    pub fn set_thinning(&mut self, container: &str, thinning: Option<Thinning>) -> Result<()> {
        let row = thinning.map(ThinningRow::new).transpose()?;
        let key = container_key(self.record(container)?.number);
        self.change(Part::Thinning, &mut |w, table| match &row {
            Some(row) => table.insert(w, &key, &row.encode()).map(drop),
            None => table.remove(w, &key).map(drop),
        })
    }

    /// Thins a container; reads about `examined_max` messages, at least one. Expired messages are left to `maintain`. A
    /// step does not change if its combined message would have too many fields or bytes.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page or row, a full disk.
    ///
    /// # Cost
    /// A descent for each rule, then the messages that have become old enough since the last call. A step of up to
    /// 10,000 messages is read as a whole, with the protected messages among them. Of a larger step, the messages read
    /// so far are combined, and the next call continues. Needs memory for the messages that represent steps, and for
    /// the keys of the others.
    pub fn thin(&mut self, now: i64, container: &str, examined_max: u64) -> Result<Thinned> {
        let examined_max = examined_max.max(1);
        let mut thinned = Thinned::default();
        let mut record = self.record(container)?;
        let (messages, bytes) = (record.messages, record.bytes);
        let key = container_key(record.number);
        let mut row = {
            let w = &*self.w;
            match part(self.root, w, Part::Thinning)?.get(w, &key)? {
                Some(row) => ThinningRow::decode(&row.bytes()?)?,
                None => return Ok(thinned),
            }
        };
        let figures = Figures::read(self.root, &*self.w, &row.thinning)?;
        let options = record.options(&self.options.defaults).clone();
        let before = row.done.clone();
        for (rule, done) in row.thinning.rules.iter().zip(&mut row.done) {
            // Only whole steps are thinned.
            let Some(to) = rule.end(now).filter(|to| *done < *to) else {
                continue;
            };
            if thinned.examined >= examined_max {
                thinned.more = true;
                break;
            }
            let search = Search {
                container: record.number,
                options: &options,
                now,
                rule: *rule,
                figures: &figures,
                from: *done,
                to,
                examined_max: examined_max - thinned.examined,
            };
            let found = search.run(self.root, &*self.w)?;
            thinned.examined += found.examined;
            thinned.more |= found.reached != to;
            *done = found.reached;
            self.apply_steps(&mut record, &found.steps, &mut thinned)?;
        }
        if row.done != before {
            self.change(Part::Thinning, &mut |w, table| {
                table.insert(w, &key, &row.encode()).map(drop)
            })?;
        }
        if thinned.changed > 0 {
            read_bounds(self.root, &*self.w, &mut record)?;
            self.state.messages = self.state.messages.saturating_sub(messages) + record.messages;
            self.state.bytes = self.state.bytes.saturating_sub(bytes) + record.bytes;
            self.save_record(container, &mut record)?;
            self.save_state()?;
        }
        Ok(thinned)
    }

    /// Writes the messages that represent the steps of one rule, and removes the others. The caller stores the record.
    fn apply_steps(
        &mut self,
        record: &mut Record,
        steps: &[Step],
        thinned: &mut Thinned,
    ) -> Result<()> {
        if steps.is_empty() {
            return Ok(());
        }
        self.change(Part::Messages, &mut |w, table| {
            for step in steps {
                step.runs.remove(w, table)?;
                table.insert(w, &step.key.encode(), &step.row)?;
            }
            Ok(())
        })?;
        let mut last = None;
        for step in steps {
            record.subtract(step.counted_before, false);
            record.add(counted_bytes(step.row.len() as u64), false);
            for counted in &step.removed {
                record.subtract(*counted, false);
            }
            let removed = step.removed.len() as u64;
            thinned.changed += 1;
            thinned.removed += removed;
            record.changes += 1 + removed;
            let is_next = last == step.number.checked_sub(1) && last.is_some();
            match thinned.spans.last_mut() {
                Some((_, to)) if is_next => *to = step.last,
                _ => thinned.spans.push((step.key.time.0, step.last)),
            }
            last = Some(step.number);
        }
        Ok(())
    }
}
