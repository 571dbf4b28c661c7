//! Responses of consumers to the messages that they lease: ack, nack, reject, extend.

use crate::queues::due::{DeadReason, dead_mark};
use crate::queues::edit::Edit;
use crate::queues::keys;
use crate::queues::mark::{Mark, Phase};
use crate::queues::message::Head;
use crate::queues::options::{BATCH_MAX, check_limit};
use crate::queues::parts::Part;
use crate::queues::sets;
use crate::queues::store::{Messages, missing};
use crate::queues::writer::QueueWriter;
use tidalite_pager::{PageWrite, Result};

/// The result for one id. Only `Done` has changed anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answered {
    /// The response took effect.
    Done,
    /// The lease has lapsed: the message will be delivered again.
    Lapsed,
    /// Another consumer leases the message.
    HeldByOther,
    /// The message is not leased: it is ready, delayed, waiting, or a dead letter.
    NotLeased,
    /// The group does not have the message: it was acknowledged or removed, or never pushed.
    Unknown,
}

/// A response of a consumer.
#[derive(Clone, Copy)]
enum Answer {
    Ack,
    Nack { delay: i64 },
    Reject,
    Extend { duration: i64 },
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Acknowledges messages: the group does not get them again. Messages that no other group needs are removed.
    /// Returns a result for each id.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; `Limit` for more than [`BATCH_MAX`] ids. `DiskFull`, `Io`; a damaged
    /// page.
    ///
    /// # Cost
    /// One or two rows for each 64 consecutive ids; consecutive messages are removed as ranges.
    pub fn ack(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        now: i64,
    ) -> Result<Vec<Answered>> {
        self.answer(group, consumer, ids, Answer::Ack, now)
    }

    /// Returns messages to the group: they are ready again after `delay` nanoseconds. A message that was delivered as
    /// often as the queue permits becomes a dead letter. Returns a result for each id.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn nack(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        delay: i64,
        now: i64,
    ) -> Result<Vec<Answered>> {
        self.answer(group, consumer, ids, Answer::Nack { delay }, now)
    }

    /// Turns messages into dead letters of the group. Returns a result for each id.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn reject(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        now: i64,
    ) -> Result<Vec<Answered>> {
        self.answer(group, consumer, ids, Answer::Reject, now)
    }

    /// Extends the leases of messages to `now + duration`. Returns a result for each id.
    ///
    /// # Errors
    /// As for `ack`.
    pub fn extend(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        duration: i64,
        now: i64,
    ) -> Result<Vec<Answered>> {
        self.answer(group, consumer, ids, Answer::Extend { duration }, now)
    }

    fn answer(
        &mut self,
        group: &str,
        consumer: &str,
        ids: &[u64],
        answer: Answer,
        now: i64,
    ) -> Result<Vec<Answered>> {
        check_limit("ids of a batch", ids.len(), BATCH_MAX)?;
        let (row, mut edit) = self.edit(group)?;
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by_key(|&at| ids[at]);
        let mut answers = vec![Answered::Unknown; ids.len()];
        let mut finished: Vec<(u64, Head)> = Vec::new();
        let mut unmarked = Vec::new();
        let mut messages = Messages::open(self.root, &*self.w)?;
        for at in order {
            let id = ids[at];
            if id >= self.state.next_id {
                break; // This id and all that follow were never pushed.
            }
            let (root, r) = (&*self.root, &*self.w);
            let Some(mark) = edit.marks.get(root, r, id)? else {
                if finished.last().is_none_or(|(last, _)| *last != id) {
                    unmarked.push((id, at));
                }
                continue;
            };
            answers[at] = match mark.phase {
                Phase::Leased if mark.time <= now => Answered::Lapsed,
                Phase::Leased
                    if !edit
                        .leases
                        .is_held_by(root, r, mark.lease, consumer.as_bytes())? =>
                {
                    Answered::HeldByOther
                }
                Phase::Leased => Answered::Done,
                _ => Answered::NotLeased,
            };
            if answers[at] != Answered::Done {
                continue;
            }
            match self.next_mark(&mark, answer, now) {
                None => {
                    let head = messages.head(id)?.ok_or_else(|| missing(id))?;
                    edit.finish(root, r, id, mark, head.lane)?;
                    edit.group.acked += 1;
                    finished.push((id, head));
                }
                Some(to) if to.phase == Phase::Dead => {
                    let head = messages.head(id)?.ok_or_else(|| missing(id))?;
                    edit.change(root, r, id, (mark, to), head.lane)?;
                }
                Some(to) => edit.change(root, r, id, (mark, to), None)?,
            }
        }
        self.find_open(&edit, &unmarked, &mut answers)?;
        self.store(row, edit, now)?;
        if !finished.is_empty() {
            self.delete_unneeded(&finished)?;
        }
        Ok(answers)
    }

    /// The mark of a message after a response; `None` for a message that is acknowledged.
    fn next_mark(&self, from: &Mark, answer: Answer, now: i64) -> Option<Mark> {
        Some(match answer {
            Answer::Ack => return None,
            Answer::Nack { .. } if self.options.is_dead_after(from.count) => {
                dead_mark(from, DeadReason::TooManyDeliveries, now)
            }
            Answer::Nack { delay } if delay > 0 => {
                Mark::delayed(from.priority, from.count, now.saturating_add(delay))
            }
            Answer::Nack { .. } => Mark::ready(from.priority, from.count),
            Answer::Reject => dead_mark(from, DeadReason::Rejected, now),
            Answer::Extend { duration } => Mark {
                time: now.saturating_add(duration.max(0)),
                ..*from
            },
        })
    }

    /// Determines the results for ids without a mark, in ascending order: if such an id is open, its message is ready.
    fn find_open(
        &self,
        edit: &Edit,
        unmarked: &[(u64, usize)],
        answers: &mut [Answered],
    ) -> Result<()> {
        let ids: Vec<u64> = unmarked.iter().map(|(id, _)| *id).collect();
        let key = |id| keys::by_group(edit.group.number, id);
        let open = sets::within(self.root, &*self.w, Part::Open, &ids, &key)?;
        for (id, at) in unmarked {
            if open.binary_search(id).is_ok() {
                answers[*at] = Answered::NotLeased;
            }
        }
        Ok(())
    }
}
