//! Opening tables of containers, in a snapshot or in a write transaction.

use crate::container::append::ContainersMut;
use crate::container::name::series_of;
use crate::container::read::Containers;
use crate::messages::open::other_options;
use crate::txn::pages::ReadSource;
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::table_types::TableLayout;
use tidalite_messages::{ContainerTableOptions, ContainersWriter, check_options};

const LAYOUT: TableLayout = TableLayout::Containers;

impl<S: ReadSource> Reading<S> {
    /// Opens the containers with this name; returns `None` if they do not exist.
    ///
    /// # Errors
    /// `WrongType` for another kind of table; a damaged or unreadable page.
    pub fn containers(&self, name: &str) -> Result<Option<Containers<'_>>> {
        let Some(found) = self.find_untyped(name, LAYOUT)? else {
            return Ok(None);
        };
        Containers::of(self.pages.view(), found, self.clock().now().0).map(Some)
    }
}

impl WriteTxn {
    /// Opens a table of containers; creates it with the default options if it does not exist.
    ///
    /// A container has the messages of one source, such as a device, in the order of their times. A message is a
    /// document with any fields, as in JSON. Its numbers are also stored in a series of the container, so that every
    /// query of series can be used on them: the series of the container `pump 3` in the table `devices` is
    /// `devices{container="pump 3"}`.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::Timestamp;
    /// use tidalite::containers::{Append, Document};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut devices = tx.containers("devices")?;
    /// for (second, level) in [(0, 12.5), (1, 12.4)] {
    ///     let message = Document::from_json(&format!(r#"{{"battery": {level}, "state": "on"}}"#))?;
    ///     devices.append(&Append::new("pump 3", Timestamp::from_secs(second)?, &message))?;
    /// }
    /// tx.commit()?;
    ///
    /// let snap = db.begin_read()?;
    /// let devices = snap.containers("devices")?.ok_or("no containers")?;
    /// assert_eq!(devices.container("pump 3")?.ok_or("no container")?.messages, 2);
    /// let latest = devices.latest_of("pump 3", &["battery"])?;
    /// assert_eq!(latest[0].as_ref().ok_or("no value")?.value, 12.4.into());
    /// let series = snap.series(r#"devices{container="pump 3"}"#)?.ok_or("no series")?;
    /// assert_eq!(series.query(..).aggregate("battery")?.max(), Some((12.5, 0)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidName` for an empty or too long name; `WrongType` for another kind of table; `Broken`; errors of the
    /// file.
    pub fn containers(&mut self, name: &str) -> Result<ContainersMut<'_>> {
        self.open_containers(name, None)
    }

    /// Opens a table of containers; creates it with these options if it does not exist.
    ///
    /// # Errors
    /// As for [`containers`](Self::containers); `InvalidInput` for options that cannot be used; `WrongType` if the
    /// table exists and has other options.
    pub fn containers_with(
        &mut self,
        name: &str,
        options: &ContainerTableOptions,
    ) -> Result<ContainersMut<'_>> {
        self.open_containers(name, Some(options))
    }

    /// Opens an existing table of containers for changes; returns `None`, and creates nothing, if it does not exist.
    ///
    /// # Errors
    /// As for [`containers`](Self::containers).
    pub fn containers_if_exists(&mut self, name: &str) -> Result<Option<ContainersMut<'_>>> {
        let index = self.open_untyped(name, LAYOUT)?;
        Ok(index.map(|index| ContainersMut::new(self, index)))
    }

    fn open_containers(
        &mut self,
        name: &str,
        asked: Option<&ContainerTableOptions>,
    ) -> Result<ContainersMut<'_>> {
        let Some(index) = self.open_untyped(name, LAYOUT)? else {
            // The table name must fit into the names of the containers' series.
            series_of(name, "c")?;
            let options = asked.cloned().unwrap_or_default();
            check_options(options.problem())?;
            let index = self.create_untyped(name, LAYOUT, |tree, pages| {
                ContainersWriter::create(tree, pages, options).map(drop)
            })?;
            return Ok(ContainersMut::new(self, index));
        };
        let containers = ContainersMut::new(self, index);
        if let Some(asked) = asked {
            let stored = containers.options()?;
            if stored != *asked {
                return Err(other_options(name, &stored, asked));
            }
        }
        Ok(containers)
    }
}
