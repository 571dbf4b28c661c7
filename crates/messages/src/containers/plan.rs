//! The second step of an append: determines the outcome of each message. Changes only records in memory.
//!
//! The messages of a container are applied in the order of their times, and messages with equal times in the order of
//! the call. A message that is later than the newest message of its container needs no lookup.

use crate::containers::append::{Append, AppendOutcome, Rejection};
use crate::containers::keys::{MESSAGE_KEY_BYTES, MessageKey};
use crate::containers::latest::merge;
use crate::containers::message::{Head, StoredMessage, counted_bytes, decode_head};
use crate::containers::options::{
    ContainerOptions, ContainerOverflow, ContainerTableOptions, OnDuplicate,
};
use crate::containers::parts::{Part, part};
use crate::containers::resolve::{Resolved, Target};
use crate::containers::seen::is_seen;
use crate::options::most;
use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;
use tidalite_kv::{Cursor, TableReader, Tree};
use tidalite_pager::{Error, PageRead, Result};
use tidalite_time::Timestamp;

/// A row of the part `Messages` that is to be written.
pub(crate) struct Put {
    pub(crate) key: [u8; MESSAGE_KEY_BYTES],
    /// Range of the row in `Resolved::bytes`.
    pub(crate) row: Range<usize>,
}

/// A message that sets latest values.
pub(crate) struct LatestChange {
    pub(crate) container: u32,
    pub(crate) time: i64,
    /// Range of the document in `Resolved::bytes`.
    pub(crate) document: Range<usize>,
}

/// All changes of an append except the changes of records.
#[derive(Default)]
pub(crate) struct Plan<'n> {
    /// Sorted by key.
    pub(crate) puts: Vec<Put>,
    /// Sorted by container, then in the order in which the messages set their fields.
    pub(crate) latest: Vec<LatestChange>,
    pub(crate) seen: Vec<(u32, &'n [u8])>,
    /// In the order of the call.
    pub(crate) outcomes: Vec<Option<AppendOutcome>>,
}

/// A message that is stored or is about to be stored.
#[derive(Clone)]
struct Placed {
    key: MessageKey,
    is_protected: bool,
    stands_for: u32,
    /// Range of its row in `Resolved::bytes`.
    row: Range<usize>,
    /// Offset of its document in `Resolved::bytes`.
    document: usize,
}

impl Placed {
    fn new(key: MessageKey, row: Range<usize>, bytes: &[u8]) -> Result<Self> {
        let head = decode_head(&bytes[row.clone()])?;
        Ok(Self {
            key,
            is_protected: head.is_protected,
            stands_for: head.stands_for,
            document: row.start + head.len(),
            row,
        })
    }

    fn counted_bytes(&self) -> u64 {
        counted_bytes(self.row.len() as u64)
    }

    fn document<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.document..self.row.end]
    }

    fn stored(&self, bytes: &[u8]) -> Result<StoredMessage> {
        StoredMessage::decode(self.key, &bytes[self.row.clone()])
    }
}

/// Whether a container has room for a change of its unprotected messages and bytes from `before` to `after`.
fn has_room(
    options: &ContainerOptions,
    before: (u64, u64),
    after: (u64, u64),
    counted: u64,
) -> bool {
    match options.overflow {
        // A message that alone is small enough always fits after a rotation.
        ContainerOverflow::DropOldest => after.1 <= before.1 || counted <= most(options.bytes_max),
        // A change that makes the container smaller is accepted even above a limit, which may have been lowered.
        ContainerOverflow::Reject => {
            (after.0 <= before.0 || after.0 <= most(options.messages_max))
                && (after.1 <= before.1 || after.1 <= most(options.bytes_max))
        }
    }
}

/// Returns an error if a container has no room for a change: see `has_room`.
pub(crate) fn check_room(
    options: &ContainerOptions,
    before: (u64, u64),
    after: (u64, u64),
    counted: u64,
) -> Result<()> {
    match has_room(options, before, after, counted) {
        true => Ok(()),
        false if after.0 > most(options.messages_max) => Err(Error::Limit {
            what: "messages of a container",
            found: after.0,
            limit: most(options.messages_max),
        }),
        false => Err(Error::Limit {
            what: "bytes of a container",
            found: after.1,
            limit: most(options.bytes_max),
        }),
    }
}

/// Creates the plan.
pub(crate) struct Planner<'p, 'n, R> {
    r: &'p R,
    options: &'p ContainerTableOptions,
    now: i64,
    messages: TableReader<'p>,
    /// Opened by the first lookup.
    rows: Option<Cursor<'p, R>>,
    seen: TableReader<'p>,
    plan: Plan<'n>,
    keys: HashSet<(u32, &'n [u8])>,
    /// Number of lookups of messages.
    pub(crate) lookups: u64,
}

impl<'p, 'n, R: PageRead> Planner<'p, 'n, R> {
    pub(crate) fn new(
        (root, r): (&Tree, &'p R),
        options: &'p ContainerTableOptions,
        now: i64,
    ) -> Result<Self> {
        Ok(Self {
            r,
            options,
            now,
            messages: part(root, r, Part::Messages)?,
            rows: None,
            seen: part(root, r, Part::Seen)?,
            plan: Plan::default(),
            keys: HashSet::new(),
            lookups: 0,
        })
    }

    /// Plans all messages, and changes the records in memory.
    pub(crate) fn plan(
        &mut self,
        resolved: &mut Resolved<'n>,
        items: &[Append<'n>],
    ) -> Result<Plan<'n>> {
        self.plan.outcomes = vec![None; items.len()];
        let Resolved {
            targets,
            order,
            rejected,
            rows,
            bytes,
        } = resolved;
        for index in rejected.iter().flat_map(|range| &order[range.clone()]) {
            let outcome = AppendOutcome::Rejected(Rejection::NoContainer);
            self.plan.outcomes[*index as usize] = Some(outcome);
        }
        for target in targets {
            let options = target.record.options(&self.options.defaults).clone();
            let (number, newest) = (target.record.number, target.record.newest);
            // The last message of the current time.
            let mut last: Option<Placed> = None;
            for place in target.items.clone() {
                let index = order[place] as usize;
                let (item, row) = (&items[index], rows[place].clone());
                let key = item.idempotency_key;
                let key = key.filter(|_| self.options.window_ns() > 0);
                if let Some(key) = key
                    && self.is_repeated(number, key)?
                {
                    self.plan.outcomes[index] = Some(AppendOutcome::Repeated);
                    continue;
                }
                if last.as_ref().is_some_and(|last| last.key.time != item.time) {
                    last = None;
                }
                if last.is_none() && item.time.0 <= newest {
                    last = self.find_last(number, item.time.0, bytes)?;
                }
                let new = Placed::new(MessageKey::new(number, item.time.0, 0), row, bytes)?;
                let outcome = self.place(target, &options, (item, new), &mut last, bytes)?;
                match (&outcome, key) {
                    (AppendOutcome::Rejected(_), _) => target.record.rejected += 1,
                    (_, Some(key)) => {
                        self.keys.insert((number, key));
                        self.plan.seen.push((number, key));
                    }
                    _ => {}
                }
                self.plan.outcomes[index] = Some(outcome);
            }
        }
        self.plan.seen.sort_unstable();
        Ok(std::mem::take(&mut self.plan))
    }

    fn is_repeated(&self, container: u32, key: &'n [u8]) -> Result<bool> {
        let window = self.options.window_ns();
        if self.keys.contains(&(container, key)) {
            return Ok(true);
        }
        is_seen(&self.seen, self.r, (container, key), window, self.now)
    }

    /// The stored message with the last tie of a time. Its row is added to `bytes`.
    fn find_last(
        &mut self,
        container: u32,
        time: i64,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Placed>> {
        self.lookups += 1;
        let rows = match &mut self.rows {
            Some(rows) => rows,
            none => none.insert(self.messages.cursor(self.r)?),
        };
        let key = MessageKey::new(container, time, u32::MAX);
        if !rows.seek_le(&key.encode())? {
            return Ok(None);
        }
        let found = MessageKey::decode(rows.key())?;
        if (found.container, found.time.0) != (container, time) {
            return Ok(None);
        }
        let start = bytes.len();
        bytes.extend_from_slice(&rows.value()?.bytes()?);
        Placed::new(found, start..bytes.len(), bytes).map(Some)
    }

    /// Determines the outcome of one message. `last` is the last message of its time; it is set to the new message if
    /// that is stored.
    fn place(
        &mut self,
        target: &mut Target<'n>,
        options: &ContainerOptions,
        (item, mut new): (&Append<'n>, Placed),
        last: &mut Option<Placed>,
        bytes: &mut Vec<u8>,
    ) -> Result<AppendOutcome> {
        let record = &mut target.record;
        let latest = LatestChange {
            container: record.number,
            time: item.time.0,
            document: new.document..new.row.end,
        };
        let is_gone = |message: &Placed| {
            options.is_expired(message.key.time.0, message.is_protected, self.now)
        };
        if options.ttl == Some(Duration::ZERO) || is_gone(&new) {
            self.plan.latest.push(latest);
            return Ok(AppendOutcome::NotStored);
        }
        let mut old = None;
        let mut is_merged = false;
        if let Some(found) = last.as_ref() {
            match options.on_duplicate {
                // An expired message that is not removed yet is invisible: the new message replaces it.
                _ if is_gone(found) => old = Some(found.clone()),
                OnDuplicate::KeepFirst => return Ok(AppendOutcome::Ignored),
                OnDuplicate::KeepAll => match found.key.tie.checked_add(1) {
                    Some(tie) => new.key.tie = tie,
                    None => return Ok(AppendOutcome::Rejected(Rejection::TooManyTies)),
                },
                OnDuplicate::Replace => old = Some(found.clone()),
                OnDuplicate::Merge => {
                    let merged = merge(found.document(bytes), new.document(bytes))?;
                    let Some(merged) = merged else {
                        return Ok(AppendOutcome::Rejected(Rejection::MergedTooLarge));
                    };
                    let protect = options.protect.as_ref();
                    if protect.is_some_and(|field| item.document.get(field).is_none()) {
                        new.is_protected = found.is_protected;
                    }
                    let start = bytes.len();
                    let head = Head {
                        is_protected: new.is_protected,
                        received: Timestamp(self.now),
                        // Fields that the new message does not have keep their values, which still stand for several
                        // messages.
                        stands_for: found.stands_for,
                    };
                    head.put(bytes);
                    bytes.extend_from_slice(&merged);
                    new = Placed::new(new.key, start..bytes.len(), bytes)?;
                    is_merged = true;
                    old = Some(found.clone());
                }
            }
        }
        let before = record.unprotected();
        if let Some(old) = &old {
            new.key = old.key;
            record.subtract(old.counted_bytes(), old.is_protected);
        }
        let counted = new.counted_bytes();
        record.add(counted, new.is_protected);
        if !new.is_protected && !has_room(options, before, record.unprotected(), counted) {
            record.subtract(counted, new.is_protected);
            if let Some(old) = &old {
                record.add(old.counted_bytes(), old.is_protected);
            }
            return Ok(AppendOutcome::Rejected(Rejection::ContainerFull));
        }
        record.include(item.time.0, new.is_protected);
        record.changes += 1;
        self.plan.latest.push(latest);
        let (key, row) = (new.key.encode(), new.row.clone());
        match self.plan.puts.last_mut() {
            Some(put) if put.key == key => put.row = row,
            _ => self.plan.puts.push(Put { key, row }),
        }
        let outcome = match old {
            None => AppendOutcome::Stored { key: new.key },
            Some(old) if is_merged => AppendOutcome::Merged {
                old: old.stored(bytes)?,
                document: new.document(bytes).to_vec(),
            },
            Some(old) => AppendOutcome::Replaced {
                old: old.stored(bytes)?,
            },
        };
        *last = Some(new);
        Ok(outcome)
    }
}
