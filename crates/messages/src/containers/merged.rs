//! Reading the messages of several containers as one sequence.

use crate::containers::cursor::{MessageCursor, MessageQuery, Span};
use crate::containers::keys::{MessageKey, time_bytes};
use crate::containers::message::ContainerMessage;
use crate::containers::read::ContainersReader;
use std::collections::BinaryHeap;
use tidalite_pager::{PageRead, Result};

/// Position of a message in the merged order. The heap returns the greatest position first.
type Place = [u8; 16];

/// Reads messages of several containers in the order of their times; messages of one time in the order of the numbers
/// of their containers, then of their ties.
pub struct MergedMessages<'r, R> {
    cursors: Vec<MessageCursor<'r, R>>,
    /// The next message of each container: its position, the index of the cursor, and its key.
    next: BinaryHeap<(Place, usize, MessageKey)>,
    /// Index of the cursor that delivered the last message and must now move on.
    last: Option<usize>,
    reverse: bool,
    left: u64,
}

impl<R: PageRead> ContainersReader<R> {
    /// Reads messages of several containers that have not expired at `now` as one sequence. A container that does not
    /// exist has no messages, and a container that is named twice is read once.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// The record of each container and a descent; then, for each message, a step and a number of comparisons that is
    /// logarithmic in the number of containers.
    pub fn merged_messages(
        &self,
        containers: &[&str],
        query: &MessageQuery,
        now: i64,
    ) -> Result<MergedMessages<'_, R>> {
        let mut records = Vec::new();
        for name in containers {
            records.extend(self.record(name)?);
        }
        records.sort_by_key(|record| record.number);
        records.dedup_by_key(|record| record.number);
        let mut merged = MergedMessages {
            cursors: Vec::with_capacity(records.len()),
            next: BinaryHeap::new(),
            last: None,
            reverse: query.reverse,
            left: query.limit,
        };
        for (at, record) in records.iter().enumerate() {
            let span = span_of(query, record.number);
            let cursor = self.span(Some(record), span, u64::MAX, now)?;
            merged.cursors.push(cursor);
            merged.refill(at)?;
        }
        Ok(merged)
    }
}

/// The part of a container that comes after the token of a query over several containers.
fn span_of(query: &MessageQuery, number: u32) -> Span {
    let mut span = Span {
        from: query.from.0,
        to: query.to.0,
        reverse: query.reverse,
        behind: None,
    };
    let Some(after) = query.after.map(|after| after.key) else {
        return span;
    };
    // The order of this container's messages relative to the token, among messages with the time of the token.
    let order = number.cmp(&after.container);
    let order = if query.reverse {
        order.reverse()
    } else {
        order
    };
    match (order, query.reverse) {
        (std::cmp::Ordering::Equal, _) => span.behind = Some(after),
        (std::cmp::Ordering::Less, false) => {
            span.behind = Some(MessageKey::new(number, after.time.0, u32::MAX));
        }
        (std::cmp::Ordering::Less, true) => {
            span.behind = Some(MessageKey::new(number, after.time.0, 0));
        }
        (std::cmp::Ordering::Greater, false) => span.from = span.from.max(after.time.0),
        (std::cmp::Ordering::Greater, true) => span.to = span.to.min(after.time.0),
    }
    span
}

impl<R: PageRead> MergedMessages<'_, R> {
    /// Number of rows that have been read so far.
    #[must_use]
    pub fn examined(&self) -> u64 {
        self.cursors.iter().map(MessageCursor::examined).sum()
    }

    /// The next message; `None` at the end.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    #[expect(
        clippy::should_implement_trait,
        reason = "the message is borrowed from a cursor"
    )]
    pub fn next(&mut self) -> Result<Option<ContainerMessage<'_>>> {
        if self.left == 0 {
            return Ok(None);
        }
        if let Some(last) = self.last.take() {
            self.refill(last)?;
        }
        let Some((_, at, key)) = self.next.pop() else {
            return Ok(None);
        };
        self.left -= 1;
        self.last = Some(at);
        self.cursors[at].current(key).map(Some)
    }

    fn refill(&mut self, at: usize) -> Result<()> {
        if let Some(key) = self.cursors[at].advance()? {
            let mut place = [0; 16];
            place[..8].copy_from_slice(&time_bytes(key.time.0));
            place[8..12].copy_from_slice(&key.container.to_be_bytes());
            place[12..].copy_from_slice(&key.tie.to_be_bytes());
            if !self.reverse {
                place.iter_mut().for_each(|byte| *byte = !*byte);
            }
            self.next.push((place, at, key));
        }
        Ok(())
    }
}
