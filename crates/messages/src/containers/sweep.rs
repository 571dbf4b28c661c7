//! Finds messages of a container that must be removed, oldest first: expired messages, and messages that exceed the
//! limits.
//!
//! A sweep begins at the oldest unprotected message according to the record, so protected messages are skipped once and
//! not again in each sweep.

use crate::containers::keys::{MessageKey, behind_container};
use crate::containers::message::{StoredMessage, counted_bytes};
use crate::containers::options::{ContainerOptions, ContainerOverflow};
use crate::containers::parts::{Part, part};
use crate::containers::record::Record;
use crate::containers::runs::Runs;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// The reason why the table removed a message by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalReason {
    /// The message was older than the time to live.
    Expired,
    /// The container exceeded a limit.
    Rotated,
}

/// A message that the table has removed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedMessage {
    /// The message.
    pub message: StoredMessage,
    /// The reason.
    pub reason: RemovalReason,
}

/// Result of a sweep of one container.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Swept {
    /// Number of rows that were read.
    pub(crate) examined: u64,
    /// Whether all messages that must be removed have been found.
    pub(crate) is_done: bool,
    /// Whether the times of the oldest and the newest message must be read again after the rows have been removed.
    pub(crate) needs_bounds: bool,
}

/// Collects messages that must be removed, and subtracts them from the counts of the record. The caller removes the
/// rows.
pub(crate) fn collect<R: PageRead>(
    root: &Tree,
    r: &R,
    record: &mut Record,
    options: &ContainerOptions,
    now: i64,
    rows_max: u64,
    (runs, removed): (&mut Runs, &mut Vec<RemovedMessage>),
) -> Result<Swept> {
    let mut swept = Swept {
        examined: 0,
        is_done: false,
        needs_bounds: false,
    };
    let first = removed.len();
    let rotates = options.overflow == ContainerOverflow::DropOldest;
    let mut rows = part(root, r, Part::Messages)?.cursor(r)?;
    let start = MessageKey::new(record.number, record.unprotected_from, 0).encode();
    let end = behind_container(record.number);
    let mut there = record.unprotected().0 > 0 && rows.seek_ge(&start)?;
    let (mut follows, mut first_time) = (false, None);
    loop {
        if !there || rows.key() >= &end[..] {
            record.unprotected_from = i64::MAX;
            swept.is_done = true;
            break;
        }
        let key = MessageKey::decode(rows.key())?;
        // A step removes a message or reaches a later time, so that the next step does not begin at the same row again.
        let first_time = *first_time.get_or_insert(key.time);
        let has_progress = removed.len() > first || key.time > first_time;
        if swept.examined >= rows_max && has_progress {
            record.unprotected_from = key.time.0;
            break;
        }
        swept.examined += 1;
        let value = rows.value()?;
        let message = StoredMessage::decode(key, &value.bytes()?)?;
        let reason = if options.is_expired(key.time.0, message.is_protected, now) {
            Some(RemovalReason::Expired)
        } else if rotates && record.is_over(options) {
            Some(RemovalReason::Rotated)
        } else {
            None
        };
        match reason {
            _ if message.is_protected => follows = false,
            Some(reason) => {
                record.subtract(counted_bytes(value.len()), false);
                record.changes += 1;
                match reason {
                    RemovalReason::Expired => record.expired += 1,
                    RemovalReason::Rotated => record.rotated += 1,
                }
                runs.push(key.encode(), follows);
                removed.push(RemovedMessage { message, reason });
                follows = true;
            }
            None => {
                record.unprotected_from = key.time.0;
                swept.is_done = true;
                break;
            }
        }
        there = rows.next()?;
    }
    if removed.len() > first {
        // Without protected messages, the first remaining row is the oldest message, and the newest message does not
        // change.
        match record.protected_messages == 0 && record.messages > 0 {
            true => record.oldest = record.unprotected_from,
            false => swept.needs_bounds = true,
        }
    }
    Ok(swept)
}

/// Reads the times of the oldest and the newest message of a container.
pub(crate) fn read_bounds<R: PageRead>(root: &Tree, r: &R, record: &mut Record) -> Result<()> {
    (record.oldest, record.newest) = (i64::MAX, i64::MIN);
    if record.unprotected().0 == 0 {
        record.unprotected_from = i64::MAX;
    }
    if record.messages == 0 {
        return Ok(());
    }
    let mut rows = part(root, r, Part::Messages)?.cursor(r)?;
    let start = MessageKey::new(record.number, i64::MIN, 0).encode();
    if rows.seek_ge(&start)? && rows.key() < &behind_container(record.number)[..] {
        record.oldest = MessageKey::decode(rows.key())?.time.0;
    }
    if rows.seek_lt(&behind_container(record.number))? && rows.key() >= &start[..] {
        record.newest = MessageKey::decode(rows.key())?.time.0;
    }
    Ok(())
}
