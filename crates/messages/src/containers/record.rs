//! The record of a container.
//!
//! ```text
//!  0  u32   number
//!  4  u32   flags: 1 the container has options of its own
//!  8  u64   messages                            48  i64   time of the newest message
//! 16  u64   their bytes                         56  i64   lower bound of the times of unprotected messages
//! 24  u64   protected messages                  64  i64   time of the container's row in `Due`
//! 32  u64   their bytes                         72  i64   time at which the container was created
//! 40  i64   time of the oldest message          80  u64   changes of messages
//!                                               88  u64   rejected messages
//!                                               96  u64   expired messages that were removed
//!                                              104  u64   rotated messages
//! 112 options (flag 1)
//!
//! dropped container
//!  0  i64   time at which it was dropped
//!  8  i64   time from which it cannot be restored any more
//! 16  record
//! ```
//!
//! Invariants:
//! 1. Numbers of messages and bytes, and the times of the oldest and the newest message, are exact. If there are no
//!    messages, these times are `i64::MAX` and `i64::MIN`.
//! 2. The row in `Due` is not later than `wanted_due`.

use crate::containers::due::{AT_ONCE, NEVER};
use crate::containers::options::{COUNT_MAX, ContainerOptions, ContainerOverflow};
use crate::containers::parts::{damaged, shown};
use crate::containers::state::NUMBERS_MAX;
use tidalite_base::{get_i64, get_u32, get_u64};
use tidalite_pager::Result;

const BYTES: usize = 112;
const DROPPED_BYTES: usize = 16;
const OWN_OPTIONS: u32 = 1;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) number: u32,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    pub(crate) protected_messages: u64,
    pub(crate) protected_bytes: u64,
    pub(crate) oldest: i64,
    pub(crate) newest: i64,
    pub(crate) unprotected_from: i64,
    pub(crate) due: i64,
    pub(crate) created: i64,
    pub(crate) changes: u64,
    pub(crate) rejected: u64,
    pub(crate) expired: u64,
    pub(crate) rotated: u64,
    pub(crate) options: Option<ContainerOptions>,
}

impl Record {
    pub(crate) fn new(number: u32, created: i64) -> Self {
        Self {
            number,
            messages: 0,
            bytes: 0,
            protected_messages: 0,
            protected_bytes: 0,
            oldest: i64::MAX,
            newest: i64::MIN,
            unprotected_from: i64::MAX,
            due: NEVER,
            created,
            changes: 0,
            rejected: 0,
            expired: 0,
            rotated: 0,
            options: None,
        }
    }

    /// The options that apply to the container.
    pub(crate) fn options<'o>(&'o self, defaults: &'o ContainerOptions) -> &'o ContainerOptions {
        self.options.as_ref().unwrap_or(defaults)
    }

    /// Numbers of messages and bytes that count towards the limits.
    pub(crate) fn unprotected(&self) -> (u64, u64) {
        (
            self.messages.saturating_sub(self.protected_messages),
            self.bytes.saturating_sub(self.protected_bytes),
        )
    }

    pub(crate) fn is_over(&self, options: &ContainerOptions) -> bool {
        let (messages, bytes) = self.unprotected();
        options.is_over(messages, bytes)
    }

    /// Counts a message that is stored. The caller sets the times.
    pub(crate) fn add(&mut self, bytes: u64, is_protected: bool) {
        self.messages += 1;
        self.bytes += bytes;
        if is_protected {
            self.protected_messages += 1;
            self.protected_bytes += bytes;
        }
    }

    /// Counts a message that is removed. The caller sets the times.
    pub(crate) fn subtract(&mut self, bytes: u64, is_protected: bool) {
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        if is_protected {
            self.protected_messages = self.protected_messages.saturating_sub(1);
            self.protected_bytes = self.protected_bytes.saturating_sub(bytes);
        }
    }

    /// Extends the times to include a message that is stored.
    pub(crate) fn include(&mut self, time: i64, is_protected: bool) {
        self.oldest = self.oldest.min(time);
        self.newest = self.newest.max(time);
        if !is_protected {
            self.unprotected_from = self.unprotected_from.min(time);
        }
    }

    /// The time at which `maintain` must visit the container.
    pub(crate) fn wanted_due(&self, options: &ContainerOptions) -> i64 {
        if self.unprotected().0 == 0 {
            return NEVER;
        }
        if options.overflow == ContainerOverflow::DropOldest && self.is_over(options) {
            return AT_ONCE;
        }
        match options.ttl {
            None => NEVER,
            Some(_) => options.expires(self.unprotected_from),
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let flags = if self.options.is_some() {
            OWN_OPTIONS
        } else {
            0
        };
        let mut bytes = Vec::with_capacity(2 * BYTES);
        bytes.extend_from_slice(&self.number.to_le_bytes());
        bytes.extend_from_slice(&flags.to_le_bytes());
        for word in [
            self.messages,
            self.bytes,
            self.protected_messages,
            self.protected_bytes,
            self.oldest as u64,
            self.newest as u64,
            self.unprotected_from as u64,
            self.due as u64,
            self.created as u64,
            self.changes,
            self.rejected,
            self.expired,
            self.rotated,
        ] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        debug_assert!(bytes.len() == BYTES, "as drawn above");
        if let Some(options) = &self.options {
            options.encode(&mut bytes);
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let wrong = || damaged("record of a container", shown(bytes), "a record");
        let (head, options) = bytes.split_first_chunk::<BYTES>().ok_or_else(wrong)?;
        let flags = get_u32(head, 4);
        if flags > OWN_OPTIONS || flags == 0 && !options.is_empty() {
            return Err(wrong());
        }
        let record = Self {
            number: get_u32(head, 0),
            messages: get_u64(head, 8),
            bytes: get_u64(head, 16),
            protected_messages: get_u64(head, 24),
            protected_bytes: get_u64(head, 32),
            oldest: get_i64(head, 40),
            newest: get_i64(head, 48),
            unprotected_from: get_i64(head, 56),
            due: get_i64(head, 64),
            created: get_i64(head, 72),
            changes: get_u64(head, 80),
            rejected: get_u64(head, 88),
            expired: get_u64(head, 96),
            rotated: get_u64(head, 104),
            options: match flags {
                0 => None,
                _ => Some(ContainerOptions::decode(options)?),
            },
        };
        let counters = [8, 16, 24, 32, 80, 88, 96, 104];
        let are_small = counters.iter().all(|at| get_u64(head, *at) <= COUNT_MAX);
        let fits = record.number < NUMBERS_MAX
            && record.protected_messages <= record.messages
            && record.protected_bytes <= record.bytes;
        match are_small && fits {
            true => Ok(record),
            false => Err(wrong()),
        }
    }
}

/// A container that was dropped and can be restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DroppedRecord {
    pub(crate) dropped_at: i64,
    pub(crate) free_at: i64,
    pub(crate) record: Record,
}

impl DroppedRecord {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let times = [self.dropped_at.to_le_bytes(), self.free_at.to_le_bytes()];
        [&times.concat()[..], &self.record.encode()].concat()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let Some((times, record)) = bytes.split_first_chunk::<DROPPED_BYTES>() else {
            return Err(damaged(
                "record of a dropped container",
                shown(bytes),
                "a record",
            ));
        };
        Ok(Self {
            dropped_at: get_i64(times, 0),
            free_at: get_i64(times, 8),
            record: Record::decode(record)?,
        })
    }
}
