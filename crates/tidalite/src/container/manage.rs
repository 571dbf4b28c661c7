//! Creating, renaming, dropping and maintaining containers.

use crate::container::append::ContainersMut;
use crate::container::name::series_of;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_messages::{
    ContainerOptions, ContainerTableOptions, ContainersMaintenance, ContainersRecovery,
    ContainersWriter, DroppedContainer,
};

const EVER: (i64, i64) = (i64::MIN, i64::MAX);

impl ContainersMut<'_> {
    /// Changes the options of the table. New default options hold for the messages that are already stored, too:
    /// [`maintain`](Self::maintain) removes what is then expired or too much.
    ///
    /// # Errors
    /// `Unsupported` for options that cannot be used; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads the records of all containers.
    pub fn set_table_options(&mut self, options: &ContainerTableOptions) -> Result<()> {
        self.change_only(|containers, _| containers.set_table_options(options.clone()))
    }

    /// Creates a container, with options of its own or the default ones of the table. Returns its number.
    ///
    /// # Errors
    /// `Unsupported` for a name that exists or cannot be used and for options that cannot be used; `Limit` for a long name
    /// and too many containers. A damaged page, a full disk.
    pub fn create_container(
        &mut self,
        name: &str,
        options: Option<&ContainerOptions>,
    ) -> Result<u32> {
        self.check_series(&self.table_name(), name)?;
        self.change_only(|containers, now| containers.create_container(now, name, options.cloned()))
    }

    /// Changes the options of a container; with `None` it gets the default ones of the table. They hold for the messages that
    /// are already stored, too, except the rule for equal times.
    ///
    /// # Errors
    /// `Unsupported` for a container that does not exist and for options that cannot be used; a damaged page, a full disk.
    pub fn set_options(&mut self, name: &str, options: Option<&ContainerOptions>) -> Result<()> {
        self.change_only(|containers, _| containers.set_options(name, options.cloned()))
    }

    /// Gives a container and its series another name.
    ///
    /// # Errors
    /// `Unsupported` for a container that does not exist, and for a new name that exists or cannot be used; `InvalidName` if
    /// a series has the name. A damaged page, a full disk.
    pub fn rename_container(&mut self, name: &str, new_name: &str) -> Result<()> {
        let table = self.table_name();
        let (from, to) = (series_of(&table, name)?, series_of(&table, new_name)?);
        self.check_series(&table, new_name)?;
        self.change(
            |containers, _| containers.rename(name, new_name),
            |containers, ()| containers.txn.rename_numbers(&from, &to),
        )
    }

    /// Drops a container with its messages and its series. Within the time that its options keep deleted messages it can be
    /// restored.
    ///
    /// # Errors
    /// `Unsupported` for a container that does not exist; a damaged page, a full disk.
    pub fn drop_container(&mut self, name: &str) -> Result<DroppedContainer> {
        self.txn.free_space();
        let series = series_of(&self.table_name(), name)?;
        self.change(
            |containers, now| containers.drop_container(now, name),
            |containers, dropped| {
                containers.txn.remove_all_numbers(&series)?;
                Ok(dropped)
            },
        )
    }

    /// Restores the container of this name that was dropped last, under the same or another name. Returns its number.
    ///
    /// # Errors
    /// `Unsupported` if there is no such container or the new name exists; a damaged page, a full disk.
    ///
    /// # Cost
    /// Makes the rows of its series from all of its messages.
    pub fn restore_container(&mut self, name: &str, new_name: &str) -> Result<u32> {
        self.check_series(&self.table_name(), new_name)?;
        self.change(
            |containers, now| containers.restore_container(now, name, new_name),
            |containers, number| {
                containers.remake(new_name, EVER)?;
                Ok(number)
            },
        )
    }

    /// Does a bounded step of the work that is due: removes messages that have expired or are too much, deleted messages
    /// that cannot be restored any more, and old idempotency keys. About `budget` rows are read. Call it from time to time,
    /// until it is done.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn maintain(&mut self, budget: u64) -> Result<ContainersMaintenance> {
        self.txn.free_space();
        self.change(
            |containers, now| containers.maintain(now, budget, &mut |_| Ok(())),
            |containers, done| {
                for span in &done.removed {
                    containers.remake(&span.name, (span.from, span.to))?;
                }
                Ok(done)
            },
        )
    }

    /// Drops all containers for good, with their messages and their series. The table stays, without containers.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// That of removing each series.
    pub fn clear(&mut self) -> Result<()> {
        let options = self.options()?;
        let table = self.table_name();
        loop {
            let names: Vec<String> = {
                let view = self.view()?;
                let infos = view.list("", None, 1_000)?;
                infos.into_iter().map(|info| info.name).collect()
            };
            if names.is_empty() {
                break;
            }
            for name in names {
                let series = series_of(&table, &name)?;
                self.change(
                    |containers, now| containers.drop_container(now, &name),
                    |containers, _| containers.txn.remove_all_numbers(&series),
                )?;
            }
        }
        self.txn.change_table(self.index, |tree, pages| {
            tree.clear(pages)?;
            ContainersWriter::create(tree, pages, options).map(drop)
        })
    }

    /// Rebuilds containers of which parts may be lost.
    fn recover(&mut self) -> Result<ContainersRecovery> {
        let now = self.txn.now_ns();
        self.txn.change_table(self.index, |tree, pages| {
            ContainersWriter::recover(tree, pages, now).map(|(_, recovery)| recovery)
        })
    }

    /// Makes the rows of the series of all containers anew from their messages.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// Reads all messages.
    pub fn rebuild_series(&mut self) -> Result<()> {
        let mut after: Option<String> = None;
        loop {
            let names: Vec<String> = {
                let view = self.view()?;
                let infos = view.list("", after.as_deref(), 1_000)?;
                infos.into_iter().map(|info| info.name).collect()
            };
            let Some(last) = names.last() else {
                return Ok(());
            };
            after = Some(last.clone());
            for name in names {
                self.change(
                    |_, _| Ok(()),
                    |containers, ()| containers.remake(&name, EVER),
                )?;
            }
        }
    }
}

impl WriteTxn {
    /// Builds the rows of a table of containers anew that follow from others. Passes a text to `problem` for each loss.
    pub(crate) fn recover_containers(
        &mut self,
        name: &str,
        problem: &mut dyn FnMut(String),
    ) -> Result<()> {
        let Some(mut containers) = self.containers_if_exists(name)? else {
            return Ok(());
        };
        let done = containers.recover()?;
        for (count, lost) in [
            (done.removed, "messages could not be decoded"),
            (
                done.made_anew,
                "containers have lost their names or options",
            ),
            (done.fields_made_anew, "fields have lost their names"),
        ] {
            if count > 0 {
                problem(format!("{count} {lost}"));
            }
        }
        if done.has_lost_options {
            problem(
                "the options of the containers are lost: they have the default ones".to_owned(),
            );
        }
        Ok(())
    }

    /// Drops a table of containers with everything in it, and the series of the containers; returns whether it existed.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged page, a full disk.
    pub fn drop_containers(&mut self, name: &str) -> Result<bool> {
        match self.containers_if_exists(name)? {
            Some(mut containers) => containers.clear()?,
            None => return Ok(false),
        }
        self.drop_any_table(name)
    }

    /// Renames a table of containers, and the series of the containers; returns whether it existed.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; `InvalidName` if the new name is invalid, or taken by a table, or if a series
    /// has the name of one of the new series. A damaged page, a full disk.
    pub fn rename_containers(&mut self, from: &str, to: &str) -> Result<bool> {
        let Some(containers) = self.containers_if_exists(from)? else {
            return Ok(false);
        };
        if from == to {
            return Ok(true);
        }
        let mut names = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let view = containers.view()?;
            let infos = view.list("", after.as_deref(), 1_000)?;
            let Some(last) = infos.last() else { break };
            after = Some(last.name.clone());
            for info in &infos {
                names.push((series_of(from, &info.name)?, series_of(to, &info.name)?));
            }
        }
        self.rename_any_table(from, to)?;
        self.changing(|txn| {
            for (old, new) in &names {
                txn.rename_numbers(old, new)?;
            }
            Ok(())
        })?;
        Ok(true)
    }
}
