//! Creating and dropping groups of consumers.

use crate::queues::edit::Edit;
use crate::queues::options::{GROUPS_MAX, check_limit};
use crate::queues::parts::{Part, change};
use crate::queues::store::heads_from;
use crate::queues::writer::{
    DEFAULT_GROUP, NAMELESS, QueueWriter, check_name, is_reserved, known_name,
};
use tidalite_pager::{PageWrite, Result};

/// Number of messages that are added to a new group in one step.
const COPY_STEP: usize = 1 << 14;

/// The first message that a new group receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStart {
    /// The oldest stored message.
    Oldest,
    /// The first message that is pushed after the group was created.
    Newest,
}

impl<W: PageWrite> QueueWriter<'_, W> {
    /// Creates a group of consumers; returns false, with nothing changed, if it already exists. If the first group of a
    /// queue starts at the oldest message, it takes over all stored messages. If it starts at the newest one, no group
    /// needs the stored messages, and [`maintain`](Self::maintain) removes them.
    ///
    /// # Errors
    /// `Limit` for too many groups or too long a name; `InvalidName` for an empty name, or one that begins with a zero
    /// byte. `DiskFull`, `Io`; a damaged page.
    ///
    /// # Cost
    /// One row. A second group that starts at the oldest message also reads all stored messages.
    pub fn create_group(&mut self, name: &str, start: GroupStart, now: i64) -> Result<bool> {
        check_name(name)?;
        if self.groups.contains_key(name) {
            return Ok(false);
        }
        check_limit("groups of a queue", self.groups.len() + 1, GROUPS_MAX)?;
        if self.groups.contains_key(NAMELESS) {
            match start {
                GroupStart::Oldest => {
                    self.rename(NAMELESS, name)?;
                    return Ok(true);
                }
                GroupStart::Newest => {
                    self.check_next_group()?;
                    self.set_dropped(NAMELESS)?;
                }
            }
        }
        self.add_group(name)?;
        self.save_state()?;
        if start == GroupStart::Oldest {
            self.add_stored(name, now)?;
        }
        Ok(true)
    }

    /// Drops a group with its dead letters. Its messages are removed unless other groups need them. Returns false if
    /// the group does not exist; a default group that was never used and has no messages does not count as existing.
    /// The name can be used again at once.
    ///
    /// # Errors
    /// `Limit`, with nothing changed, for the last group if too many dropped groups are not removed yet. `DiskFull`,
    /// `Io`; a damaged page.
    ///
    /// # Cost
    /// Two rows. [`maintain`](Self::maintain) removes the messages.
    pub fn drop_group(&mut self, name: &str) -> Result<bool> {
        let Ok(row) = known_name(&self.groups, name) else {
            return Ok(false);
        };
        if row == NAMELESS && self.groups.get(row).is_some_and(|group| group.open() == 0) {
            return Ok(false);
        }
        let mut others = self.groups.keys().filter(|other| *other != row);
        let is_last = others.all(|other| other.starts_with('\0'));
        if is_last {
            check_limit("groups of a queue", self.groups.len() + 1, GROUPS_MAX)?;
            self.check_next_group()?;
        }
        self.set_dropped(row)?;
        if is_last {
            self.add_group(NAMELESS)?;
            self.save_state()?;
        }
        Ok(true)
    }

    /// Names of the groups that were created, and of the default group if it is in use.
    #[must_use]
    pub fn group_names(&self) -> Vec<&str> {
        let names = self.groups.keys().map(String::as_str);
        names.filter(|name| !is_reserved(name)).collect()
    }

    /// The name of the row of a group. The default group gets its name on first use.
    pub(crate) fn name_default<'n>(&mut self, name: &'n str) -> Result<&'n str> {
        if known_name(&self.groups, name)? == NAMELESS {
            self.rename(NAMELESS, DEFAULT_GROUP)?;
        }
        Ok(name)
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let Some(group) = self.groups.remove(from) else {
            return Ok(());
        };
        change(self.root, self.w, Part::Groups, &mut |w, table| {
            table.remove(w, from.as_bytes())
        })?;
        self.save_group(to, group)
    }

    /// Marks a group as dropped, under a name that no other group has.
    fn set_dropped(&mut self, name: &str) -> Result<()> {
        let Some(group) = self.groups.get_mut(name) else {
            return Ok(());
        };
        group.is_dropped = true;
        let hidden = format!("\0{}", group.number);
        self.rename(name, &hidden)
    }

    /// Adds all stored messages to a new group.
    fn add_stored(&mut self, name: &str, now: i64) -> Result<()> {
        let mut from = 0;
        loop {
            let messages = heads_from(self.root, &*self.w, from, COPY_STEP)?;
            let (Some((last, _)), Some(group)) = (messages.last(), self.groups.get(name)) else {
                return Ok(());
            };
            from = last.saturating_add(1);
            let mut edit = Edit::new(*group);
            for (id, head) in &messages {
                edit.begin(self.root, &*self.w, *id, head, now)?;
            }
            self.store(name, edit, now)?;
        }
    }
}
