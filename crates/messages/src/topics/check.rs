//! Checks the rules of the format for a table of topics.

use crate::topics::expiry;
use crate::topics::feed;
use crate::topics::key::{TOPIC_LEVELS_MAX, TopicText, levels};
use crate::topics::parts::{Part, id_of};
use crate::topics::read::TopicsReader;
use crate::topics::record::{self, counted_bytes};
use crate::topics::terms::has_term;
use tidalite_index::{RoaringTreemap, set_cursor};
use tidalite_pager::{PageRead, Result};

/// Callback that receives a problem as text.
type OnProblem<'f> = dyn FnMut(String) + 'f;

/// Totals of the table of messages.
#[derive(Default)]
struct Found {
    messages: u64,
    bytes: u64,
    expiring: u64,
    levels: u64,
}

impl<R: PageRead> TopicsReader<R> {
    /// Checks every rule of the format and calls `problem` with each violation. The pages of the tables are checked by
    /// `Tree::check`.
    ///
    /// # Errors
    /// A damaged or unreadable page, a row that cannot be decoded outside the table of messages.
    ///
    /// # Cost
    /// Reads the whole table; two lookups for each message, and one for each level of each topic.
    pub fn check(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let found = self.check_messages(problem)?;
        let totals = [
            ("messages", found.messages, self.state.messages),
            ("bytes", found.bytes, self.state.bytes),
            ("ids", self.part(Part::Ids)?.len(), found.messages),
            (
                "rows of the expiry index",
                self.part(Part::Expiry)?.len(),
                found.expiring,
            ),
            ("members of sets", self.check_terms(problem)?, found.levels),
        ];
        for (what, found, expected) in totals {
            if found != expected {
                problem(format!("{found} {what}, {expected} are expected"));
            }
        }
        self.check_ids(problem)?;
        self.check_expiry(problem)?;
        self.check_feed(problem)
    }

    fn check_messages(&self, problem: &mut OnProblem<'_>) -> Result<Found> {
        let (mut found, mut text) = (Found::default(), TopicText::default());
        let (ids, expiry) = (self.part(Part::Ids)?, self.part(Part::Expiry)?);
        let mut rows = self.part(Part::Messages)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (key, value) = (rows.key(), rows.value()?);
            let record = value.bytes()?;
            found.messages += 1;
            found.levels += levels(key) as u64;
            let decoded = text
                .of_key(key)
                .and_then(|topic| record::decode(topic, &record));
            let name = key.escape_ascii();
            match decoded.and_then(|_| record::decode_head(&record)) {
                Err(error) => problem(format!("message {name}: {error}")),
                Ok(head) => {
                    found.bytes += counted_bytes(key, value.len(), &head);
                    if record.len() == head.len {
                        problem(format!("message {name} is empty"));
                    }
                    if levels(key) > TOPIC_LEVELS_MAX {
                        problem(format!("message {name} has too many levels"));
                    }
                    if head.sequence == 0 || head.sequence > self.state.sequence {
                        let (own, newest) = (head.sequence, self.state.sequence);
                        problem(format!(
                            "message {name}: change {own}, the newest is {newest}"
                        ));
                    }
                    let id = head.id.to_be_bytes();
                    let topic = ids.get(&self.r, &id)?.map(|key| key.to_vec()).transpose()?;
                    if topic.as_deref() != Some(key) || head.id >= self.state.next_id {
                        problem(format!("message {name}: id {} is not its own", head.id));
                    }
                    if let Some(filed) = head.filed {
                        found.expiring += 1;
                        if !expiry.contains(&self.r, &expiry::row_of(filed, head.id))? {
                            problem(format!("message {name} is not in the expiry index"));
                        }
                    }
                }
            }
            there = rows.next()?;
        }
        Ok(found)
    }

    /// Checks that each member of a set is a topic with the set's term. Returns the number of members.
    fn check_terms(&self, problem: &mut OnProblem<'_>) -> Result<u64> {
        let ids = self.part(Part::Ids)?;
        let mut members = 0;
        let mut sets = set_cursor(&self.part(Part::Terms)?, &self.r, &[])?;
        while let Some(cursor) = &mut sets {
            let term = cursor.key().to_vec();
            let mut own = RoaringTreemap::new();
            let has_next = cursor.add_to(&mut own)?;
            members += own.len();
            for id in &own {
                let key = ids.get(&self.r, &id.to_be_bytes())?;
                let key = key.map(|key| key.to_vec()).transpose()?;
                if !key.is_some_and(|key| has_term(&key, &term)) {
                    let term = term.escape_ascii();
                    problem(format!("topic {id} is in the set {term}"));
                }
            }
            if !has_next {
                break;
            }
        }
        Ok(members)
    }

    /// Checks that each id belongs to a message.
    fn check_ids(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let messages = self.part(Part::Messages)?;
        let mut rows = self.part(Part::Ids)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let id = id_of(rows.key())?;
            let key = rows.value()?.to_vec()?;
            let own = match messages.get(&self.r, &key)? {
                Some(value) => record::head_in(&value).ok().map(|head| head.id),
                None => None,
            };
            if own != Some(id) {
                let key = key.escape_ascii();
                problem(format!("id {id} stands for {key}, whose id is {own:?}"));
            }
            there = rows.next()?;
        }
        Ok(())
    }

    /// Checks the form of the rows. Their number shows whether each message has one.
    fn check_expiry(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let mut rows = self.part(Part::Expiry)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            expiry::parse(rows.key())?;
            if !rows.value()?.is_empty() {
                let row = rows.key().escape_ascii();
                problem(format!("the row {row} of the expiry index has a value"));
            }
            there = rows.next()?;
        }
        Ok(())
    }

    fn check_feed(&self, problem: &mut OnProblem<'_>) -> Result<()> {
        let (feed, limit) = (self.part(Part::Feed)?, self.options.feed_changes);
        if feed.len() > limit {
            problem(format!("{} changes in a feed of {limit}", feed.len()));
        }
        let (from, to) = (self.state.feed_from, self.state.sequence);
        if limit > 0 && feed.len() != to + 1 - from {
            problem(format!(
                "{} changes in a feed from {from} to {to}",
                feed.len()
            ));
        }
        let mut rows = feed.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let change = feed::decode(rows.key(), &rows.value()?.bytes()?)?;
            if !(from..=to).contains(&change.sequence) {
                let number = change.sequence;
                problem(format!("change {number} in a feed from {from} to {to}"));
            }
            there = rows.next()?;
        }
        Ok(())
    }
}
