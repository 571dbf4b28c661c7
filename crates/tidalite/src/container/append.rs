//! `ContainersMut`: a table of containers in a write transaction, and appending messages to it.

use crate::container::read::Containers;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use tidalite_messages::{
    Append, AppendOutcome, Appended, ContainerTableOptions, ContainersReader, ContainersWriter,
};
use tidalite_pager::WriteTxn as PagesMut;

/// A table of containers in a write transaction, for changes. [`WriteTxn::containers`](crate::WriteTxn::containers)
/// opens it.
///
/// Each call changes the messages, the latest values and the rows of the containers' series together.
pub struct ContainersMut<'t> {
    pub(super) txn: &'t mut WriteTxn,
    pub(super) index: usize,
}

impl<'t> ContainersMut<'t> {
    pub(super) fn new(txn: &'t mut WriteTxn, index: usize) -> Self {
        Self { txn, index }
    }

    /// Runs `change` on the messages, then `follow`, which changes the rows of series accordingly; `follow` gets the
    /// result of `change`. Once the messages have changed, an error breaks the transaction.
    pub(super) fn change<T, U>(
        &mut self,
        change: impl FnOnce(&mut ContainersWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
        follow: impl FnOnce(&mut ContainersMut<'_>, T) -> Result<U>,
    ) -> Result<U> {
        let (now, index) = (self.txn.now_ns(), self.index);
        let changed = self.txn.change_table(index, |tree, pages| {
            change(&mut ContainersWriter::open(tree, pages)?, now)
        })?;
        self.txn
            .changing_containers(|txn| follow(&mut ContainersMut { txn, index }, changed))
    }

    /// Runs a change that affects no rows in series.
    pub(super) fn change_only<T>(
        &mut self,
        change: impl FnOnce(&mut ContainersWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.change(change, |_, done| Ok(done))
    }

    pub(super) fn reader(&self) -> Result<ContainersReader<&PagesMut>> {
        let (tree, pages) = self.txn.table_tree(self.index)?;
        Ok(ContainersReader::open(tree, pages)?)
    }

    /// The options of the table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn options(&self) -> Result<ContainerTableOptions> {
        Ok(self.reader()?.options().clone())
    }

    /// A view of the containers in their current state, for reading.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn view(&self) -> Result<Containers<'_>> {
        self.txn.check_usable()?;
        let found = Found::open(&self.txn.tables[self.index]);
        Containers::of(self.txn.pages_view(), found, self.txn.now_ns())
    }

    pub(super) fn table_name(&self) -> String {
        self.txn.table_name(self.index).to_owned()
    }

    /// Appends one message: see [`append_batch`](Self::append_batch).
    ///
    /// # Errors
    /// As for `append_batch`.
    pub fn append(&mut self, message: &Append<'_>) -> Result<AppendOutcome> {
        let mut appended = self.append_batch(std::slice::from_ref(message))?;
        Ok(appended.outcomes.remove(0))
    }

    /// Appends messages to their containers, in any order of times. The options of a container determine the treatment
    /// of a message whose time is already taken, and of the oldest messages of a full container; the result reports it
    /// for each message. The first message of a container creates it, if the options of the table permit it.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit), `InvalidInput` and `InvalidName` for a document or a name that cannot be
    /// stored, `AlreadyExists` if a series has the name of the series of a new container, and `Schema` if it is not a
    /// series of a container: nothing has changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Sorts the messages by container and time. A message that is later than all stored ones of its container needs no
    /// lookup. Many messages in one call cost much less than one call for each.
    pub fn append_batch(&mut self, messages: &[Append<'_>]) -> Result<Appended> {
        let groups = self.series_of_messages(messages)?;
        self.change(
            |containers, now| {
                containers.append_changes(now, messages, &|new| !groups.has_series(new))
            },
            |containers, changes| {
                containers.follow_appended(messages, &groups, &changes)?;
                Ok(changes.appended)
            },
        )
    }
}
