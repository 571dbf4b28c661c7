//! The writer of a queue. Each kind of call has a file of its own.
//!
//! Invariants:
//! 1. Between calls the fields equal the stored rows.
//! 2. After an error other than `Limit` and `Refused` the transaction must be rolled back. These two are returned
//!    before anything has been changed.

use crate::options;
use crate::queues::counters::{Group, State};
use crate::queues::edit::Edit;
use crate::queues::options::{GROUP_NAME_BYTES_MAX, QueueOptions, check_limit};
use crate::queues::parts::{Part, change, damaged, part, row};
use std::collections::BTreeMap;
use tidalite_kv::Tree;
use tidalite_pager::{Error, PageRead, PageWrite, Refusal, Result};

/// Name of the group that exists if no group was created.
pub const DEFAULT_GROUP: &str = "default";

/// Changes a queue within one write transaction.
///
/// Each call stores all changes before it returns, except the root: the caller stores the tree that it has passed.
pub struct QueueWriter<'a, W> {
    pub(crate) root: &'a mut Tree,
    pub(crate) w: &'a mut W,
    pub(crate) options: QueueOptions,
    pub(crate) state: State,
    pub(crate) groups: BTreeMap<String, Group>,
}

/// Reads the rows of all groups.
pub(crate) fn read_groups<R: PageRead>(root: &Tree, r: &R) -> Result<BTreeMap<String, Group>> {
    let mut rows = part(root, r, Part::Groups)?.cursor(r)?;
    let mut groups = BTreeMap::new();
    let mut there = rows.first()?;
    while there {
        let Ok(name) = std::str::from_utf8(rows.key()) else {
            return Err(damaged("group", rows.key().escape_ascii(), "UTF-8"));
        };
        groups.insert(name.to_owned(), Group::decode(&rows.value()?.bytes()?)?);
        there = rows.next()?;
    }
    Ok(groups)
}

/// Creates the error for a group that does not exist.
#[cold]
pub(crate) fn no_group(name: &str) -> Error {
    Error::refused(
        Refusal::NotFound,
        format!("the group {name:?} of a queue, which does not exist"),
        "a group that was created",
    )
}

/// Internal name of the group that a queue without groups has.
pub(crate) const NAMELESS: &str = "";

/// The name with which a group is looked up: the default group may not have got its name yet.
pub(crate) fn known_name<'n>(groups: &BTreeMap<String, Group>, name: &'n str) -> Result<&'n str> {
    match groups.contains_key(name) {
        true if !is_reserved(name) => Ok(name),
        _ if name == DEFAULT_GROUP && groups.contains_key(NAMELESS) => Ok(NAMELESS),
        _ => Err(no_group(name)),
    }
}

/// Whether the name is reserved for the group without a name or for dropped groups.
pub(crate) fn is_reserved(name: &str) -> bool {
    name.is_empty() || name.starts_with('\0')
}

/// Checks a name that a user chose for a group.
pub(crate) fn check_name(name: &str) -> Result<()> {
    check_limit(
        "bytes of the name of a group",
        name.len(),
        GROUP_NAME_BYTES_MAX,
    )?;
    if is_reserved(name) {
        return Err(Error::refused(
            Refusal::InvalidName,
            format!("the name {name:?} of a group"),
            "a name that is not empty and does not begin with a zero byte",
        ));
    }
    Ok(())
}

impl<'a, W: PageWrite> QueueWriter<'a, W> {
    /// Creates a queue in an empty table.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; `AlreadyExists` for a table with rows; `DiskFull`, `Io`.
    pub fn create(root: &'a mut Tree, w: &'a mut W, options: QueueOptions) -> Result<Self> {
        if !root.is_empty() {
            return Err(Error::refused(
                Refusal::AlreadyExists,
                "a table with rows",
                "an empty table for a new queue",
            ));
        }
        options::check(options.problem())?;
        root.insert(w, &Part::Options.key(), &options.encode())?;
        let mut queue = Self {
            root,
            w,
            options,
            state: State {
                next_id: 1,
                ..State::default()
            },
            groups: BTreeMap::new(),
        };
        queue.add_group(NAMELESS)?;
        queue.save_state()?;
        Ok(queue)
    }

    /// Opens a queue.
    ///
    /// # Errors
    /// A damaged or unreadable page or row.
    ///
    /// # Cost
    /// Three rows, and one for each group.
    pub fn open(root: &'a mut Tree, w: &'a mut W) -> Result<Self> {
        Ok(Self {
            options: QueueOptions::decode(&row(root, &*w, Part::Options)?)?,
            state: State::decode(&row(root, &*w, Part::State)?)?,
            groups: read_groups(root, &*w)?,
            root,
            w,
        })
    }

    /// The options of the queue.
    #[must_use]
    pub fn options(&self) -> &QueueOptions {
        &self.options
    }

    /// Changes the options. They apply to later calls: messages that exceed a lower maximum remain.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; `DiskFull`, `Io`.
    pub fn set_options(&mut self, options: QueueOptions) -> Result<()> {
        options::check(options.problem())?;
        self.options = options;
        self.root
            .insert(self.w, &Part::Options.key(), &options.encode())?;
        Ok(())
    }

    pub(crate) fn save_state(&mut self) -> Result<()> {
        let bytes = self.state.encode();
        self.root.insert(self.w, &Part::State.key(), &bytes)?;
        Ok(())
    }

    pub(crate) fn save_group(&mut self, name: &str, group: Group) -> Result<()> {
        change(self.root, self.w, Part::Groups, &mut |w, table| {
            table.insert(w, name.as_bytes(), &group.encode())
        })?;
        self.groups.insert(name.to_owned(), group);
        Ok(())
    }

    /// Checks that a number is available for a new group.
    pub(crate) fn check_next_group(&self) -> Result<()> {
        match self.state.next_group {
            u32::MAX => Err(Error::Limit {
                what: "groups that a queue has ever had",
                found: u32::MAX.into(),
                limit: u32::MAX.into(),
            }),
            _ => Ok(()),
        }
    }

    pub(crate) fn add_group(&mut self, name: &str) -> Result<()> {
        self.check_next_group()?;
        let number = self.state.next_group;
        self.state.next_group = number + 1;
        let group = Group {
            number,
            ..Group::default()
        };
        self.save_group(name, group)
    }

    /// Begins a change of a group. Returns the name of its row.
    pub(crate) fn edit<'n>(&self, name: &'n str) -> Result<(&'n str, Edit)> {
        let name = known_name(&self.groups, name)?;
        match self.groups.get(name) {
            Some(group) => Ok((name, Edit::new(*group))),
            None => Err(no_group(name)),
        }
    }

    /// Stores the changes of a group.
    pub(crate) fn store(&mut self, name: &str, edit: Edit, now: i64) -> Result<()> {
        let group = edit.store(self.root, self.w, now)?;
        if self.groups.get(name) != Some(&group) {
            self.save_group(name, group)?;
        }
        Ok(())
    }
}
