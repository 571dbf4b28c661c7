//! Finds the steps of time that have several messages, and creates the message that represents each of them. Writes
//! nothing.
//!
//! Invariants:
//! 1. The fields of each step that is found fit into one message. Messages of other steps do not change.
//! 2. A call reaches a later time than it began at, or finds a step, or has read everything. So repeated calls
//!    terminate.

use crate::containers::keys::{MESSAGE_KEY_BYTES, MessageKey, behind_container};
use crate::containers::message::{ContainerMessage, Head, StoredMessage, counted_bytes};
use crate::containers::options::ContainerOptions;
use crate::containers::parts::{Part, part};
use crate::containers::runs::Runs;
use crate::containers::step_fields::{Figures, StepFields};
use crate::containers::thinning::ThinningRule;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Number of messages of one step that a call reads even after it has reached its limit. If the step has more messages,
/// the call combines the messages read so far, and the next call continues with the combined message and the remaining
/// ones. This bounds the work of a call, and avoids rewriting the first message of a large step for every few further
/// messages.
pub(crate) const STEP_MESSAGES: u64 = 10_000;

/// A step with several messages, or the first part of one.
pub(crate) struct Step {
    /// Number of the step.
    pub(crate) number: i64,
    /// Key of the message that represents the step.
    pub(crate) key: MessageKey,
    /// Its row.
    pub(crate) row: Vec<u8>,
    /// Size of that message before the change, as counted in totals.
    pub(crate) counted_before: u64,
    /// The other messages.
    pub(crate) runs: Runs,
    /// Sizes of the other messages, as counted in totals.
    pub(crate) removed: Vec<u64>,
    /// Time of the last message of the step.
    pub(crate) last: i64,
}

/// The steps found in a span of times.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) steps: Vec<Step>,
    /// Number of messages that were read.
    pub(crate) examined: u64,
    /// All steps before this time were found.
    pub(crate) reached: i64,
}

/// Arguments of a search for steps.
pub(crate) struct Search<'a> {
    /// Number of the container.
    pub(crate) container: u32,
    pub(crate) options: &'a ContainerOptions,
    pub(crate) now: i64,
    pub(crate) rule: ThinningRule,
    pub(crate) figures: &'a Figures,
    pub(crate) from: i64,
    /// End of the search: only messages before this time are read. It is the beginning of a step.
    pub(crate) to: i64,
    /// Number of messages after which the search ends; at least 1.
    pub(crate) examined_max: u64,
}

/// The messages of a step that have been read.
struct Open {
    step: i64,
    first: StoredMessage,
    fields: StepFields,
    stands_for: u64,
    runs: Runs,
    removed: Vec<u64>,
    last: i64,
}

impl Open {
    fn new(step: i64, first: StoredMessage) -> Self {
        Self {
            step,
            fields: StepFields::default(),
            stands_for: first.stands_for.into(),
            runs: Runs::default(),
            removed: Vec::new(),
            last: first.key.time.0,
            first,
        }
    }

    /// Adds a message. `follows` is true if its row directly follows the previous message.
    fn add(
        &mut self,
        message: &ContainerMessage<'_>,
        counted: u64,
        follows: bool,
        figures: &Figures,
    ) -> Result<()> {
        if self.removed.is_empty() {
            let first = &self.first;
            self.fields
                .take(&first.document, first.stands_for, figures)?;
        }
        self.fields
            .take(message.document, message.stands_for, figures)?;
        self.stands_for += u64::from(message.stands_for);
        self.runs.push(message.key.encode(), follows);
        self.removed.push(counted);
        self.last = message.key.time.0;
        Ok(())
    }

    /// Creates the message that represents the step. Returns false, and the step does not change, if the result does
    /// not fit into one message.
    fn close(self, found: &mut Found) -> Result<bool> {
        if self.removed.is_empty() {
            return Ok(true);
        }
        let head = Head {
            is_protected: false,
            received: self.first.received,
            stands_for: u32::try_from(self.stands_for).unwrap_or(u32::MAX),
        };
        let mut row = Vec::new();
        head.put(&mut row);
        let fits = self.fields.encode(&mut row)?;
        if fits {
            found.steps.push(Step {
                number: self.step,
                key: self.first.key,
                row,
                counted_before: self.first.counted_bytes(),
                runs: self.runs,
                removed: self.removed,
                last: self.last,
            });
        }
        Ok(fits)
    }
}

impl ThinningRule {
    /// The number of the step that contains a time.
    fn step_of(&self, time: i64) -> i64 {
        time.div_euclid(self.step_ns())
    }

    fn start_of(&self, step: i64) -> i64 {
        step.saturating_mul(self.step_ns())
    }

    /// The end of the last step whose messages have all reached the age of the rule; `None` if no time is old enough.
    pub(crate) fn end(&self, now: i64) -> Option<i64> {
        let old = now.checked_sub(self.age_ns())?;
        Some(self.start_of(self.step_of(old)))
    }
}

impl Search<'_> {
    fn key(&self, time: i64) -> [u8; MESSAGE_KEY_BYTES] {
        MessageKey::new(self.container, time, 0).encode()
    }

    /// Finds the steps.
    pub(crate) fn run<R: PageRead>(&self, root: &Tree, r: &R) -> Result<Found> {
        let mut found = Found::default();
        found.reached = self.read(root, r, &mut found)?;
        Ok(found)
    }

    fn read<R: PageRead>(&self, root: &Tree, r: &R, found: &mut Found) -> Result<i64> {
        let mut rows = part(root, r, Part::Messages)?.cursor(r)?;
        let mut there = rows.seek_ge(&self.key(self.from))?;
        let (mut open, mut follows): (Option<Open>, _) = (None, false);
        while there && rows.key() < &behind_container(self.container)[..] {
            let key = MessageKey::decode(rows.key())?;
            if key.time.0 >= self.to {
                break;
            }
            let step = self.rule.step_of(key.time.0);
            if let Some(done) = open.take_if(|open| open.step != step) {
                done.close(found)?;
            }
            if found.examined >= self.examined_max
                && let Some(reached) = self.stop(key.time.0, &mut open, found)?
            {
                return Ok(reached);
            }
            found.examined += 1;
            let value = rows.value()?;
            let row = value.bytes()?;
            let message = ContainerMessage::decode(key, &row)?;
            let is_expired = self.options.is_expired(key.time.0, false, self.now);
            if message.is_protected || is_expired {
                follows = false;
                there = rows.next()?;
                continue;
            }
            match &mut open {
                Some(open) => {
                    open.add(&message, counted_bytes(value.len()), follows, self.figures)?;
                }
                None => open = Some(Open::new(step, message.to_stored())),
            }
            follows = true;
            let is_too_large = open.take_if(|open| open.fields.is_too_large());
            there = match is_too_large {
                // The step does not change, so its other messages need not be read.
                Some(_) => rows.seek_ge(&self.key(self.rule.start_of(step.saturating_add(1))))?,
                None => rows.next()?,
            };
        }
        if let Some(open) = open {
            open.close(found)?;
        }
        Ok(self.to)
    }

    /// The time at which a search that has reached its limit can end, before the message with the time `time`; `None`
    /// if it must continue.
    fn stop(&self, time: i64, open: &mut Option<Open>, found: &mut Found) -> Result<Option<i64>> {
        let step = self.rule.step_of(time);
        let start = self.rule.start_of(step);
        let Some(read) = open.take_if(|open| open.removed.len() as u64 >= STEP_MESSAGES) else {
            // Messages before this one do not change or belong to earlier steps. If the step began before `from`, the
            // search ends within the step; otherwise the next search would find the same messages again.
            let reached = if start > self.from { start } else { time };
            return Ok((open.is_none() && reached > self.from).then_some(reached));
        };
        Ok(Some(match read.close(found)? {
            true => start.max(self.from),
            false => self.rule.start_of(step.saturating_add(1)).min(self.to),
        }))
    }
}
