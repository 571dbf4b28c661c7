//! The writer of a table of containers. Each kind of call has a file of its own.
//!
//! Invariants:
//! 1. Between calls the fields equal the stored rows.
//! 2. After an error other than `Limit` and `Refused` the transaction must be rolled back. These two are returned
//!    before anything has been changed.

use crate::containers::dictionary::FieldNumbers;
use crate::containers::due::{Due, Kind, NEVER};
use crate::containers::options::ContainerTableOptions;
use crate::containers::parts::{Part, change, part, row};
use crate::containers::record::Record;
use crate::containers::state::State;
use tidalite_kv::{TableWriter, Tree};
use tidalite_pager::{Error, PageWrite, Refusal, Result};

/// Counters of the work of a writer, for tests of complexity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Parts that were opened to be changed.
    pub(crate) parts: u64,
    /// Lookups of messages by key.
    pub(crate) lookups: u64,
}

/// Changes a table of containers within one write transaction.
///
/// Each call stores all changes before it returns, except the root: the caller stores the tree that it has passed.
/// After an error other than `Limit` and `Refused` the table may be partly changed, and the transaction must be
/// rolled back.
pub struct ContainersWriter<'a, W> {
    pub(crate) root: &'a mut Tree,
    pub(crate) w: &'a mut W,
    pub(crate) options: ContainerTableOptions,
    pub(crate) state: State,
    pub(crate) fields: FieldNumbers,
    pub(crate) work: Work,
}

impl<'a, W: PageWrite> ContainersWriter<'a, W> {
    /// Creates a table of containers in an empty table.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; `AlreadyExists` for a table with rows; a full disk, a damaged
    /// page.
    pub fn create(
        root: &'a mut Tree,
        w: &'a mut W,
        options: ContainerTableOptions,
    ) -> Result<Self> {
        options.check()?;
        if !root.is_empty() {
            return Err(Error::refused(
                Refusal::AlreadyExists,
                "a table with rows",
                "an empty table",
            ));
        }
        root.insert(w, &Part::Options.key(), &options.encode())?;
        let mut table = Self {
            root,
            w,
            options,
            state: State::default(),
            fields: FieldNumbers::default(),
            work: Work::default(),
        };
        table.save_state()?;
        Ok(table)
    }

    /// Opens a table of containers.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// One page of the root.
    pub fn open(root: &'a mut Tree, w: &'a mut W) -> Result<Self> {
        let options = ContainerTableOptions::decode(&row(root, &*w, Part::Options)?)?;
        let state = State::decode(&row(root, &*w, Part::State)?)?;
        Ok(Self {
            root,
            w,
            options,
            state,
            fields: FieldNumbers::default(),
            work: Work::default(),
        })
    }

    /// The options of the table.
    #[must_use]
    pub fn options(&self) -> &ContainerTableOptions {
        &self.options
    }

    /// Changes the options of the table. If the maximum number of containers is lowered, existing ones remain. New
    /// default options also apply to messages that are already stored: `maintain` then removes expired and surplus
    /// messages.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads the records of all containers, and rewrites each one whose messages now expire at another time.
    pub fn set_table_options(&mut self, options: ContainerTableOptions) -> Result<()> {
        options.check()?;
        self.root
            .insert(self.w, &Part::Options.key(), &options.encode())?;
        let old = std::mem::replace(&mut self.options, options);
        if old.defaults == self.options.defaults {
            return Ok(());
        }
        let mut changed = Vec::new();
        let mut dues = Vec::new();
        {
            let w = &*self.w;
            let mut rows = part(self.root, w, Part::Containers)?.cursor(w)?;
            let mut there = rows.first()?;
            while there {
                let mut record = Record::decode(&rows.value()?.bytes()?)?;
                let options = record.options(&self.options.defaults);
                let wanted = record.wanted_due(options);
                if record.options.is_none() && wanted != record.due {
                    dues.push((record.number, record.due, wanted));
                    record.due = wanted;
                    changed.push((rows.key().to_vec(), record));
                }
                there = rows.next()?;
            }
        }
        self.change(Part::Containers, &mut |w, table| {
            for (name, record) in &changed {
                table.insert(w, name, &record.encode())?;
            }
            Ok(())
        })?;
        self.refile(&dues)
    }

    pub(crate) fn save_state(&mut self) -> Result<()> {
        let bytes = self.state.encode();
        self.root
            .insert(self.w, &Part::State.key(), &bytes)
            .map(drop)
    }

    /// Changes a part, which is created if it does not exist.
    pub(crate) fn change<T>(
        &mut self,
        part: Part,
        changes: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
    ) -> Result<T> {
        self.work.parts += 1;
        change(self.root, self.w, part, changes)
    }

    /// Moves the rows of containers in `Due`. Each item is the number, the old time and the new time.
    pub(crate) fn refile(&mut self, dues: &[(u32, i64, i64)]) -> Result<()> {
        if dues.is_empty() {
            return Ok(());
        }
        self.change(Part::Due, &mut |w, table| {
            for &(number, old, new) in dues {
                if old != NEVER {
                    table.remove(w, &Due::new(old, Kind::Container, number).encode())?;
                }
                if new != NEVER {
                    table.insert(w, &Due::new(new, Kind::Container, number).encode(), &[])?;
                }
            }
            Ok(())
        })
    }

    /// The record of a container; an error if it does not exist.
    pub(crate) fn record(&self, name: &str) -> Result<Record> {
        self.find_record(name)?.ok_or_else(|| no_container(name))
    }

    pub(crate) fn find_record(&self, name: &str) -> Result<Option<Record>> {
        let w = &*self.w;
        match part(self.root, w, Part::Containers)?.get(w, name.as_bytes())? {
            Some(found) => Record::decode(&found.bytes()?).map(Some),
            None => Ok(None),
        }
    }

    /// Stores the record of a container whose messages have changed, and updates its row in `Due` to the exact time.
    pub(crate) fn save_record(&mut self, name: &str, record: &mut Record) -> Result<()> {
        let wanted = record.wanted_due(record.options(&self.options.defaults));
        if wanted != record.due {
            self.refile(&[(record.number, record.due, wanted)])?;
            record.due = wanted;
        }
        let bytes = record.encode();
        self.change(Part::Containers, &mut |w, table| {
            table.insert(w, name.as_bytes(), &bytes).map(drop)
        })
    }
}

/// Creates the error for a container that does not exist.
#[cold]
pub(crate) fn no_container(name: &str) -> tidalite_pager::Error {
    Error::refused(
        Refusal::NotFound,
        format!("the container {name:?}, which does not exist"),
        "the name of a container",
    )
}
