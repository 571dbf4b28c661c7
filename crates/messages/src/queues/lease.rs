//! Leasing messages, and taking them without a lease.

use crate::queues::edit::Edit;
use crate::queues::keys;
use crate::queues::mark::{Mark, Phase};
use crate::queues::message::{Head, QueueMessage};
use crate::queues::options::{BATCH_MAX, CONSUMER_NAME_BYTES_MAX, check_limit};
use crate::queues::parts::{Part, damaged};
use crate::queues::sets::{self, each_set};
use crate::queues::store::{Messages, missing};
use crate::queues::writer::QueueWriter;
use std::ops::ControlFlow;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, PageWrite, Result};
use tidalite_time::Timestamp;

/// Maximum number of lapsed leases and delays, and of expired messages, that one call handles before it delivers
/// messages.
pub(crate) const DUE_STEP: usize = 1 << 14;

/// Limits of the messages that one call delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseLimits {
    /// Maximum number of messages, up to [`BATCH_MAX`].
    pub messages: usize,
    /// Maximum number of bytes of the messages with their headers and keys. A larger message is delivered alone.
    pub bytes: u64,
}

impl LeaseLimits {
    /// Limits the number of messages, whatever their size.
    #[must_use]
    pub fn messages(messages: usize) -> Self {
        let bytes = u64::MAX;
        Self { messages, bytes }
    }
}

/// A delivered message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message.
    pub message: QueueMessage,
    /// Number of deliveries to consumers of the group, including this one.
    pub deliveries: u32,
    /// Time at which the lease lapses; `None` for a message that was taken without a lease.
    pub deadline: Option<Timestamp>,
}

/// Ready messages in the order of their delivery.
struct Found {
    messages: Vec<(QueueMessage, Head)>,
    /// Messages that have expired, but are not removed yet.
    expired: Vec<u64>,
}

/// Passes the ready ids of a group with their priorities to `each`, in the order of delivery.
pub(crate) fn each_ready<R: PageRead>(
    root: &Tree,
    r: &R,
    group: u32,
    each: &mut dyn FnMut(u64, u8) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let prefix = keys::group_prefix(group);
    each_set(
        root,
        r,
        Part::Ready,
        &prefix,
        &prefix,
        &mut |key, base, members| {
            let &[priority] = &key[prefix.len()..] else {
                return Err(damaged("ready ids", key.escape_ascii(), "a priority"));
            };
            for id in sets::ids(base, members) {
                if each(id, u8::MAX - priority)?.is_break() {
                    return Ok(false);
                }
            }
            Ok(true)
        },
    )
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Delivers the first ready messages of a group to a consumer, and leases them until `now + duration`: until then
    /// no other consumer of the group gets them. When a lease lapses, its messages become ready again, or dead letters.
    /// If very many messages have expired, a call may return fewer messages than are ready, or none:
    /// [`maintain`](Self::maintain) removes the expired ones.
    ///
    /// # Errors
    /// `NotFound` for a group that does not exist; `Limit` for too long a name or too many messages. `DiskFull`, `Io`;
    /// a damaged page.
    ///
    /// # Cost
    /// Reads the delivered messages, and one or two rows for each 64 of them if their ids are consecutive. Waiting
    /// messages are not visited.
    pub fn lease(
        &mut self,
        group: &str,
        consumer: &str,
        duration: i64,
        limits: LeaseLimits,
        now: i64,
    ) -> Result<Vec<Delivery>> {
        check_limit(
            "bytes of a consumer",
            consumer.len(),
            CONSUMER_NAME_BYTES_MAX,
        )?;
        let (row, mut edit, found) = self.find_ready(group, limits, now)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let deadline = now.saturating_add(duration.max(0));
        let lease = edit.group.next_lease;
        edit.group.next_lease += 1;
        edit.leases.begin(lease, consumer.as_bytes());
        let mut deliveries = Vec::with_capacity(found.len());
        for (message, head) in found {
            let from = self.ready_mark(&mut edit, message.id, &head)?;
            let to = Mark {
                phase: Phase::Leased,
                priority: head.priority,
                count: from.count.saturating_add(1),
                time: deadline,
                lease,
            };
            edit.change(self.root, &*self.w, message.id, (from, to), head.lane)?;
            edit.group.redelivered += u64::from(from.count > 0);
            deliveries.push(Delivery {
                message,
                deliveries: to.count,
                deadline: Some(Timestamp(deadline)),
            });
        }
        self.store(row, edit, now)?;
        Ok(deliveries)
    }

    /// Delivers the first ready messages of a group and acknowledges them at once: if the consumer fails, they are
    /// lost.
    ///
    /// # Errors
    /// As for `lease`.
    pub fn take(&mut self, group: &str, limits: LeaseLimits, now: i64) -> Result<Vec<Delivery>> {
        let (row, mut edit, found) = self.find_ready(group, limits, now)?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let mut deliveries = Vec::with_capacity(found.len());
        let mut heads = Vec::with_capacity(found.len());
        for (message, head) in found {
            let from = self.ready_mark(&mut edit, message.id, &head)?;
            edit.finish(self.root, &*self.w, message.id, from, head.lane)?;
            edit.group.redelivered += u64::from(from.count > 0);
            edit.group.acked += 1;
            heads.push((message.id, head));
            deliveries.push(Delivery {
                message,
                deliveries: from.count.saturating_add(1),
                deadline: None,
            });
        }
        self.store(row, edit, now)?;
        heads.sort_unstable_by_key(|(id, _)| *id);
        self.delete_unneeded(&heads)?;
        Ok(deliveries)
    }

    fn ready_mark(&self, edit: &mut Edit, id: u64, head: &Head) -> Result<Mark> {
        let plain = Mark::ready(head.priority, 0);
        let mark = edit.marks.get(self.root, &*self.w, id)?.unwrap_or(plain);
        if mark.phase != Phase::Ready || mark.priority != head.priority {
            let expected = format!("a ready message of priority {}", head.priority);
            return Err(damaged("mark of a queue", format!("{mark:?}"), expected));
        }
        Ok(mark)
    }

    /// Ends lapsed leases and delays of a group, and reads its first ready messages.
    #[expect(clippy::type_complexity, reason = "the parts of a call that begins")]
    fn find_ready<'n>(
        &mut self,
        group: &'n str,
        limits: LeaseLimits,
        now: i64,
    ) -> Result<(&'n str, Edit, Vec<(QueueMessage, Head)>)> {
        check_limit("messages of a batch", limits.messages, BATCH_MAX)?;
        let row = self.name_default(group)?;
        self.expire(DUE_STEP, now)?;
        self.fall_due(row, DUE_STEP, now)?;
        let (row, edit) = self.edit(row)?;
        let mut found = read_ready(self.root, &*self.w, edit.group.number, limits, now)?;
        if found.expired.is_empty() {
            return Ok((row, edit, found.messages));
        }
        // Messages that become ready because of this are left to the next call. They may have expired too, and if they
        // share an ordering key they would be read one by one.
        found.expired.sort_unstable();
        self.remove_expired(&found.expired, now)?;
        let (row, edit) = self.edit(row)?;
        Ok((row, edit, found.messages))
    }
}

/// Reads the first ready messages of a group. Stops early after many messages that have expired.
fn read_ready<R: PageRead>(
    root: &Tree,
    r: &R,
    group: u32,
    limits: LeaseLimits,
    now: i64,
) -> Result<Found> {
    let mut found = Found {
        messages: Vec::new(),
        expired: Vec::new(),
    };
    if limits.messages == 0 {
        return Ok(found);
    }
    let mut rows = Messages::open(root, r)?;
    let mut bytes = 0_u64;
    each_ready(root, r, group, &mut |id, _| {
        let (message, head) = rows.get(id)?.ok_or_else(|| missing(id))?;
        if head.has_expired(now) {
            found.expired.push(id);
            return Ok(match found.expired.len() < DUE_STEP {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            });
        }
        bytes = bytes.saturating_add(head.bytes);
        if bytes > limits.bytes && !found.messages.is_empty() {
            return Ok(ControlFlow::Break(()));
        }
        found.messages.push((message, head));
        Ok(match found.messages.len() < limits.messages {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(found)
}
