//! Series of containers. Only their container changes them, because their rows follow from its messages.
//!
//! Such a series has the name of the table as metric and the name of the container as its only tag. Whether a series is
//! one is looked up when it is about to be changed: a container may be created, renamed or dropped meanwhile. A name
//! without this tag needs no lookup.

use crate::catalog::entries::SeriesInfo;
use crate::series::write::SeriesMut;
use crate::tables::open_write::Found;
use crate::txn::pages::{Pages, ReadSource};
use crate::txn::read::Reading;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use crate::types::name::SeriesName;
use crate::types::table_types::TableLayout;
use std::sync::Arc;
use tidalite_messages::ContainersReader;
use tidalite_pager::{Error as FileError, Refusal};

fn has_container(found: Option<Found<'_>>, pages: Pages<'_>, container: &str) -> Result<bool> {
    let is_containers = |found: &Found<'_>| {
        found
            .types
            .as_ref()
            .is_some_and(|types| types.layout() == TableLayout::Containers)
    };
    match found.filter(is_containers) {
        Some(found) => {
            let reader = ContainersReader::open(&found.tree, pages)?;
            Ok(reader.container(container)?.is_some())
        }
        None => Ok(false),
    }
}

impl WriteTxn {
    /// Checks that a series is not one of a container, unless the container itself changes it.
    ///
    /// # Errors
    /// `WrongType` for the series of a container; a damaged or unreadable page.
    pub(crate) fn expect_no_container(&self, name: Option<&SeriesName>) -> Result<()> {
        let Some(name) = name.filter(|_| !self.changes_containers) else {
            return Ok(());
        };
        let Some(container) = name.container() else {
            return Ok(());
        };
        if !has_container(self.find(name.metric())?, self.pages_view(), container)? {
            return Ok(());
        }
        let found =
            format!("a change of the series {name}, which follows the messages of a container");
        let expected = format!(
            "changes of the messages of container {container} in the table {}, by `WriteTxn::containers` or `tidalite container`",
            name.metric()
        );
        Err(FileError::refused(Refusal::WrongType, found, expected).into())
    }

    /// Runs a change of containers, which may change their series.
    pub(crate) fn changing_containers<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.changing(|txn| txn.as_container(change))
    }

    /// Runs a change of containers like `changing_containers`; an error does not break the transaction.
    pub(crate) fn as_container<T>(
        &mut self,
        change: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.changes_containers, true);
        let changed = change(self);
        self.changes_containers = before;
        changed
    }
}

impl SeriesMut<'_> {
    /// Checks that the series is not one of a container, as [`WriteTxn::expect_no_container`] does.
    pub(crate) fn expect_own_rows(&self) -> Result<()> {
        match self.has_name_of_container() {
            true => self.txn.expect_no_container(self.info().name.as_ref()),
            false => Ok(()),
        }
    }
}

impl<S: ReadSource> Reading<S> {
    /// The series that a pattern selects and that retention policies may shorten. Series of containers are left out:
    /// the options of the containers determine when messages are removed.
    pub(crate) fn list_for_policies(&self, pattern: &str) -> Result<Vec<Arc<SeriesInfo>>> {
        let mut listed = Vec::new();
        for info in self.list(pattern)? {
            let name = info.name.as_ref();
            let container = name.and_then(|name| Some((name.metric(), name.container()?)));
            let is_of_container = match container {
                Some((table, container)) => {
                    has_container(self.find(table)?, self.pages.view(), container)?
                }
                None => false,
            };
            if !is_of_container {
                listed.push(info);
            }
        }
        Ok(listed)
    }
}
