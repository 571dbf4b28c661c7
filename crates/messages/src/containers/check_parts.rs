//! Checks the parts of a table of containers other than records and messages.

use crate::containers::deletion::Deletion;
use crate::containers::dictionary::{FieldNames, decode_number};
use crate::containers::due::Due;
use crate::containers::keys::{
    container_of, seen_time, split_deletion, split_seen_time, split_trash, text_of,
};
use crate::containers::message::{StoredMessage, counted_bytes};
use crate::containers::parts::{Part, part};
use crate::containers::read::ContainersReader;
use crate::containers::seen;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_pager::{PageRead, Result};

/// Rows and totals that must exist because of the rows checked so far.
#[derive(Default)]
pub(crate) struct Expected {
    pub(crate) dues: BTreeSet<Due>,
    pub(crate) deleted_messages: u64,
    pub(crate) deleted_bytes: u64,
}

/// Callback that returns whether a container with this number exists.
type IsKnown<'f> = dyn Fn(u32) -> bool + 'f;

impl<R: PageRead> ContainersReader<R> {
    /// Checks that the tables of names and of numbers of fields match.
    pub(crate) fn check_fields(&self, problem: &mut dyn FnMut(String)) -> Result<FieldNames> {
        let names = FieldNames::read(&self.root, &self.r)?;
        let mut rows = part(&self.root, &self.r, Part::Fields)?.cursor(&self.r)?;
        let (mut there, mut count) = (rows.first()?, 0);
        while there {
            let name = text_of(rows.key())?;
            let number = decode_number(&rows.value()?.bytes()?)?;
            if names.get(number).map(|name| &**name) != Some(name) {
                let found = names.get(number);
                problem(format!("field {name:?}: number {number} of {found:?}"));
            }
            count += 1;
            there = rows.next()?;
        }
        let next = self.state.next_field;
        let is_given = names.by_number().last().is_none_or(|last| last.0 < next);
        if count != names.len() || !is_given {
            problem(format!(
                "{count} fields, {} names, next {next}",
                names.len()
            ));
        }
        Ok(names)
    }

    pub(crate) fn check_seen(
        &self,
        is_known: &IsKnown<'_>,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let times = part(&self.root, &self.r, Part::SeenTimes)?;
        let keys = part(&self.root, &self.r, Part::Seen)?;
        let mut rows = keys.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (key, number) = (rows.key(), container_of(rows.key())?);
            let time = seen::decode(&rows.value()?.bytes()?)?;
            if !is_known(number) || !times.contains(&self.r, &seen_time(time, number, &key[4..]))? {
                problem(format!("idempotency key {}: no time", key.escape_ascii()));
            }
            there = rows.next()?;
        }
        let mut rows = times.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (time, key) = split_seen_time(rows.key())?;
            let found = keys.get(&self.r, key)?;
            let found = found
                .map(|found| seen::decode(&found.bytes()?))
                .transpose()?;
            // Times that belong to a removed container remain until they are due.
            if found != Some(time) && is_known(container_of(key)?) {
                problem(format!(
                    "idempotency key {}: another time",
                    key.escape_ascii()
                ));
            }
            there = rows.next()?;
        }
        Ok(())
    }

    /// Checks deletions and deleted messages.
    pub(crate) fn check_deletions(
        &self,
        is_known: &IsKnown<'_>,
        names: &FieldNames,
        expected: &mut Expected,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut found: BTreeMap<(u32, u64), (u64, u64)> = BTreeMap::new();
        let mut rows = part(&self.root, &self.r, Part::Trash)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (deletion, key) = split_trash(rows.key())?;
            let value = rows.value()?;
            let message = StoredMessage::decode(key, &value.bytes()?)?;
            names.decode(&message.document)?;
            let (messages, bytes) = found.entry((key.container, deletion)).or_default();
            *messages += 1;
            *bytes += counted_bytes(value.len());
            there = rows.next()?;
        }
        let mut rows = part(&self.root, &self.r, Part::Deletions)?.cursor(&self.r)?;
        let mut there = rows.first()?;
        while there {
            let (container, number) = split_deletion(rows.key())?;
            let deletion = Deletion::decode(number, &rows.value()?.bytes()?)?;
            let sums = found.remove(&(container, number)).unwrap_or_default();
            let is_right = (deletion.messages, deletion.bytes) == sums && deletion.messages > 0;
            if !is_right || !is_known(container) || number >= self.state.next_deletion {
                problem(format!(
                    "container {container}: {deletion:?}, found {sums:?}"
                ));
            }
            expected.deleted_messages += deletion.messages;
            expected.deleted_bytes += deletion.bytes;
            let due = Due::of_deletion(deletion.free_at.0, container, number);
            expected.dues.insert(due);
            there = rows.next()?;
        }
        for ((container, deletion), sums) in found {
            problem(format!(
                "container {container}: no deletion {deletion}, but messages {sums:?}"
            ));
        }
        Ok(())
    }

    pub(crate) fn check_due(
        &self,
        expected: &Expected,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let mut rows = part(&self.root, &self.r, Part::Due)?.cursor(&self.r)?;
        let (mut there, mut count) = (rows.first()?, 0);
        while there {
            let due = Due::decode(rows.key())?;
            match expected.dues.contains(&due) {
                true => count += 1,
                false => problem(format!("{due:?}, but nothing is due")),
            }
            there = rows.next()?;
        }
        if count < expected.dues.len() {
            let missing = expected.dues.len() - count;
            problem(format!("{missing} rows of work that is due are missing"));
        }
        Ok(())
    }
}
