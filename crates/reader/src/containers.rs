//! Reads containers (section 9.14 of docs/format.md): their messages, latest values, deletions and rules of thinning.
//! The rows that are derived from these are checked as well.

use crate::bytes::{Fields, key_time};
use crate::document::{FieldValue, Names, check_name, document, name, value, varint};
use crate::error::Result;
use crate::image::text;
use crate::parts::{Expected, Parts, end, key};
use crate::runs::{broken, require};
use crate::table::Rows;
use std::collections::{BTreeMap, BTreeSet};

const CONTAINERS: u8 = 2;
const NAMES: u8 = 3;
const MESSAGES: u8 = 4;
const FIELD_NUMBERS: u8 = 5;
const FIELD_NAMES: u8 = 6;
const LATEST: u8 = 7;
const KEYS: u8 = 8;
const KEYS_BY_TIME: u8 = 9;
const WORK: u8 = 10;
const DROPPED: u8 = 11;
const DELETIONS: u8 = 12;
const DELETED: u8 = 13;
const THINNING: u8 = 14;

const WORD_MAX: u64 = 1 << 60;
const NUMBERS_MAX: u64 = u32::MAX as u64 - 1;
const FOR_EVER: i64 = i64::MAX;
const KEY_BYTES: u64 = 16;

/// A table of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Containers {
    /// The options.
    pub options: TableOptions,
    /// Number of deleted messages that can be restored, and their bytes.
    pub deleted: (u64, u64),
    /// Names of the fields, in the order of their numbers.
    pub fields: Vec<String>,
    /// Number of idempotency keys.
    pub keys: usize,
    /// The containers, ordered by name.
    pub containers: Vec<Container>,
    /// The dropped containers, ordered by name and number.
    pub dropped: Vec<Dropped>,
}

/// The options of a table of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// True if a message creates its container.
    pub creates: bool,
    /// Maximum number of containers.
    pub containers_max: usize,
    /// Maximum number of names of fields.
    pub fields_max: usize,
    /// Window of idempotency keys in nanoseconds.
    pub window: i64,
    /// Options of containers that have none of their own.
    pub of_containers: Options,
}

/// The options of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The policy for messages of one time: an index in [`DUPLICATES`].
    pub duplicates: u8,
    /// True if a full container removes its oldest messages.
    pub rotates: bool,
    /// Time to live in nanoseconds.
    pub ttl: i64,
    /// Nanoseconds for which deleted messages can be restored.
    pub keep_deleted: i64,
    /// Maximum number of messages.
    pub messages_max: u64,
    /// Maximum number of bytes.
    pub bytes_max: u64,
    /// Name of the field that protects messages; empty if there is none.
    pub protect: String,
}

/// The rules for messages of one time, indexed by their number in the file.
pub const DUPLICATES: [&str; 4] = ["keep the first", "replace", "keep all", "merge"];

/// The figures of thinning, indexed by their number in the file.
pub const FIGURES: [&str; 7] = ["first", "last", "min", "max", "mean", "sum", "drop"];

/// The totals of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Number of messages, and their bytes.
    pub messages: (u64, u64),
    /// Number of protected messages, and their bytes.
    pub protected: (u64, u64),
    /// Times of the oldest and the newest message.
    pub times: Option<(i64, i64)>,
    /// Time of creation.
    pub created: i64,
    /// Numbers of changes and of messages that were rejected, have expired, and were rotated.
    pub past: [u64; 4],
}

/// A container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u64,
    /// Options of its own.
    pub options: Option<Options>,
    /// Its totals.
    pub totals: Totals,
    /// The messages.
    pub messages: Vec<Message>,
    /// The fields that have a latest value, ordered by name: the time and the value.
    pub latest: Vec<(String, i64, FieldValue)>,
    /// The deletions, ordered by number.
    pub deletions: Vec<Deletion>,
    /// The rules of thinning.
    pub thinning: Option<Thinning>,
}

/// A message of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its time.
    pub time: i64,
    /// Distinguishes messages with the same time (the *tie*).
    pub tie: u64,
    /// True if it is protected.
    pub is_protected: bool,
    /// Time at which it was received.
    pub received: i64,
    /// Number of messages for which it stands.
    pub stands_for: usize,
    /// The fields.
    pub document: Vec<(String, FieldValue)>,
}

/// A deletion of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its number.
    pub number: u64,
    /// Time of the deletion.
    pub time: i64,
    /// Time from which on its messages cannot be restored.
    pub until: i64,
    /// Number of messages, and their bytes.
    pub messages: (u64, u64),
}

/// A dropped container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Its name.
    pub name: String,
    /// Its number.
    pub number: u64,
    /// Time at which it was dropped.
    pub time: i64,
    /// Time from which on it cannot be restored.
    pub until: i64,
    /// Number of messages, and their bytes.
    pub messages: (u64, u64),
}

/// The rules that thin out the older messages of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinning {
    /// Ages and steps in nanoseconds.
    pub rules: Vec<(i64, i64)>,
    /// Figure of the fields that are not named, indexed in [`FIGURES`].
    pub others: u8,
    /// Names and figures of other fields.
    pub fields: Vec<(String, u8)>,
}

/// The record of a container.
struct Record {
    number: u64,
    options: Option<Options>,
    totals: Totals,
    unprotected_from: i64,
    due: i64,
}

impl Containers {
    /// Reads the rows of the root table.
    ///
    /// # Errors
    /// If the rows break a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let parts = Parts::new(root, THINNING)?;
        let options = TableOptions::read(&mut parts.options())?;
        let mut state = parts.state();
        let mut words = [0; 6];
        for word in &mut words {
            *word = state.u64()?;
        }
        let (next_number, next_field) = (state.u32()? as u64, state.u32()? as u64);
        end(&state, "the state of containers goes on")?;
        require(
            words.iter().all(|word| *word <= WORD_MAX)
                && next_number <= NUMBERS_MAX
                && next_field <= NUMBERS_MAX,
            "the state of containers",
        )?;
        let [live, messages, bytes, deleted, deleted_bytes, next_deletion] = words;

        let names = field_names(&parts, next_field)?;
        let mut work = Expected::new();
        let (records, dropped) = records_of(&parts, next_number, &mut work)?;
        let live_numbers = records.iter().map(|(_, record)| record.number);
        let dropped_numbers = dropped.iter().map(|(_, record)| record.number);
        let numbers: BTreeSet<u64> = live_numbers.chain(dropped_numbers).collect();
        require(
            numbers.len() == records.len() + dropped.len(),
            "two containers with one number",
        )?;
        let has = |number: &u64| numbers.contains(number);
        let mut stored = messages_of(&parts, &names)?;
        let mut latest = latest_of(&parts, &names)?;
        let mut deletions = deletions_of(&parts, &names, next_deletion, &mut work)?;
        let mut thinning = thinning_of(&parts)?;
        parts.has(WORK, &work, "the work on containers")?;
        let keys = check_keys(&parts, &numbers, next_number)?;

        let all = deletions.values().flatten();
        let sums = all.fold((0, 0), |(n, b), of| (n + of.messages.0, b + of.messages.1));
        require(
            sums == (deleted, deleted_bytes),
            "the deleted messages of a table of containers",
        )?;
        let sums = records.iter().fold((0_u64, 0_u64), |(n, b), (_, record)| {
            let (messages, bytes) = record.totals.messages;
            (n.saturating_add(messages), b.saturating_add(bytes))
        });
        require(
            (live, messages, bytes) == (records.len() as u64, sums.0, sums.1),
            "the totals of a table of containers",
        )?;
        require(
            stored.keys().all(has)
                && latest.keys().all(has)
                && deletions.keys().all(has)
                && thinning.keys().all(has),
            "rows of no container",
        )?;

        let mut containers = Self {
            options,
            deleted: (deleted, deleted_bytes),
            fields: names.into_values().collect(),
            keys,
            containers: Vec::new(),
            dropped: Vec::new(),
        };
        for (name, record) in records {
            let number = record.number;
            let messages = stored.remove(&number).unwrap_or_default();
            let latest = latest.remove(&number).unwrap_or_default();
            record.check(&messages, &latest)?;
            record.check_due(&messages, &containers.options.of_containers)?;
            containers.containers.push(Container {
                name,
                number,
                options: record.options,
                totals: record.totals,
                messages: messages.into_iter().map(|(_, message)| message).collect(),
                latest,
                deletions: deletions.remove(&number).unwrap_or_default(),
                thinning: thinning.remove(&number),
            });
        }
        for (dropped, record) in dropped {
            let messages = stored.remove(&record.number).unwrap_or_default();
            let latest = latest.remove(&record.number).unwrap_or_default();
            record.check(&messages, &latest)?;
            containers.dropped.push(dropped);
        }
        Ok(containers)
    }
}

/// The names of fields by number; both directions are compared.
fn field_names(parts: &Parts<'_>, next: u64) -> Result<Names> {
    let (mut names, mut numbers) = (Names::new(), Expected::new());
    for (row, value) in parts.rows(FIELD_NAMES) {
        let number = number_of(row)?;
        let fields = Fields::new(value, 0);
        let name = text(value, &fields)?;
        check_name(&name, &fields)?;
        require(number < next, "the number of a field")?;
        let little = (number as u32).to_le_bytes().to_vec();
        let is_new = numbers.insert(value.to_vec(), little).is_none();
        require(is_new, "two fields of one name")?;
        names.insert(number, name);
    }
    parts.has(FIELD_NUMBERS, &numbers, "the numbers of fields")?;
    Ok(names)
}

/// A key that is the number of a container or a field.
fn number_of(row: &[u8]) -> Result<u64> {
    let mut place = Fields::new(row, 0);
    let number = place.big(4)?;
    end(&place, "a number goes on")?;
    Ok(number)
}

/// The records of containers and of dropped containers.
type Records = (Vec<(String, Record)>, Vec<(Dropped, Record)>);

fn records_of(parts: &Parts<'_>, next: u64, work: &mut Expected) -> Result<Records> {
    let (mut live, mut dropped, mut names) = (Vec::new(), Vec::new(), Expected::new());
    let mut add_name = |number: u64, name: &[u8]| {
        let key = (number as u32).to_be_bytes().to_vec();
        names.insert(key, name.to_vec());
        require(number < next, "the number of a container")
    };
    let mut add_work = |time: i64, kind: u8, number: u64| {
        work.insert(work_key(time, kind, number, 0), Vec::new());
    };
    for (row, value) in parts.rows(CONTAINERS) {
        let record = Record::read(&mut Fields::new(value, 0))?;
        add_name(record.number, row)?;
        if record.due != FOR_EVER {
            add_work(record.due, 0, record.number);
        }
        live.push((container_name(row)?, record));
    }
    for (row, value) in parts.rows(DROPPED) {
        let mut fields = Fields::new(value, 0);
        let (time, until) = (fields.i64()?, fields.i64()?);
        let record = Record::read(&mut fields)?;
        let name = row.len().checked_sub(5);
        let (name, rest) = row.split_at(name.ok_or_else(|| broken("a dropped container"))?);
        let number = record.number;
        fields.require(
            rest[0] == 0 && number_of(&rest[1..])? == number && record.due == FOR_EVER,
            "the key of a dropped container",
        )?;
        add_name(number, name)?;
        add_work(until, 2, number);
        let dropped_container = Dropped {
            name: container_name(name)?,
            number,
            time,
            until,
            messages: record.totals.messages,
        };
        dropped.push((dropped_container, record));
    }
    parts.has(NAMES, &names, "the names of containers")?;
    Ok((live, dropped))
}

fn container_name(row: &[u8]) -> Result<String> {
    let fields = Fields::new(row, 0);
    fields.require(
        (1..=512).contains(&row.len()) && !row.contains(&0),
        "the name of a container",
    )?;
    text(row, &fields)
}

fn work_key(time: i64, kind: u8, container: u64, deletion: u64) -> Vec<u8> {
    let container = (container as u32).to_be_bytes();
    key(&[
        &key_time(time),
        &[kind],
        &container,
        &deletion.to_be_bytes(),
    ])
}

/// Messages with the bytes that they count, by the number of their container.
type Stored = BTreeMap<u64, Vec<(u64, Message)>>;

fn messages_of(parts: &Parts<'_>, names: &Names) -> Result<Stored> {
    let mut stored = Stored::new();
    for (row, value) in parts.rows(MESSAGES) {
        let mut place = Fields::new(row, 0);
        let container = place.big(4)?;
        let message = Message::read(&mut place, value, names)?;
        let bytes = KEY_BYTES + value.len() as u64;
        stored.entry(container).or_default().push((bytes, message));
    }
    Ok(stored)
}

impl Message {
    /// Reads a message. The time and the tie are the rest of `place`.
    fn read(place: &mut Fields<'_>, value: &[u8], names: &Names) -> Result<Self> {
        let (time, tie) = (place.key_time()?, place.big(4)?);
        end(place, "the key of a message of a container goes on")?;
        let mut fields = Fields::new(value, 0);
        let flags = fields.u8()?;
        fields.require(flags <= 3, "the flags of a message of a container")?;
        let received = fields.i64()?;
        let mut stands_for = 1;
        if flags & 2 != 0 {
            stands_for = fields.u32()?;
            fields.require(stands_for >= 2, "the messages for which one stands")?;
        }
        Ok(Self {
            time,
            tie,
            is_protected: flags & 1 != 0,
            received,
            stands_for,
            document: document(&mut fields, names)?,
        })
    }
}

/// Latest values: the names of fields, times and values, ordered by name.
type Latest = Vec<(String, i64, FieldValue)>;

fn latest_of(parts: &Parts<'_>, names: &Names) -> Result<BTreeMap<u64, Latest>> {
    let mut all = BTreeMap::new();
    for (row, bytes) in parts.rows(LATEST) {
        let mut fields = Fields::new(bytes, 0);
        let newest = fields.i64()?;
        let (mut latest, mut seen) = (Latest::new(), BTreeSet::new());
        for is_newest in [true, false] {
            let mut least = 0;
            let count = varint(&mut fields)?;
            fields.require(count > 0 || !is_newest, "the newest latest values")?;
            for _ in 0..count {
                let number = varint(&mut fields)? as u64;
                fields.require(number >= least, "the order of latest values")?;
                least = number + 1;
                fields.require(seen.insert(number), "two latest values of a field")?;
                let time = if is_newest { newest } else { fields.i64()? };
                fields.require(is_newest || time < newest, "the time of a latest value")?;
                let name = name(names, number, &fields)?;
                latest.push((name, time, value(&mut fields, 1, &mut 0)?));
            }
        }
        end(&fields, "latest values go on")?;
        latest.sort_by(|a, b| a.0.cmp(&b.0));
        all.insert(number_of(row)?, latest);
    }
    Ok(all)
}

fn deletions_of(
    parts: &Parts<'_>,
    names: &Names,
    next: u64,
    work: &mut Expected,
) -> Result<BTreeMap<u64, Vec<Deletion>>> {
    let mut found: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
    for (row, value) in parts.rows(DELETED) {
        let mut place = Fields::new(row, 0);
        let (container, number) = (place.big(4)?, place.big(8)?);
        Message::read(&mut place, value, names)?;
        let (messages, bytes) = found.entry((container, number)).or_default();
        *messages += 1;
        *bytes += KEY_BYTES + value.len() as u64;
    }
    let mut deletions: BTreeMap<u64, Vec<Deletion>> = BTreeMap::new();
    for (row, value) in parts.rows(DELETIONS) {
        let mut place = Fields::new(row, 0);
        let (container, number) = (place.big(4)?, place.big(8)?);
        end(&place, "the key of a deletion goes on")?;
        let mut fields = Fields::new(value, 0);
        let deletion = Deletion {
            number,
            time: fields.i64()?,
            until: fields.i64()?,
            messages: (fields.u64()?, fields.u64()?),
        };
        end(&fields, "a deletion goes on")?;
        fields.require(
            number < next && found.remove(&(container, number)) == Some(deletion.messages),
            "the messages of a deletion",
        )?;
        let key = work_key(deletion.until, 1, container, number);
        work.insert(key, Vec::new());
        deletions.entry(container).or_default().push(deletion);
    }
    require(found.is_empty(), "deleted messages of no deletion")?;
    Ok(deletions)
}

/// Checks the idempotency keys; returns their number.
fn check_keys(parts: &Parts<'_>, containers: &BTreeSet<u64>, next_number: u64) -> Result<usize> {
    let mut expected = Expected::new();
    for (row, value) in parts.rows(KEYS) {
        let mut place = Fields::new(row, 0);
        let container = place.big(4)?;
        let mut fields = Fields::new(value, 0);
        let time = key_time(fields.i64()?);
        end(&fields, "an idempotency key goes on")?;
        fields.require(
            containers.contains(&container) && place.left() <= 256,
            "an idempotency key of a container",
        )?;
        expected.insert(key(&[&time, row]), Vec::new());
    }
    // The rows of a dropped container remain until they expire.
    let mut found = Expected::new();
    for (row, value) in parts.rows(KEYS_BY_TIME) {
        let container = Fields::from(row, 8, 0)?.big(4)?;
        require(
            value.is_empty() && row.len() <= 12 + 256 && container < next_number,
            "the time of an idempotency key",
        )?;
        if containers.contains(&container) {
            found.insert(row.to_vec(), value.to_vec());
        }
    }
    require(
        found == expected,
        "the times of idempotency keys of containers",
    )?;
    Ok(parts.rows(KEYS).len())
}

fn thinning_of(parts: &Parts<'_>) -> Result<BTreeMap<u64, Thinning>> {
    let mut all = BTreeMap::new();
    for (row, value) in parts.rows(THINNING) {
        let mut fields = Fields::new(value, 0);
        let (version, count) = (fields.u8()?, fields.u8()?);
        let (others, named) = (fields.u8()?, fields.u8()?);
        let is_figure = |figure: u8| usize::from(figure) < FIGURES.len();
        fields.require(
            version == 1 && (1..=8).contains(&count) && is_figure(others),
            "rules of thinning",
        )?;
        let mut thinning = Thinning {
            rules: Vec::new(),
            others,
            fields: Vec::new(),
        };
        let mut last = (0, 0);
        for _ in 0..count {
            let rule = (fields.i64()?, fields.i64()?);
            let _done = fields.i64()?;
            fields.require(rule.0 > last.0 && rule.1 > last.1, "a rule of thinning")?;
            thinning.rules.push(rule);
            last = rule;
        }
        let mut names = BTreeSet::new();
        for _ in 0..named {
            let (figure, length) = (fields.u8()?, usize::from(fields.u8()?));
            let name = text(fields.take(length)?, &fields)?;
            fields.require(
                is_figure(figure) && length > 0 && names.insert(name.clone()),
                "a field of a rule of thinning",
            )?;
            thinning.fields.push((name, figure));
        }
        end(&fields, "rules of thinning go on")?;
        all.insert(number_of(row)?, thinning);
    }
    Ok(all)
}

impl TableOptions {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let (version, creates) = (fields.u8()?, fields.u8()?);
        let zero = fields.u16()?;
        let (containers_max, fields_max) = (fields.u32()?, fields.u32()?);
        let zeros = fields.u32()?;
        let window = fields.i64()?;
        fields.require(
            version == 1 && creates <= 1 && zero == 0 && zeros == 0 && window >= 0,
            "the options of containers",
        )?;
        Ok(Self {
            creates: creates == 1,
            containers_max,
            fields_max,
            window,
            of_containers: Options::read(fields)?,
        })
    }
}

impl Options {
    /// Reads options, which consist of all remaining fields.
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let version = fields.u8()?;
        let (duplicates, overflow) = (fields.u8()?, fields.u8()?);
        let name_bytes = usize::from(fields.u8()?);
        let zero = fields.u32()?;
        let options = Self {
            duplicates,
            rotates: overflow == 1,
            ttl: fields.i64()?,
            keep_deleted: fields.i64()?,
            messages_max: fields.u64()?,
            bytes_max: fields.u64()?,
            protect: text(fields.take(name_bytes)?, fields)?,
        };
        end(fields, "the options of a container go on")?;
        fields.require(
            version == 1 && duplicates < 4 && overflow < 2 && zero == 0,
            "the options of a container",
        )?;
        fields.require(
            options.ttl >= 0
                && options.keep_deleted >= 0
                && options.messages_max > 0
                && options.bytes_max > 0,
            "the limits of a container",
        )?;
        Ok(options)
    }
}

impl Record {
    /// Reads a record, which consists of all remaining fields.
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let number = fields.u32()? as u64;
        let flags = fields.u32()?;
        let messages = (fields.u64()?, fields.u64()?);
        let protected = (fields.u64()?, fields.u64()?);
        let (oldest, newest) = (fields.i64()?, fields.i64()?);
        let (unprotected_from, due) = (fields.i64()?, fields.i64()?);
        let created = fields.i64()?;
        let mut past = [0; 4];
        for total in &mut past {
            *total = fields.u64()?;
        }
        let counts = [messages.0, messages.1, protected.0, protected.1];
        let mut words = counts.into_iter().chain(past);
        fields.require(
            flags <= 1 && words.all(|word| word <= WORD_MAX),
            "the record of a container",
        )?;
        let options = if flags == 1 {
            Some(Options::read(fields)?)
        } else {
            None
        };
        end(fields, "the record of a container goes on")?;
        let times = Some((oldest, newest)).filter(|_| messages.0 > 0);
        fields.require(
            times.is_some() || (oldest, newest) == (i64::MAX, i64::MIN),
            "the times of an empty container",
        )?;
        Ok(Self {
            number,
            options,
            totals: Totals {
                messages,
                protected,
                times,
                created,
                past,
            },
            unprotected_from,
            due,
        })
    }

    /// Checks that the time of the next work is not too late.
    fn check_due(&self, messages: &[(u64, Message)], defaults: &Options) -> Result<()> {
        let options = self.options.as_ref().unwrap_or(defaults);
        let mut unprotected = messages.iter().filter(|(_, message)| !message.is_protected);
        let Some((_, oldest)) = unprotected.next() else {
            return Ok(());
        };
        let (all, kept) = (self.totals.messages, self.totals.protected);
        let is_over = all.0 - kept.0 > options.messages_max || all.1 - kept.1 > options.bytes_max;
        let latest = match options.ttl {
            _ if options.rotates && is_over => i64::MIN,
            FOR_EVER => FOR_EVER,
            ttl => oldest.time.saturating_add(ttl),
        };
        require(self.due <= latest, "the time of the work on a container")
    }

    /// Compares the record and the latest values with the messages.
    fn check(&self, messages: &[(u64, Message)], latest: &Latest) -> Result<()> {
        let count = |is_counted: fn(&Message) -> bool| {
            let counted = messages.iter().filter(|(_, message)| is_counted(message));
            counted.fold((0, 0), |(n, sum), (bytes, _)| (n + 1, sum + bytes))
        };
        let times = messages.first().zip(messages.last());
        let times = times.map(|((_, first), (_, last))| (first.time, last.time));
        require(
            count(|_| true) == self.totals.messages
                && count(|message| message.is_protected) == self.totals.protected
                && times == self.totals.times,
            "the totals of a container",
        )?;
        let mut unprotected = messages.iter().filter(|(_, message)| !message.is_protected);
        require(
            unprotected.all(|(_, message)| message.time >= self.unprotected_from),
            "the oldest message without protection",
        )?;
        let latest: BTreeMap<&str, i64> = latest
            .iter()
            .map(|(name, time, _)| (name.as_str(), *time))
            .collect();
        for (_, message) in messages {
            let mut names = message.document.iter().map(|(name, _)| name.as_str());
            require(
                names.all(|name| latest.get(name) >= Some(&message.time)),
                "the latest value of a field",
            )?;
        }
        Ok(())
    }
}
