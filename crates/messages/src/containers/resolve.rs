//! The first step of an append: sorts the messages, finds their containers, and encodes the messages. Changes nothing.

use crate::containers::append::Append;
use crate::containers::codec;
use crate::containers::dictionary::FieldNumbers;
use crate::containers::document::Document;
use crate::containers::message::put_head;
use crate::containers::options::{
    APPENDS_MAX, ContainerOptions, ContainerTableOptions, MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX,
    check_name,
};
use crate::containers::parts::{Part, part, within};
use crate::containers::record::Record;
use crate::containers::state::{NUMBERS_MAX, State};
use crate::containers::value::FieldValue;
use std::ops::Range;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

/// A container that receives messages.
pub(crate) struct Target<'n> {
    pub(crate) name: &'n str,
    pub(crate) record: Record,
    pub(crate) is_new: bool,
    /// Numbers of messages and bytes before the call.
    pub(crate) before: (u64, u64),
    /// Range of its messages in `Resolved::order`, sorted by time.
    pub(crate) items: Range<usize>,
}

/// Messages with their containers.
pub(crate) struct Resolved<'n> {
    /// Sorted by container number.
    pub(crate) targets: Vec<Target<'n>>,
    /// Indexes of messages, sorted by container and time.
    pub(crate) order: Vec<u32>,
    /// Messages without a container.
    pub(crate) rejected: Vec<Range<usize>>,
    /// The rows of messages, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// Range of the row of each message of `order` in `bytes`; empty for a message without container.
    pub(crate) rows: Vec<Range<usize>>,
}

impl<'n> Resolved<'n> {
    /// # Errors
    /// `Limit`, `InvalidName` and `InvalidInput` for messages that cannot be stored in any container.
    pub(crate) fn new<R: PageRead>(
        (root, r): (&Tree, &R),
        options: &ContainerTableOptions,
        state: &State,
        now: i64,
        items: &[Append<'n>],
    ) -> Result<Self> {
        within(
            "messages of one call",
            items.len() as u64,
            APPENDS_MAX as u64,
        )?;
        let mut order: Vec<u32> = (0..items.len() as u32).collect();
        order.sort_by(|a, b| {
            let (a, b) = (&items[*a as usize], &items[*b as usize]);
            a.container
                .cmp(b.container)
                .then_with(|| a.time.cmp(&b.time))
        });
        let mut groups = Vec::new();
        let mut start = 0;
        for group in
            order.chunk_by(|a, b| items[*a as usize].container == items[*b as usize].container)
        {
            let name = items[group[0] as usize].container;
            check_name(name)?;
            groups.push((name, start..start + group.len()));
            start += group.len();
        }
        let mut records = vec![None; groups.len()];
        let names: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
        part(root, r, Part::Containers)?.get_many(r, &names, |at, found| {
            if let Some(found) = found {
                records[at] = Some(Record::decode(&found.bytes()?)?);
            }
            Ok(())
        })?;
        let (mut targets, mut rejected, mut new) = (Vec::new(), Vec::new(), 0_u64);
        for ((name, items), record) in groups.into_iter().zip(records) {
            let is_new = record.is_none();
            let record = match record {
                Some(record) => record,
                None if !options.creates_containers
                    || state.containers + new >= u64::from(options.containers_max) =>
                {
                    rejected.push(items);
                    continue;
                }
                None => {
                    let number = u64::from(state.next_container) + new;
                    within("numbers of containers", number + 1, NUMBERS_MAX.into())?;
                    new += 1;
                    Record::new(number as u32, now)
                }
            };
            targets.push(Target {
                name,
                before: (record.messages, record.bytes),
                record,
                is_new,
                items,
            });
        }
        targets.sort_by_key(|target| target.record.number);
        Ok(Self {
            targets,
            rows: vec![0..0; order.len()],
            order,
            rejected,
            bytes: Vec::new(),
        })
    }

    /// Checks and encodes all messages. New fields are assigned numbers, which are not stored yet.
    pub(crate) fn encode<R: PageRead>(
        &mut self,
        (root, r): (&Tree, &R),
        options: &ContainerTableOptions,
        state: &State,
        fields: &mut FieldNumbers,
        (now, items): (i64, &[Append<'n>]),
    ) -> Result<()> {
        for item in items {
            let key = item.idempotency_key.unwrap_or_default();
            within(
                "bytes of an idempotency key",
                key.len() as u64,
                MESSAGE_IDEMPOTENCY_KEY_BYTES_MAX as u64,
            )?;
        }
        for range in &self.rejected {
            for index in &self.order[range.clone()] {
                items[*index as usize].document.check()?;
            }
        }
        let table = part(root, r, Part::Fields)?;
        for target in &self.targets {
            let own = target.record.options(&options.defaults);
            for place in target.items.clone() {
                let document = items[self.order[place] as usize].document;
                let start = self.bytes.len();
                let received = Timestamp(now);
                put_head(is_protected(own, document), received, &mut self.bytes);
                codec::encode(
                    document,
                    &mut |name| fields.number(&table, r, state, name),
                    &mut self.bytes,
                )?;
                self.rows[place] = start..self.bytes.len();
            }
        }
        fields.check_limit(state, options)
    }
}

/// Whether a document has the field that protects messages.
pub(crate) fn is_protected(options: &ContainerOptions, document: &Document) -> bool {
    let protect = options.protect.as_ref();
    protect.is_some_and(|field| document.get(field) == Some(&FieldValue::Bool(true)))
}
