//! Changes of one group in memory, which are stored at the end of a call. Every transition of a message from one state
//! to another updates the sets, the marks, the leases, the lanes and the counters of the group consistently.
//!
//! Invariant: the head of a lane is the only message of its ordering key that is ready, delayed or leased. When it
//! leaves these states, the lane becomes free, and `settle` makes the waiting message with the least id the head.

use crate::queues::counters::Group;
use crate::queues::keys;
use crate::queues::lease_row::Leases;
use crate::queues::mark::{Mark, Marks, Phase};
use crate::queues::message::Head;
use crate::queues::parts::{Part, change, damaged, part};
use crate::queues::sets::{SetChanges, each_set};
use crate::queues::store::Messages;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};

pub(crate) struct Edit {
    pub(crate) group: Group,
    pub(crate) marks: Marks,
    pub(crate) leases: Leases,
    sets: SetChanges,
    /// Heads of lanes that were read, each with a flag for whether it was changed.
    heads: BTreeMap<u64, (Option<u64>, bool)>,
    /// Lanes that have lost their heads.
    freed: BTreeSet<u64>,
}

impl Edit {
    pub(crate) fn new(group: Group) -> Self {
        Self {
            marks: Marks::new(group.number),
            leases: Leases::new(group.number),
            group,
            sets: SetChanges::default(),
            heads: BTreeMap::new(),
            freed: BTreeSet::new(),
        }
    }

    fn head_of_lane<R: PageRead>(&mut self, root: &Tree, r: &R, lane: u64) -> Result<Option<u64>> {
        if let Some((head, _)) = self.heads.get(&lane) {
            return Ok(*head);
        }
        let key = keys::pair(self.group.number, lane);
        let head = match part(root, r, Part::Heads)?.get(r, &key)? {
            Some(value) => Some(decode_head(&value.bytes()?)?),
            None => None,
        };
        self.heads.insert(lane, (head, false));
        Ok(head)
    }

    fn counter(&mut self, phase: Phase) -> &mut u64 {
        match phase {
            Phase::Ready => &mut self.group.ready,
            Phase::Leased => &mut self.group.leased,
            Phase::Delayed => &mut self.group.delayed,
            Phase::Waiting => &mut self.group.waiting,
            Phase::Dead => &mut self.group.dead,
        }
    }

    /// The set that lists an id with this mark: its part and its key.
    fn set_of(&self, id: u64, mark: &Mark, lane: Option<u64>) -> Result<(Part, Vec<u8>)> {
        let group = self.group.number;
        Ok(match mark.phase {
            Phase::Ready => (Part::Ready, keys::ready(group, mark.priority, id)),
            Phase::Leased | Phase::Delayed => {
                (Part::Due, keys::due(group, mark.time, mark.priority, id))
            }
            Phase::Waiting => match lane {
                Some(lane) => (Part::Waiting, keys::waiting(group, lane, id)),
                None => return Err(damaged("mark of a queue", "waiting", "an ordering key")),
            },
            Phase::Dead => (Part::Dead, keys::by_group(group, id)),
        })
    }

    fn leave<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        mark: &Mark,
        lane: Option<u64>,
    ) -> Result<()> {
        let (part, key) = self.set_of(id, mark, lane)?;
        self.sets.remove(part, &key, id);
        let counter = self.counter(mark.phase);
        *counter = counter.saturating_sub(1);
        if mark.phase == Phase::Leased {
            self.leases.count(root, r, mark.lease, -1)?;
        }
        Ok(())
    }

    fn enter<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        mark: &Mark,
        lane: Option<u64>,
    ) -> Result<()> {
        let (part, key) = self.set_of(id, mark, lane)?;
        self.sets.add(part, &key, id);
        *self.counter(mark.phase) += 1;
        if mark.phase == Phase::Leased {
            self.leases.count(root, r, mark.lease, 1)?;
        }
        Ok(())
    }

    /// Moves an open id from one state to another. The lane is needed for messages that wait or become dead letters.
    pub(crate) fn change<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        (from, to): (Mark, Mark),
        lane: Option<u64>,
    ) -> Result<()> {
        self.leave(root, r, id, &from, lane)?;
        self.enter(root, r, id, &to, lane)?;
        self.marks.set(root, r, id, Some(to))?;
        if to.phase == Phase::Dead {
            self.group.buried += 1;
            self.free_lane(from.phase, lane);
        }
        Ok(())
    }

    fn free_lane(&mut self, from: Phase, lane: Option<u64>) {
        if let (Phase::Ready | Phase::Leased | Phase::Delayed, Some(lane)) = (from, lane) {
            self.freed.insert(lane);
        }
    }

    /// The state of a message that may be delivered, after `count` deliveries. If its lane already has a head, it
    /// waits; otherwise it becomes the head.
    fn arrival<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        head: &Head,
        now: i64,
    ) -> Result<Mark> {
        if let Some(lane) = head.lane {
            if self.head_of_lane(root, r, lane)?.is_some() {
                return Ok(Mark::waiting(head.priority, 0));
            }
            self.heads.insert(lane, (Some(id), true));
        }
        Ok(first_mark(head, 0, now))
    }

    /// Adds a new open id.
    pub(crate) fn begin<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        head: &Head,
        now: i64,
    ) -> Result<()> {
        let mark = self.arrival(root, r, id, head, now)?;
        self.sets
            .add(Part::Open, &keys::by_group(self.group.number, id), id);
        self.enter(root, r, id, &mark, head.lane)?;
        if mark != Mark::ready(head.priority, 0) {
            self.marks.set(root, r, id, Some(mark))?;
        }
        Ok(())
    }

    /// Makes a dead letter ready again, as a message that was never delivered.
    pub(crate) fn requeue<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        from: Mark,
        head: &Head,
        now: i64,
    ) -> Result<()> {
        let to = self.arrival(root, r, id, head, now)?;
        self.change(root, r, id, (from, to), head.lane)
    }

    /// Removes an open id: the group no longer needs the message.
    pub(crate) fn finish<R: PageRead>(
        &mut self,
        root: &Tree,
        r: &R,
        id: u64,
        from: Mark,
        lane: Option<u64>,
    ) -> Result<()> {
        self.leave(root, r, id, &from, lane)?;
        self.sets
            .remove(Part::Open, &keys::by_group(self.group.number, id), id);
        self.free_lane(from.phase, lane);
        if from != Mark::ready(from.priority, 0) {
            self.marks.set(root, r, id, None)?;
        }
        Ok(())
    }

    /// Assigns new heads to freed lanes, and stores all changes. Returns the row of the group.
    pub(crate) fn store<W: PageWrite>(
        mut self,
        root: &mut Tree,
        w: &mut W,
        now: i64,
    ) -> Result<Group> {
        if !self.freed.is_empty() {
            self.sets.store_part(root, w, Part::Waiting)?;
            for lane in std::mem::take(&mut self.freed) {
                self.next_head(root, &*w, lane, now)?;
            }
        }
        self.marks.store(root, w)?;
        self.sets.store(root, w)?;
        self.leases.store(root, w)?;
        if self.heads.values().any(|(_, is_changed)| *is_changed) {
            change(root, w, Part::Heads, &mut |w, table| {
                for (lane, (head, is_changed)) in &self.heads {
                    let key = keys::pair(self.group.number, *lane);
                    match head {
                        Some(id) if *is_changed => table.insert(w, &key, &id.to_be_bytes())?,
                        None if *is_changed => table.remove(w, &key)?,
                        _ => false,
                    };
                }
                Ok(())
            })?;
        }
        Ok(self.group)
    }

    fn next_head<R: PageRead>(&mut self, root: &Tree, r: &R, lane: u64, now: i64) -> Result<()> {
        let prefix = keys::pair(self.group.number, lane);
        let mut next = None;
        each_set(
            root,
            r,
            Part::Waiting,
            &prefix,
            &prefix,
            &mut |_, base, members| {
                next = members.min().map(|low| base | low);
                Ok(false)
            },
        )?;
        self.heads.insert(lane, (next, true));
        let Some(id) = next else {
            return Ok(());
        };
        let head = Messages::open(root, r)?.expect(id)?;
        match self.marks.get(root, r, id)? {
            Some(from) if from.phase == Phase::Waiting => {
                let to = first_mark(&head, from.count, now);
                self.change(root, r, id, (from, to), Some(lane))
            }
            found => Err(damaged("mark of a queue", format!("{found:?}"), "waiting")),
        }
    }
}

/// The state of a message that is not blocked by another message.
pub(crate) fn first_mark(head: &Head, count: u32, now: i64) -> Mark {
    match head.not_before {
        Some(until) if until > now => Mark::delayed(head.priority, count, until),
        _ => Mark::ready(head.priority, count),
    }
}

/// Decodes the id of the head of a lane.
pub(crate) fn decode_head(bytes: &[u8]) -> Result<u64> {
    match bytes.try_into() {
        Ok(id) => Ok(u64::from_be_bytes(id)),
        Err(_) => Err(damaged("head of a lane", bytes.escape_ascii(), "an id")),
    }
}
