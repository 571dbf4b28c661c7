//! Reads queues (section 9.12 of docs/format.md): the messages, and their states in each group. The rows that are
//! derived from these are checked as well.

use crate::bytes::{Fields, big, checksum, key_time};
use crate::error::Result;
use crate::image::text;
use crate::parts::{Expected, Parts, end, key};
use crate::runs::{broken, require};
use crate::table::Rows;
use crate::tag_index::{Sets, sets_of};
use std::collections::{BTreeMap, BTreeSet};

const MESSAGES: u8 = 2;
const GROUPS: u8 = 3;
const OPEN: u8 = 4;
const MARKS: u8 = 5;
const LEASES: u8 = 6;
const READY: u8 = 7;
const DUE: u8 = 8;
const HEADS: u8 = 9;
const WAITING: u8 = 10;
const DEAD: u8 = 11;
const EXPIRY: u8 = 12;
const KEYS: u8 = 13;
const KEYS_BY_TIME: u8 = 14;

const WORD_MAX: u64 = 1 << 60;
const BLOCK_IDS: u64 = 1 << 16;

/// A queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The options.
    pub options: Options,
    /// Id of the next message.
    pub next_id: u64,
    /// Number of bytes of all messages.
    pub bytes: u64,
    /// The totals of the past, in the order of the description.
    pub totals: [u64; 7],
    /// The messages, ordered by id.
    pub messages: Vec<Message>,
    /// The groups, ordered by name.
    pub groups: Vec<Group>,
}

/// The options of a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy for a full queue: an index in [`OVERFLOWS`].
    pub overflow: u8,
    /// Number of deliveries after which a message becomes a dead letter.
    pub deliveries_max: usize,
    /// Maximum number of messages.
    pub messages_max: u64,
    /// Maximum number of bytes.
    pub bytes_max: u64,
    /// Age in nanoseconds at which messages are removed.
    pub retention: i64,
    /// Window of idempotency keys in nanoseconds.
    pub window: i64,
}

/// The rules for a full queue, indexed by their number in the file.
pub const OVERFLOWS: [&str; 3] = ["refuse", "drop the oldest", "drop the newest"];

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: u64,
    /// Its priority.
    pub priority: u8,
    /// Time of the push.
    pub time: i64,
    /// Time before which it is not delivered.
    pub not_before: Option<i64>,
    /// Time from which on it is not delivered.
    pub expires: Option<i64>,
    /// The ordering key.
    pub key: Option<Vec<u8>>,
    /// The idempotency key.
    pub idempotency_key: Option<Vec<u8>>,
    /// Names and values.
    pub headers: Vec<(Vec<u8>, Vec<u8>)>,
    /// The payload.
    pub payload: Vec<u8>,
}

/// A group of consumers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name; empty for the group of a queue without named groups.
    pub name: String,
    /// Number of messages that were acknowledged, of repeated deliveries, and of messages that became dead letters.
    pub totals: [u64; 3],
    /// The ids that the group has not acknowledged, with the number of deliveries and the state.
    pub open: Vec<(u64, usize, State)>,
}

/// The state of a message in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It can be delivered.
    Ready,
    /// A consumer has it.
    Leased {
        /// Time at which the lease ends.
        until: i64,
        /// Name of the consumer.
        consumer: Vec<u8>,
    },
    /// It can be delivered later.
    Delayed {
        /// Time at which the delay ends.
        until: i64,
    },
    /// An earlier message of its lane comes first.
    Waiting,
    /// A dead letter.
    Dead {
        /// Time at which it became one.
        since: i64,
        /// True if a consumer rejected it; false if it was delivered too often.
        is_rejected: bool,
    },
}

/// The mark of an id.
struct Mark {
    state: u8,
    priority: u8,
    deliveries: usize,
    time: i64,
    word: u64,
}

/// The fields of a group's row that are compared with its messages and leases.
struct GroupRow {
    number: u64,
    next_lease: u64,
    counts: [u64; 5],
}

/// The ids of a set, by the key of the set without the block.
type Ids = BTreeMap<Vec<u8>, BTreeSet<u64>>;

/// The rows of all groups that follow from the states of the messages.
#[derive(Default)]
struct Derived {
    ready: Ids,
    due: Ids,
    waiting: Ids,
    dead: Ids,
    heads: Expected,
}

impl Queue {
    /// Reads the rows of the root table.
    ///
    /// # Errors
    /// If the rows break a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let parts = Parts::new(root, KEYS_BY_TIME)?;
        let options = Options::read(&mut parts.options())?;
        let mut state = parts.state();
        let next_id = state.u64()?;
        let next_group = state.u32()? as u64;
        let zero = state.u32()?;
        let bytes = state.u64()?;
        let mut totals = [0; 7];
        for total in &mut totals {
            *total = state.u64()?;
        }
        end(&state, "the state of a queue goes on")?;
        let words = [next_id, bytes].into_iter().chain(totals);
        require(
            zero == 0 && next_id >= 1 && words.max() <= Some(WORD_MAX),
            "the state of a queue",
        )?;
        let (mut messages, mut expiry) = (BTreeMap::new(), Ids::new());
        for (row, value) in parts.rows(MESSAGES) {
            let message = Message::read(row, value)?;
            require(
                (1..next_id).contains(&message.id),
                "the id of a message of a queue",
            )?;
            if let Some(expires) = message.expires {
                let ids = expiry.entry(key_time(expires).to_vec()).or_default();
                ids.insert(message.id);
            }
            messages.insert(message.id, message);
        }
        let stored = parts.rows(MESSAGES).iter();
        let stored: u64 = stored.map(|(_, value)| value.len() as u64).sum();
        require(stored == bytes, "the bytes of a queue")?;
        require(
            ids_of(&parts, EXPIRY)? == expiry,
            "the expiry of messages of a queue",
        )?;
        let mut queue = Self {
            options,
            next_id,
            bytes,
            totals,
            messages: Vec::new(),
            groups: Vec::new(),
        };
        queue.read_groups(&parts, &messages, next_group)?;
        check_keys(&parts, next_id)?;
        queue.messages = messages.into_values().collect();
        Ok(queue)
    }

    fn read_groups(
        &mut self,
        parts: &Parts<'_>,
        messages: &BTreeMap<u64, Message>,
        next_group: u64,
    ) -> Result<()> {
        let mut open = ids_of(parts, OPEN)?;
        let mut marks = marks_of(parts)?;
        let mut leases = leases_of(parts)?;
        let mut derived = Derived::default();
        let (mut numbers, mut needed) = (BTreeSet::new(), BTreeSet::<u64>::new());
        let mut anonymous = 0;
        for (row, value) in parts.rows(GROUPS) {
            let (group, is_dropped, totals) = GroupRow::read(value)?;
            let is_first = numbers.insert(group.number);
            require(
                is_first && group.number < next_group,
                "the number of a group",
            )?;
            let prefix = (group.number as u32).to_be_bytes();
            let ids = open.remove(prefix.as_slice()).unwrap_or_default();
            needed.extend(&ids);
            let (mut counts, mut states) = ([0; 5], Vec::new());
            for id in ids {
                let message = messages.get(&id);
                let message = message.ok_or_else(|| broken("an open id without a message"))?;
                let mark = marks.remove(&(group.number, id));
                let mark = mark.unwrap_or_else(|| Mark::new(message.priority));
                require(mark.priority == message.priority, "the priority of a mark")?;
                counts[usize::from(mark.state)] += 1;
                derived.add(&prefix, message, &mark)?;
                let state = mark.state(&group, &mut leases)?;
                states.push((id, mark.deliveries, state));
            }
            require(counts == group.counts, "the counts of a group")?;
            let fields = Fields::new(row, 0);
            if is_dropped {
                let expected = format!("\0{}", group.number);
                fields.require(*row == expected.as_bytes(), "the key of a dropped group")?;
                continue;
            }
            fields.require(
                row.len() <= 128 && row.first() != Some(&0),
                "the name of a group",
            )?;
            anonymous += usize::from(row.is_empty());
            self.groups.push(Group {
                name: text(row, &fields)?,
                totals,
                open: states,
            });
        }
        require(
            anonymous <= 1 && (anonymous == 1) == (self.groups.len() == anonymous),
            "the group of a queue without named groups",
        )?;
        require(
            open.is_empty() && marks.is_empty(),
            "ids of no group, or marks of no open id",
        )?;
        require(
            leases.values().all(|(left, _)| *left == 0),
            "the messages of a lease",
        )?;
        require(needed.iter().eq(messages.keys()), "a message of no group")?;
        derived.check(parts)
    }
}

impl Derived {
    /// Adds a message of a group. `prefix` is the number of the group.
    fn add(&mut self, prefix: &[u8], message: &Message, mark: &Mark) -> Result<()> {
        let (id, priority) = (message.id, message.priority);
        let lane = message.key.as_ref().map(|key| checksum(key).to_be_bytes());
        let (set, key) = match mark.state {
            0 => (&mut self.ready, key(&[prefix, &[255 - priority]])),
            1 | 2 => {
                let time = key_time(mark.time);
                (&mut self.due, key(&[prefix, &time, &[priority]]))
            }
            3 => {
                let lane = lane.ok_or_else(|| broken("a waiting message without a key"))?;
                (&mut self.waiting, key(&[prefix, &lane]))
            }
            _ => (&mut self.dead, prefix.to_vec()),
        };
        set.entry(key).or_default().insert(id);
        if let (Some(lane), 0..=2) = (lane, mark.state) {
            let key = [prefix, &lane].concat();
            let earlier = self.heads.insert(key, id.to_be_bytes().to_vec());
            require(earlier.is_none(), "two heads of a lane")?;
        }
        Ok(())
    }

    fn check(&self, parts: &Parts<'_>) -> Result<()> {
        let sets = [
            (READY, &self.ready, "the ready ids of a queue"),
            (DUE, &self.due, "the leased and delayed ids of a queue"),
            (WAITING, &self.waiting, "the waiting ids of a queue"),
            (DEAD, &self.dead, "the dead ids of a queue"),
        ];
        for (part, expected, reason) in sets {
            require(ids_of(parts, part)? == *expected, reason)?;
        }
        parts.has(HEADS, &self.heads, "the heads of lanes")?;
        let mut waiting = self.waiting.keys();
        require(
            waiting.all(|lane| self.heads.contains_key(lane)),
            "a lane without a head",
        )
    }
}

/// The ids of the sets of a part.
fn ids_of(parts: &Parts<'_>, part: u8) -> Result<Ids> {
    let sets: Sets = sets_of(parts.rows(part).to_vec())?;
    let mut all = Ids::new();
    for (key, members) in sets {
        let own = key.len().checked_sub(6);
        let (key, block) = key.split_at(own.ok_or_else(|| broken("the key of a set of ids"))?);
        let first = big(block) * BLOCK_IDS;
        require(
            members.last() < Some(&BLOCK_IDS),
            "the end of the key of a set of ids",
        )?;
        let ids = all.entry(key.to_vec()).or_default();
        ids.extend(members.iter().map(|low| first | low));
    }
    Ok(all)
}

/// The marks, by group and id.
fn marks_of(parts: &Parts<'_>) -> Result<BTreeMap<(u64, u64), Mark>> {
    let mut marks = BTreeMap::new();
    for (row, value) in parts.rows(MARKS) {
        let mut place = Fields::new(row, 0);
        let (group, block) = (place.big(4)?, place.big(8)?);
        end(&place, "the key of marks goes on")?;
        require(block < WORD_MAX / 64 && !value.is_empty(), "a row of marks")?;
        let mut fields = Fields::new(value, 0);
        let mut next = 0;
        while fields.left() > 0 {
            let (first, last) = (fields.u8()?, fields.u8()?);
            let (state, priority) = (fields.u8()?, fields.u8()?);
            let (deliveries, time, word) = (fields.u32()?, fields.i64()?, fields.u64()?);
            fields.require(
                next <= first && first <= last && last < 64,
                "the ids of a mark",
            )?;
            fields.require(
                match state {
                    0 => deliveries > 0 && time == 0 && word == 0,
                    1 => true,
                    2 => word == 0,
                    3 => time == 0 && word == 0,
                    4 => word <= 1,
                    _ => false,
                },
                "a mark",
            )?;
            next = last + 1;
            for id in first..=last {
                let mark = Mark {
                    state,
                    priority,
                    deliveries,
                    time,
                    word,
                };
                marks.insert((group, block * 64 + u64::from(id)), mark);
            }
        }
    }
    Ok(marks)
}

/// The number of messages and the consumer of each lease, by group and number.
type Leases<'r> = BTreeMap<(u64, u64), (usize, &'r [u8])>;

fn leases_of<'r>(parts: &Parts<'r>) -> Result<Leases<'r>> {
    let mut leases = Leases::new();
    for (row, value) in parts.rows(LEASES) {
        let mut place = Fields::new(row, 0);
        let lease = (place.big(4)?, place.big(8)?);
        end(&place, "the key of a lease goes on")?;
        let mut fields = Fields::new(value, 0);
        let count = fields.u32()?;
        let consumer = fields.rest();
        fields.require(count > 0 && consumer.len() <= 255, "a lease")?;
        leases.insert(lease, (count, consumer));
    }
    Ok(leases)
}

/// Checks the idempotency keys.
fn check_keys(parts: &Parts<'_>, next_id: u64) -> Result<()> {
    let mut by_time = Expected::new();
    for (row, value) in parts.rows(KEYS) {
        let mut fields = Fields::new(value, 0);
        let (time, id) = (fields.i64()?, fields.u64()?);
        end(&fields, "an idempotency key goes on")?;
        fields.require(row.len() <= 256 && id < next_id, "an idempotency key")?;
        let message = key(&[&key_time(time), &id.to_be_bytes()]);
        let earlier = by_time.insert(message, row.to_vec());
        fields.require(earlier.is_none(), "two idempotency keys of one message")?;
    }
    parts.has(KEYS_BY_TIME, &by_time, "the times of idempotency keys")
}

impl Options {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let overflow = fields.u8()?;
        let zeros = fields.take(3)?;
        let options = Self {
            overflow,
            deliveries_max: fields.u32()?,
            messages_max: fields.u64()?,
            bytes_max: fields.u64()?,
            retention: fields.i64()?,
            window: fields.i64()?,
        };
        end(fields, "the options of a queue go on")?;
        fields.require(
            overflow < 3 && zeros == [0; 3] && options.retention >= 0 && options.window >= 0,
            "the options of a queue",
        )?;
        Ok(options)
    }
}

impl Message {
    fn read(row: &[u8], value: &[u8]) -> Result<Self> {
        let mut place = Fields::new(row, 0);
        let id = place.big(8)?;
        end(&place, "the key of a message goes on")?;
        let mut fields = Fields::new(value, 0);
        let flags = fields.u8()?;
        let has = |flag| flags & flag != 0;
        fields.require(flags < 32, "the flags of a message of a queue")?;
        let mut message = Self {
            id,
            priority: fields.u8()?,
            time: fields.i64()?,
            not_before: None,
            expires: None,
            key: None,
            idempotency_key: None,
            headers: Vec::new(),
            payload: Vec::new(),
        };
        if has(1) {
            message.not_before = Some(fields.i64()?);
        }
        if has(2) {
            message.expires = Some(fields.i64()?);
        }
        if has(4) {
            message.key = Some(limited(&mut fields, 1024)?);
        }
        if has(8) {
            message.idempotency_key = Some(limited(&mut fields, 256)?);
        }
        if has(16) {
            let mut bytes = 0;
            for _ in 0..fields.u16()? {
                let (name, value) = (fields.u16()?, fields.u16()?);
                bytes += 4 + name + value;
                fields.require(bytes <= 28 << 10, "the headers of a message")?;
                let header = (fields.take(name)?.to_vec(), fields.take(value)?.to_vec());
                message.headers.push(header);
            }
        }
        message.payload = fields.rest().to_vec();
        fields.require(
            message.payload.len() <= 16 << 20,
            "the length of a message of a queue",
        )?;
        Ok(message)
    }
}

fn limited(fields: &mut Fields<'_>, limit: usize) -> Result<Vec<u8>> {
    let length = fields.u16()?;
    fields.require(length <= limit, "the length of a key of a message")?;
    Ok(fields.take(length)?.to_vec())
}

impl Mark {
    /// The mark of a message that has none.
    fn new(priority: u8) -> Self {
        Self {
            state: 0,
            priority,
            deliveries: 0,
            time: 0,
            word: 0,
        }
    }

    /// The state of a message. A leased message is subtracted from the number of its lease.
    fn state(&self, group: &GroupRow, leases: &mut Leases<'_>) -> Result<State> {
        Ok(match self.state {
            0 => State::Ready,
            1 => {
                let lease = leases.get_mut(&(group.number, self.word));
                let lease = lease.filter(|(left, _)| *left > 0 && self.word < group.next_lease);
                let (left, consumer) = lease.ok_or_else(|| broken("the lease of a message"))?;
                *left -= 1;
                State::Leased {
                    until: self.time,
                    consumer: consumer.to_vec(),
                }
            }
            2 => State::Delayed { until: self.time },
            3 => State::Waiting,
            _ => State::Dead {
                since: self.time,
                is_rejected: self.word == 1,
            },
        })
    }
}

impl GroupRow {
    /// Reads a row, whether the group is dropped, and its totals.
    fn read(value: &[u8]) -> Result<(Self, bool, [u64; 3])> {
        let mut fields = Fields::new(value, 0);
        let number = fields.u32()? as u64;
        let dropped = fields.u32()?;
        let mut words = [0; 9];
        for word in &mut words {
            *word = fields.u64()?;
        }
        end(&fields, "a group goes on")?;
        fields.require(
            number < u64::from(u32::MAX) && dropped <= 1 && words.iter().all(|w| *w <= WORD_MAX),
            "a group of a queue",
        )?;
        let [next_lease, counts @ .., acked, redelivered, buried] = words;
        let row = Self {
            number,
            next_lease,
            counts: [counts[0], counts[2], counts[1], counts[3], counts[4]],
        };
        Ok((row, dropped == 1, [acked, redelivered, buried]))
    }
}
