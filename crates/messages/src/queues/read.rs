//! Reading a queue: counters, peeking, dead letters.

use crate::queues::counters::{Group, State};
use crate::queues::due::DeadReason;
use crate::queues::keys;
use crate::queues::lease::each_ready;
use crate::queues::mark::{Mark, Marks, Phase};
use crate::queues::message::QueueMessage;
use crate::queues::options::QueueOptions;
use crate::queues::parts::{Part, damaged, part, row};
use crate::queues::sets::{self, each_set};
use crate::queues::store::{Messages, heads_from, id_of, missing};
use crate::queues::writer::{is_reserved, known_name, no_group, read_groups};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

/// Reads one version of a queue.
pub struct QueueReader<R> {
    pub(crate) root: Tree,
    pub(crate) r: R,
    pub(crate) options: QueueOptions,
    pub(crate) state: State,
    pub(crate) groups: BTreeMap<String, Group>,
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStat {
    /// Number of stored messages.
    pub messages: u64,
    /// Number of bytes of all stored messages with their headers and keys.
    pub bytes: u64,
    /// Id that will be assigned to the next message.
    pub next_id: u64,
    /// Time of the push of the oldest stored message.
    pub oldest: Option<Timestamp>,
    /// Number of messages stored since the queue was created.
    pub pushed: u64,
    /// Number of pushes that stored nothing because their idempotency keys had been seen.
    pub repeated: u64,
    /// Number of messages removed to make room for newer ones.
    pub dropped_oldest: u64,
    /// Number of messages that were not stored because the queue was full.
    pub dropped_newest: u64,
    /// Number of messages that were removed because they expired.
    pub expired: u64,
    /// Number of messages removed because they were older than the retention.
    pub aged: u64,
    /// Number of messages removed by purges of the queue.
    pub purged: u64,
}

/// Counters of a group. Leases and delays that have lapsed are still counted as such until the next lease or
/// `maintain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupStat {
    /// Number of messages that can be leased.
    pub ready: u64,
    /// Number of messages that are delayed.
    pub delayed: u64,
    /// Number of messages that are leased.
    pub leased: u64,
    /// Number of messages that wait for an earlier message with the same ordering key.
    pub waiting: u64,
    /// Number of dead letters.
    pub dead: u64,
    /// Number of messages acknowledged since the group was created.
    pub acked: u64,
    /// Number of deliveries since the group was created, not counting the first delivery of each message.
    pub redelivered: u64,
    /// Number of messages that became dead letters since the group was created.
    pub buried: u64,
    /// Time of the push of the oldest message that the group has not acknowledged, including dead letters.
    pub oldest: Option<Timestamp>,
}

/// A dead letter of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message.
    pub message: QueueMessage,
    /// The reason.
    pub reason: DeadReason,
    /// Number of deliveries.
    pub deliveries: u32,
    /// Time at which it became a dead letter.
    pub died: Timestamp,
}

impl<R: PageRead> QueueReader<R> {
    /// Opens a queue.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// Three rows, and one for each group.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        Ok(Self {
            root: *root,
            options: QueueOptions::decode(&row(root, &r, Part::Options)?)?,
            state: State::decode(&row(root, &r, Part::State)?)?,
            groups: read_groups(root, &r)?,
            r,
        })
    }

    /// The options of the queue.
    #[must_use]
    pub fn options(&self) -> &QueueOptions {
        &self.options
    }

    /// Names of the groups that were created, and of the default group if it is in use.
    #[must_use]
    pub fn group_names(&self) -> Vec<&str> {
        let names = self.groups.keys().map(String::as_str);
        names.filter(|name| !is_reserved(name)).collect()
    }

    fn group(&self, name: &str) -> Result<&Group> {
        let row = known_name(&self.groups, name)?;
        self.groups.get(row).ok_or_else(|| no_group(name))
    }

    /// The counters of the queue.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// The row of the oldest message.
    pub fn stat(&self) -> Result<QueueStat> {
        let state = &self.state;
        let oldest = heads_from(&self.root, &self.r, 0, 1)?;
        Ok(QueueStat {
            messages: part(&self.root, &self.r, Part::Messages)?.len(),
            bytes: state.bytes,
            next_id: state.next_id,
            oldest: oldest.first().map(|(_, head)| Timestamp(head.pushed)),
            pushed: state.pushed,
            repeated: state.repeated,
            dropped_oldest: state.dropped_oldest,
            dropped_newest: state.dropped_newest,
            expired: state.expired,
            aged: state.aged,
            purged: state.purged,
        })
    }

    /// The counters of a group.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    ///
    /// # Cost
    /// The row of the oldest message, and the set of the oldest open ids.
    pub fn group_stat(&self, name: &str) -> Result<GroupStat> {
        let group = self.group(name)?;
        let prefix = keys::group_prefix(group.number);
        let mut first = None;
        each_set(
            &self.root,
            &self.r,
            Part::Open,
            &prefix,
            &prefix,
            &mut |_, base, members| {
                first = members.min().map(|low| base | low);
                Ok(false)
            },
        )?;
        let oldest = match first {
            Some(id) => Some(Timestamp(
                Messages::open(&self.root, &self.r)?.expect(id)?.pushed,
            )),
            None => None,
        };
        Ok(GroupStat {
            ready: group.ready,
            delayed: group.delayed,
            leased: group.leased,
            waiting: group.waiting,
            dead: group.dead,
            acked: group.acked,
            redelivered: group.redelivered,
            buried: group.buried,
            oldest,
        })
    }

    /// The message with this id; `None` if it is not stored.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn message(&self, id: u64) -> Result<Option<QueueMessage>> {
        let found = Messages::open(&self.root, &self.r)?.get(id)?;
        Ok(found.map(|(message, _)| message))
    }

    /// Lists at most `limit` stored messages, beginning with the id `from`, in any state.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn messages(&self, from: u64, limit: usize) -> Result<Vec<QueueMessage>> {
        let mut rows = part(&self.root, &self.r, Part::Messages)?.cursor(&self.r)?;
        let mut found = Vec::new();
        let mut there = rows.seek_ge(&from.to_be_bytes())?;
        while there && found.len() < limit {
            let id = id_of(rows.key())?;
            found.push(crate::queues::message::decode(id, &rows.value()?.bytes()?)?);
            there = rows.next()?;
        }
        Ok(found)
    }

    /// The messages that the next lease of a group would deliver at `now`, at most `limit`, each with the number of its
    /// deliveries so far. Messages whose leases or delays have lapsed since the last lease or `maintain` are not
    /// included.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    pub fn peek(&self, group: &str, limit: usize, now: i64) -> Result<Vec<(QueueMessage, u32)>> {
        let number = self.group(group)?.number;
        let mut found = Vec::new();
        if limit == 0 {
            return Ok(found);
        }
        let mut rows = Messages::open(&self.root, &self.r)?;
        let mut marks = Marks::new(number);
        each_ready(&self.root, &self.r, number, &mut |id, _| {
            let (message, head) = rows.get(id)?.ok_or_else(|| missing(id))?;
            if !head.has_expired(now) {
                let mark = marks.get(&self.root, &self.r, id)?;
                found.push((message, mark.map_or(0, |mark| mark.count)));
            }
            Ok(match found.len() < limit {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(found)
    }

    /// Lists at most `limit` dead letters of a group, beginning with the id `from`, in the order of their ids.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; a damaged or unreadable page.
    pub fn dead_letters(&self, group: &str, from: u64, limit: usize) -> Result<Vec<DeadLetter>> {
        let number = self.group(group)?.number;
        let mut ids = Vec::new();
        each_set(
            &self.root,
            &self.r,
            Part::Dead,
            &keys::group_prefix(number),
            &keys::by_group(number, from),
            &mut |_, base, members| {
                let ids_from = sets::ids(base, members).filter(|id| *id >= from);
                ids.extend(ids_from.take(limit - ids.len()));
                Ok(ids.len() < limit)
            },
        )?;
        let mut rows = Messages::open(&self.root, &self.r)?;
        let mut marks = Marks::new(number);
        let mut letters = Vec::with_capacity(ids.len());
        for id in ids {
            let (message, _) = rows.get(id)?.ok_or_else(|| missing(id))?;
            let mark = match marks.get(&self.root, &self.r, id)? {
                Some(
                    mark @ Mark {
                        phase: Phase::Dead, ..
                    },
                ) => mark,
                found => {
                    let found = format!("{found:?}");
                    return Err(damaged("mark of a queue", found, "a dead letter"));
                }
            };
            letters.push(DeadLetter {
                message,
                reason: DeadReason::of(mark.lease)?,
                deliveries: mark.count,
                died: Timestamp(mark.time),
            });
        }
        Ok(letters)
    }
}
