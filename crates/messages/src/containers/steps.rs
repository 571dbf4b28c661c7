//! Finds the steps of time with several messages, and makes the message that stands for each of them. Nothing is written.
//!
//! Invariants:
//! 1. A step that is found fits into one message. Messages of any other step stay as they are.
//! 2. A call ends at a later time than it began, or finds a step, or has looked at everything: repeated calls come to an end.

use crate::containers::keys::{MESSAGE_KEY_BYTES, MessageKey, behind_container};
use crate::containers::message::{ContainerMessage, Head, StoredMessage, counted_bytes};
use crate::containers::options::ContainerOptions;
use crate::containers::parts::{Part, part};
use crate::containers::runs::Runs;
use crate::containers::step_fields::{Figures, StepFields};
use crate::containers::thinning::ThinningRule;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};

/// Number of messages of one step that a call reads although it has reached its limit. If the step has more, the call makes
/// one message of the messages read so far, and the next call goes on with this message and the others. So a call is
/// bounded, and the first message of a large step is not written again for every few others.
pub(crate) const STEP_MESSAGES: u64 = 10_000;

/// A step with several messages, or the first part of one.
pub(crate) struct Step {
    /// Number of the step.
    pub(crate) number: i64,
    /// Key of the message that stands for the step.
    pub(crate) key: MessageKey,
    /// Its row.
    pub(crate) row: Vec<u8>,
    /// Number of bytes with which it counted before.
    pub(crate) counted_before: u64,
    /// The other messages.
    pub(crate) runs: Runs,
    /// Numbers of bytes with which they count.
    pub(crate) removed: Vec<u64>,
    /// Time of the last one.
    pub(crate) last: i64,
}

/// Steps of a span of times.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) steps: Vec<Step>,
    /// Number of messages that were read.
    pub(crate) examined: u64,
    /// Time before which all steps were found.
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
    /// Time before which messages are looked at, the beginning of a step.
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
            last: first.key.time,
            first,
        }
    }

    /// Adds a message. `follows` tells whether its row comes directly after the previous message.
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
        self.last = message.key.time;
        Ok(())
    }

    /// Makes the message that stands for the step; returns false, and the step stays as it is, if it does not fit into one.
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
    /// The number of the step of a time.
    fn step_of(&self, time: i64) -> i64 {
        time.div_euclid(self.step_ns())
    }

    fn start_of(&self, step: i64) -> i64 {
        step.saturating_mul(self.step_ns())
    }

    /// The end of the last step that is older than the age of the rule; `None` if no time is so old.
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
            if key.time >= self.to {
                break;
            }
            let step = self.rule.step_of(key.time);
            if let Some(done) = open.take_if(|open| open.step != step) {
                done.close(found)?;
            }
            if found.examined >= self.examined_max
                && let Some(reached) = self.stop(key.time, &mut open, found)?
            {
                return Ok(reached);
            }
            found.examined += 1;
            let value = rows.value()?;
            let row = value.bytes()?;
            let message = ContainerMessage::decode(key, &row)?;
            let is_expired = self.options.is_expired(key.time, false, self.now);
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
                // The step stays as it is: its other messages need not be read.
                Some(_) => rows.seek_ge(&self.key(self.rule.start_of(step.saturating_add(1))))?,
                None => rows.next()?,
            };
        }
        if let Some(open) = open {
            open.close(found)?;
        }
        Ok(self.to)
    }

    /// The time at which a search that has reached its limit can end, before the message with the time `time`; `None` if it
    /// must go on.
    fn stop(&self, time: i64, open: &mut Option<Open>, found: &mut Found) -> Result<Option<i64>> {
        let step = self.rule.step_of(time);
        let start = self.rule.start_of(step);
        let Some(read) = open.take_if(|open| open.removed.len() as u64 >= STEP_MESSAGES) else {
            // Messages before this one stay as they are or belong to earlier steps. If the step began before `from`, the
            // search ends within it, or the next one would find the same messages again.
            let reached = if start > self.from { start } else { time };
            return Ok((open.is_none() && reached > self.from).then_some(reached));
        };
        Ok(Some(match read.close(found)? {
            true => start.max(self.from),
            false => self.rule.start_of(step.saturating_add(1)).min(self.to),
        }))
    }
}
