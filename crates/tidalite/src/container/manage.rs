//! Creating, renaming, dropping and maintaining containers.

use crate::container::append::ContainersMut;
use crate::container::name::series_of;
use crate::container::rows::holds_numbers;
use crate::txn::write::WriteTxn;
use crate::types::column::Column;
use crate::types::error::cause::Cause;
use crate::types::error::{Error, Result};
use tidalite_messages::{
    ContainerOptions, ContainerTableOptions, ContainersMaintenance, ContainersRecovery,
    ContainersWriter, DroppedContainer,
};
use tidalite_pager::{Error as FileError, Refusal};
use tidalite_time::Timestamp;

const EVER: (i64, i64) = (i64::MIN, i64::MAX);

impl ContainersMut<'_> {
    /// Changes the options of the table. New default options also apply to messages that are already stored:
    /// [`maintain`](Self::maintain) removes messages that are expired or exceed a maximum under the new options.
    ///
    /// # Errors
    /// `InvalidInput` for options that cannot be used; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads the records of all containers.
    pub fn set_table_options(&mut self, options: &ContainerTableOptions) -> Result<()> {
        self.change_only(|containers, _| containers.set_table_options(options.clone()))
    }

    fn check_new_series(&self, container: &str) -> Result<()> {
        let name = series_of(&self.table_name(), container)?;
        self.txn.check_new_numbers(&name)
    }

    /// Creates columns in the series of a container before numbers arrive for them, with types of your choice, such as
    /// decimals or integers. A column has the path of its field as its name, and must be nullable. Without this call, a
    /// new column has the type float, or integer if its first number is an integer beyond 2^53.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `Schema` for a column that exists, is not nullable or holds no
    /// numbers, and for too many columns. A damaged page, a full disk.
    pub fn add_columns(&mut self, container: &str, columns: &[Column]) -> Result<()> {
        if self.reader()?.container(container)?.is_none() {
            let found = format!("the container {container:?}, which does not exist");
            let expected = "the name of a container";
            return Err(FileError::refused(Refusal::NotFound, found, expected).into());
        }
        if let Some(column) = columns.iter().find(|column| column.null().is_none()) {
            return Err(Error::from(Cause::Schema {
                problem: format!("column {} of a container must be nullable", column.name),
            }));
        }
        if let Some(column) = columns.iter().find(|column| !holds_numbers(column)) {
            return Err(Error::from(Cause::Schema {
                problem: format!(
                    "column {} of a container must hold numbers, not {}",
                    column.name,
                    column.ty.name()
                ),
            }));
        }
        let name = series_of(&self.table_name(), container)?;
        self.txn
            .as_container(|txn| txn.add_number_columns(&name, columns))
    }

    /// Creates a container with options of its own, or with the default options of the table. Returns its number.
    ///
    /// # Errors
    /// `AlreadyExists` for a name that a container has; `InvalidName` for one that cannot be used; `InvalidInput` for
    /// options that cannot be used; `Limit` for a long name and too many containers; `AlreadyExists` if a series has
    /// the name of the container's series. A damaged page, a full disk.
    pub fn create_container(
        &mut self,
        name: &str,
        options: Option<&ContainerOptions>,
    ) -> Result<u32> {
        self.check_new_series(name)?;
        self.change_only(|containers, now| containers.create_container(now, name, options.cloned()))
    }

    /// Changes the options of a container; `None` selects the default options of the table. They also apply to messages
    /// that are already stored, except the rule for equal times, which applies to later messages only.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `InvalidInput` for options that cannot be used; a damaged page,
    /// a full disk.
    pub fn set_options(&mut self, name: &str, options: Option<&ContainerOptions>) -> Result<()> {
        self.change_only(|containers, _| containers.set_options(name, options.cloned()))
    }

    /// Renames a container and its series.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `AlreadyExists` for a new name that a container or a series has;
    /// `InvalidName` for one that cannot be used. A damaged page, a full disk.
    pub fn rename_container(&mut self, name: &str, new_name: &str) -> Result<()> {
        let table = self.table_name();
        let (from, to) = (series_of(&table, name)?, series_of(&table, new_name)?);
        self.check_new_series(new_name)?;
        self.change(
            |containers, _| containers.rename(name, new_name),
            |containers, ()| containers.txn.rename_numbers(&from, &to),
        )
    }

    /// Drops a container with its messages and its series. It can be restored for as long as its options keep deleted
    /// messages.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    pub fn drop_container(&mut self, name: &str) -> Result<DroppedContainer> {
        self.txn.free_space();
        // If the name is too long for a series, the container has no series.
        let series = series_of(&self.table_name(), name).ok();
        self.change(
            |containers, now| containers.drop_container(now, name),
            |containers, dropped| {
                if let Some(series) = series {
                    containers.txn.remove_all_numbers(&series)?;
                }
                Ok(dropped)
            },
        )
    }

    /// Restores the container with this name that was dropped last, under the same name or another one. If several were
    /// dropped at the same time, the one with the greatest number is restored. Returns its number.
    ///
    /// # Errors
    /// `NotFound` if no dropped container of this name can be restored; `AlreadyExists` for a new name that a container
    /// or a series has; `InvalidName` for one that cannot be used; a damaged page, a full disk.
    ///
    /// # Cost
    /// Creates the rows of its series from all of its messages.
    pub fn restore_container(&mut self, name: &str, new_name: &str) -> Result<u32> {
        self.check_new_series(new_name)?;
        self.change(
            |containers, now| containers.restore_container(now, name, new_name),
            |containers, number| {
                containers.remake(new_name, EVER)?;
                Ok(number)
            },
        )
    }

    /// Does a bounded step of maintenance: removes messages that have expired or exceed a maximum, deleted messages
    /// that can no longer be restored, and old idempotency keys. Reads about `limit` rows. Call it from time to time,
    /// repeatedly until nothing is left to do; [`Database::maintain`](crate::Database::maintain) does this for all tables.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    pub fn maintain(&mut self, limit: u64) -> Result<ContainersMaintenance> {
        self.maintain_at(Timestamp(self.txn.now_ns()), limit)
    }

    pub(crate) fn maintain_at(
        &mut self,
        now: Timestamp,
        limit: u64,
    ) -> Result<ContainersMaintenance> {
        self.txn.free_space();
        self.change(
            |containers, _| containers.maintain(now.0, limit, &mut |_| Ok(())),
            |containers, done| {
                for span in &done.removed {
                    containers.remake(&span.name, (span.from.0, span.to.0))?;
                }
                Ok(done)
            },
        )
    }

    /// Drops all containers for good, with their messages and their series. The table remains, without containers.
    ///
    /// # Errors
    /// A damaged page, a full disk.
    ///
    /// # Cost
    /// As much as removing each series.
    pub fn clear(&mut self) -> Result<()> {
        let options = self.options()?;
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
                self.drop_container(&name)?;
            }
        }
        self.txn.change_table(self.index, |tree, pages| {
            tree.clear(pages)?;
            ContainersWriter::create(tree, pages, options).map(drop)
        })
    }

    /// Rebuilds the containers of a table that may have lost parts.
    fn recover(&mut self) -> Result<ContainersRecovery> {
        let now = self.txn.now_ns();
        self.txn.change_table(self.index, |tree, pages| {
            ContainersWriter::recover(tree, pages, now).map(|(_, recovery)| recovery)
        })
    }

    /// Creates the rows of the series of all containers again from their messages. If a series has columns that hold no
    /// numbers, it is replaced by a series without these columns. [`Database::check`](crate::Database::check) detects
    /// whether this is needed.
    ///
    /// # Errors
    /// `Schema` if a series with the name of a container's series is not a series of a container; a damaged page, a
    /// full disk.
    ///
    /// # Cost
    /// Reads all messages.
    pub fn rebuild_series(&mut self) -> Result<()> {
        self.each_container(&mut |containers, name| containers.rebuild_series_of(name))
    }

    /// Creates the rows of the series of a container again from its messages.
    pub(super) fn rebuild_series_of(&mut self, container: &str) -> Result<()> {
        let series = series_of(&self.table_name(), container)?;
        self.txn.check_numbers(series.clone())?;
        self.change(
            |_, _| Ok(()),
            |containers, ()| {
                containers.txn.keep_columns_of_numbers(&series)?;
                containers.remake(container, EVER)
            },
        )
    }

    fn each_container(
        &mut self,
        each: &mut dyn FnMut(&mut Self, &str) -> Result<()>,
    ) -> Result<()> {
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
            for name in &names {
                each(self, name)?;
            }
        }
    }
}

impl WriteTxn {
    /// Rebuilds the derived rows of a table of containers. Passes a description of each loss to `problem`.
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

    /// Drops a table of containers with its contents and the series of the containers; returns whether it existed.
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
    /// `WrongType` for another kind of table; `InvalidName` if the new name is invalid, or taken by a table, or if a
    /// series has the name of one of the new series. A damaged page, a full disk.
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
        for (_, new) in &names {
            self.check_new_numbers(new)?;
        }
        self.rename_any_table(from, to)?;
        self.changing_containers(|txn| {
            for (old, new) in &names {
                txn.rename_numbers(old, new)?;
            }
            Ok(())
        })?;
        Ok(true)
    }
}
