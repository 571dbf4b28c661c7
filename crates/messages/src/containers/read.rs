//! Reading a table of containers: totals, containers, single messages, latest values, fields.

use crate::containers::codec::value_of;
use crate::containers::deletion::Deletion;
use crate::containers::dictionary::{FieldNames, decode_number};
use crate::containers::keys::{
    MessageKey, behind_container, container_key, deletion_key, split_deletion, text_of,
};
use crate::containers::latest::{Entry, Latest};
use crate::containers::message::StoredMessage;
use crate::containers::options::{ContainerOptions, ContainerTableOptions};
use crate::containers::parts::{Part, damaged, part, row};
use crate::containers::record::Record;
use crate::containers::state::State;
use crate::containers::value::FieldValue;
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_time::Timestamp;

/// Reads one version of a table of containers.
pub struct ContainersReader<R> {
    pub(crate) root: Tree,
    pub(crate) r: R,
    pub(crate) options: ContainerTableOptions,
    pub(crate) state: State,
}

/// Totals of a table of containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainersStat {
    /// Number of containers.
    pub containers: u64,
    /// Number of messages, including expired ones that are not removed yet.
    pub messages: u64,
    /// Total bytes of these messages.
    pub bytes: u64,
    /// Number of deleted messages that can be restored.
    pub deleted_messages: u64,
    /// Total bytes of these messages.
    pub deleted_bytes: u64,
    /// Number of dropped containers that can be restored.
    pub dropped_containers: u64,
    /// Number of names of fields.
    pub fields: u64,
    /// Number of idempotency keys that are remembered.
    pub idempotency_keys: u64,
}

/// A container. Messages that have expired and are not removed yet are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerInfo {
    /// Name.
    pub name: String,
    /// Number, which stays when the container is renamed.
    pub number: u32,
    /// The options that apply to it.
    pub options: ContainerOptions,
    /// Whether the container has options of its own instead of the default options of the table.
    pub has_own_options: bool,
    /// Number of messages.
    pub messages: u64,
    /// Total bytes of these messages.
    pub bytes: u64,
    /// Number of protected messages among these.
    pub protected_messages: u64,
    /// Total bytes of the protected messages.
    pub protected_bytes: u64,
    /// Time of the oldest message.
    pub oldest: Option<Timestamp>,
    /// Time of the newest message.
    pub newest: Option<Timestamp>,
    /// Time at which the container was created.
    pub created: Timestamp,
    /// Number of changes of messages since the creation: stored, replaced, deleted, restored and removed messages. It
    /// never decreases.
    pub changes: u64,
    /// Number of messages that were rejected since the creation.
    pub rejected: u64,
    /// Number of messages that expired and were removed since the creation.
    pub expired: u64,
    /// Number of messages that were removed since the creation because the container was full.
    pub rotated: u64,
}

/// The latest value of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct LatestValue {
    /// Name of the field.
    pub field: String,
    /// Time of the message that set the value.
    pub time: Timestamp,
    /// The value.
    pub value: FieldValue,
}

impl<R: PageRead> ContainersReader<R> {
    /// Opens a table of containers.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// One page of the root.
    pub fn open(root: &Tree, r: R) -> Result<Self> {
        Ok(Self {
            root: *root,
            options: ContainerTableOptions::decode(&row(root, &r, Part::Options)?)?,
            state: State::decode(&row(root, &r, Part::State)?)?,
            r,
        })
    }

    /// The options of the table.
    #[must_use]
    pub fn options(&self) -> &ContainerTableOptions {
        &self.options
    }

    /// The totals.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<ContainersStat> {
        let state = &self.state;
        let rows = |of| part(&self.root, &self.r, of).map(|table| table.len());
        Ok(ContainersStat {
            containers: state.containers,
            messages: state.messages,
            bytes: state.bytes,
            deleted_messages: state.deleted_messages,
            deleted_bytes: state.deleted_bytes,
            dropped_containers: rows(Part::Dropped)?,
            fields: rows(Part::Fields)?,
            idempotency_keys: rows(Part::Seen)?,
        })
    }

    pub(crate) fn record(&self, name: &str) -> Result<Option<Record>> {
        match part(&self.root, &self.r, Part::Containers)?.get(&self.r, name.as_bytes())? {
            Some(found) => Record::decode(&found.bytes()?).map(Some),
            None => Ok(None),
        }
    }

    pub(crate) fn info(&self, name: &str, record: Record) -> ContainerInfo {
        let has_messages = record.messages > 0;
        ContainerInfo {
            name: name.to_owned(),
            number: record.number,
            messages: record.messages,
            bytes: record.bytes,
            protected_messages: record.protected_messages,
            protected_bytes: record.protected_bytes,
            oldest: has_messages.then_some(Timestamp(record.oldest)),
            newest: has_messages.then_some(Timestamp(record.newest)),
            created: Timestamp(record.created),
            changes: record.changes,
            rejected: record.rejected,
            expired: record.expired,
            rotated: record.rotated,
            has_own_options: record.options.is_some(),
            options: record
                .options
                .unwrap_or_else(|| self.options.defaults.clone()),
        }
    }

    /// A container; `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// One row.
    pub fn container(&self, name: &str) -> Result<Option<ContainerInfo>> {
        Ok(self.record(name)?.map(|record| self.info(name, record)))
    }

    /// The name of the container with a number; `None` if it does not exist. Dropped containers that can be restored
    /// also have names.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn container_name(&self, number: u32) -> Result<Option<String>> {
        let key = container_key(number);
        match part(&self.root, &self.r, Part::Numbers)?.get(&self.r, &key)? {
            Some(name) => Ok(Some(text_of(&name.bytes()?)?.to_owned())),
            None => Ok(None),
        }
    }

    /// All messages of one time that have not expired at `now`, in the order of their ties; none if the container does
    /// not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// The record of the container, a descent, and the messages.
    pub fn get(&self, container: &str, time: i64, now: i64) -> Result<Vec<StoredMessage>> {
        let mut found = Vec::new();
        let Some(record) = self.record(container)? else {
            return Ok(found);
        };
        let options = record.options(&self.options.defaults);
        let mut rows = part(&self.root, &self.r, Part::Messages)?.cursor(&self.r)?;
        let mut there = rows.seek_ge(&MessageKey::new(record.number, time, 0).encode())?;
        while there {
            let key = MessageKey::decode(rows.key())?;
            if (key.container, key.time.0) != (record.number, time) {
                break;
            }
            let message = StoredMessage::decode(key, &rows.value()?.bytes()?)?;
            if !options.is_expired(time, message.is_protected, now) {
                found.push(message);
            }
            there = rows.next()?;
        }
        Ok(found)
    }

    /// The latest value of each field of a container, sorted by the number of the field; none if the container does not
    /// exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// The record of the container, the row of its latest values, and a row for the name of each field.
    pub fn latest(&self, container: &str) -> Result<Vec<LatestValue>> {
        let Some(row) = self.latest_row(container)? else {
            return Ok(Vec::new());
        };
        let names = part(&self.root, &self.r, Part::FieldNames)?;
        let latest = Latest::decode(&row)?;
        let values = latest.entries().iter().map(|entry| {
            let Some(name) = names.get(&self.r, &container_key(entry.field))? else {
                return Err(damaged("number of a field", entry.field, "a known number"));
            };
            latest_value(text_of(&name.bytes()?)?, entry)
        });
        values.collect()
    }

    /// The latest values of some fields of a container, in the order of `fields`; `None` for a field that has no value.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn latest_of(&self, container: &str, fields: &[&str]) -> Result<Vec<Option<LatestValue>>> {
        let row = self.latest_row(container)?;
        let latest = match &row {
            Some(row) => Latest::decode(row)?,
            None => Latest::default(),
        };
        let values = fields.iter().map(|field| {
            let entry = match self.field_number(field)? {
                Some(number) => latest.get(number),
                None => None,
            };
            entry.map(|entry| latest_value(field, entry)).transpose()
        });
        values.collect()
    }

    fn latest_row(&self, container: &str) -> Result<Option<Vec<u8>>> {
        let Some(record) = self.record(container)? else {
            return Ok(None);
        };
        let key = container_key(record.number);
        let row = part(&self.root, &self.r, Part::Latest)?.get(&self.r, &key)?;
        row.map(|row| row.to_vec()).transpose()
    }

    /// The number of a field; `None` if no message has ever had the field.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn field_number(&self, name: &str) -> Result<Option<u32>> {
        match part(&self.root, &self.r, Part::Fields)?.get(&self.r, name.as_bytes())? {
            Some(found) => decode_number(&found.bytes()?).map(Some),
            None => Ok(None),
        }
    }

    /// The names of all fields. They are needed to decode documents.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// A row for each field that the messages of the table have ever had.
    pub fn field_names(&self) -> Result<FieldNames> {
        FieldNames::read(&self.root, &self.r)
    }

    /// The deletions of a container that can be restored at `now`, newest first, at most `limit`, and only those with
    /// numbers below `before`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn deletions(
        &self,
        container: &str,
        now: i64,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Deletion>> {
        let mut found = Vec::new();
        let Some(record) = self.record(container)? else {
            return Ok(found);
        };
        let mut rows = part(&self.root, &self.r, Part::Deletions)?.cursor(&self.r)?;
        let mut there = match before {
            Some(before) => rows.seek_lt(&deletion_key(record.number, before))?,
            None => rows.seek_lt(&behind_container(record.number))?,
        };
        while there && found.len() < limit {
            let (number, deletion) = split_deletion(rows.key())?;
            if number != record.number {
                break;
            }
            let deletion = Deletion::decode(deletion, &rows.value()?.bytes()?)?;
            if deletion.free_at.0 > now {
                found.push(deletion);
            }
            there = rows.previous()?;
        }
        Ok(found)
    }
}

fn latest_value(field: &str, entry: &Entry<'_>) -> Result<LatestValue> {
    Ok(LatestValue {
        field: field.to_owned(),
        time: Timestamp(entry.time),
        value: value_of(entry.value)?.decode()?,
    })
}
