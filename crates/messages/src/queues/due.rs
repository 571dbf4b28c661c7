//! Leases and delays that have lapsed.

use crate::queues::edit::Edit;
use crate::queues::keys;
use crate::queues::mark::{Mark, Phase};
use crate::queues::parts::{Part, damaged};
use crate::queues::sets::{self, each_set};
use crate::queues::store::Messages;
use crate::queues::writer::QueueWriter;
use tidalite_pager::{PageRead, PageWrite, Result};

/// The reason why a message is a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeadReason {
    /// It was delivered as often as the queue permits, and was not acknowledged.
    TooManyDeliveries,
    /// A consumer rejected it.
    Rejected,
}

impl DeadReason {
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::TooManyDeliveries => 0,
            Self::Rejected => 1,
        }
    }

    pub(crate) fn of(code: u64) -> Result<Self> {
        match code {
            0 => Ok(Self::TooManyDeliveries),
            1 => Ok(Self::Rejected),
            _ => Err(damaged("dead letter", format!("reason {code}"), "0 or 1")),
        }
    }
}

/// The mark of a message that becomes a dead letter.
pub(crate) fn dead_mark(from: &Mark, reason: DeadReason, now: i64) -> Mark {
    Mark {
        phase: Phase::Dead,
        time: now,
        lease: reason.code(),
        ..*from
    }
}

/// The ids of a group that are due, ordered by time; at most `limit`.
pub(crate) fn due_ids<R: PageRead>(
    root: &tidalite_kv::Tree,
    r: &R,
    group: u32,
    limit: usize,
    now: i64,
) -> Result<Vec<u64>> {
    let prefix = keys::group_prefix(group);
    let mut due = Vec::new();
    each_set(
        root,
        r,
        Part::Due,
        &prefix,
        &prefix,
        &mut |key, base, members| {
            let Some((time, [_])) = keys::split_time(&key[prefix.len()..]) else {
                return Err(damaged("due ids of a queue", key.escape_ascii(), "a time"));
            };
            if time <= now {
                due.extend(sets::ids(base, members).take(limit - due.len()));
            }
            Ok(time <= now && due.len() < limit)
        },
    )?;
    Ok(due)
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Ends leases and delays of a group that have lapsed, at most `limit`; returns their number.
    pub(crate) fn fall_due(&mut self, row: &str, limit: usize, now: i64) -> Result<usize> {
        let Some(group) = self.groups.get(row) else {
            return Ok(0);
        };
        if group.leased + group.delayed == 0 {
            return Ok(0);
        }
        let due = due_ids(self.root, &*self.w, group.number, limit, now)?;
        if due.is_empty() {
            return Ok(0);
        }
        let mut edit = Edit::new(*group);
        let options = self.options;
        for &id in &due {
            let (root, r) = (&*self.root, &*self.w);
            let from = match edit.marks.get(root, r, id)? {
                Some(mark) if matches!(mark.phase, Phase::Leased | Phase::Delayed) => mark,
                found => {
                    let found = format!("{found:?}");
                    return Err(damaged("mark of a queue", found, "leased or delayed"));
                }
            };
            if from.phase == Phase::Leased && options.is_dead_after(from.count) {
                let lane = Messages::open(root, r)?.expect(id)?.lane;
                let to = dead_mark(&from, DeadReason::TooManyDeliveries, now);
                edit.change(root, r, id, (from, to), lane)?;
            } else {
                let to = Mark::ready(from.priority, from.count);
                edit.change(root, r, id, (from, to), None)?;
            }
        }
        self.store(row, edit, now)?;
        Ok(due.len())
    }
}
