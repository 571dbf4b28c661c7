//! Appending messages to containers.

use crate::container::name::series_of;
use crate::container::read::Containers;
use crate::tables::open_write::Found;
use crate::txn::write::WriteTxn;
use crate::types::error::Result;
use std::borrow::Cow;
use std::collections::BTreeMap;
use tidalite_messages::{
    Append, AppendOutcome, Appended, ContainerOptions, ContainerTableOptions, ContainersReader,
    ContainersWriter, Document, FieldNames, MessageQuery, decode_document,
};
use tidalite_pager::WriteTxn as PagesMut;

/// Number of messages whose rows are made at a time.
const ROWS_AT_ONCE: u64 = 10_000;

/// A table of containers in a write transaction, for changes. [`WriteTxn::containers`](crate::WriteTxn::containers) opens it.
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

    /// Changes the messages, and then the rows of series with what the change returned. Once the messages have changed, an
    /// error breaks the transaction.
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
            .changing(|txn| follow(&mut ContainersMut { txn, index }, changed))
    }

    /// Changes only what has no rows in series.
    pub(super) fn change_only<T>(
        &mut self,
        change: impl FnOnce(&mut ContainersWriter<'_, PagesMut>, i64) -> tidalite_pager::Result<T>,
    ) -> Result<T> {
        self.change(change, |_, done| Ok(done))
    }

    fn reader(&self) -> Result<ContainersReader<&PagesMut>> {
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

    /// Appends messages to their containers, in any order of times. The options of a container tell what becomes of a
    /// message with the time of an earlier one, and of the oldest messages of a full container; the result tells it for each
    /// message. The first message of a container creates it, if the options of the table permit it.
    ///
    /// # Errors
    /// [`Limit`](crate::ErrorKind::Limit), `Unsupported` and `InvalidName` for a document or a name that cannot be stored, and
    /// `Schema` if there is a series with the name of the container's one and a unit other than nanoseconds: nothing has
    /// changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Sorts the messages by container and time. A message that is later than all of its container needs no lookup. Many
    /// messages in one call cost much less than one call for each.
    pub fn append_batch(&mut self, messages: &[Append<'_>]) -> Result<Appended> {
        let table = self.table_name();
        let mut last = None;
        for message in messages {
            if last.replace(message.container) != Some(message.container) {
                self.check_series(&table, message.container)?;
            }
        }
        self.change(
            |containers, now| containers.append_batch(now, messages),
            |containers, appended| {
                containers.insert_appended(messages, &appended)?;
                containers.remove_gone(&appended)?;
                Ok(appended)
            },
        )
    }

    /// Checks that a container can have a series: its name fits, and a series of this name has the unit of containers.
    pub(super) fn check_series(&self, table: &str, container: &str) -> Result<()> {
        let name = series_of(table, container)?;
        self.txn.check_name_fits(&name)?;
        self.txn.check_unit(&name)
    }

    /// Makes the rows of the messages that were stored.
    fn insert_appended(&mut self, messages: &[Append<'_>], appended: &Appended) -> Result<()> {
        let mut order: Vec<usize> = (0..messages.len()).collect();
        // A stable sort: messages of one time stay in the order in which they were stored.
        order.sort_by(|a, b| messages[*a].container.cmp(messages[*b].container));
        let table = self.table_name();
        let mut names: Option<FieldNames> = None;
        for group in order.chunk_by(|a, b| messages[*a].container == messages[*b].container) {
            let container = messages[group[0]].container;
            let mut documents: Vec<(i64, Cow<'_, Document>)> = Vec::with_capacity(group.len());
            let mut emptied = Vec::new();
            for &at in group {
                let message = &messages[at];
                let (document, replaces) = match &appended.outcomes[at] {
                    AppendOutcome::Stored { .. } => (Cow::Borrowed(message.document), false),
                    AppendOutcome::Replaced { .. } => (Cow::Borrowed(message.document), true),
                    AppendOutcome::Merged { document, .. } => {
                        let names = match &names {
                            Some(names) => names,
                            None => names.insert(self.reader()?.field_names()?),
                        };
                        let document = decode_document(document, &|number| names.get(number))?;
                        (Cow::Owned(document), true)
                    }
                    _ => continue,
                };
                if replaces && document.numbers().next().is_none() {
                    emptied.push(message.time);
                }
                documents.push((message.time, document));
            }
            if documents.is_empty() {
                continue;
            }
            let name = series_of(&table, container)?;
            let rule = self.container_options(container)?.on_duplicate;
            let lent: Vec<(i64, &Document)> = documents
                .iter()
                .map(|(time, document)| (*time, &**document))
                .collect();
            self.txn.insert_numbers(&name, rule, &lent)?;
            for time in emptied {
                // The message of this time has no numbers any more, but may have got some later in the batch.
                self.remake(container, (time, time))?;
            }
        }
        Ok(())
    }

    /// Removes the rows of messages that the table has removed by itself.
    fn remove_gone(&mut self, appended: &Appended) -> Result<()> {
        let mut spans: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        for removed in appended.expired.iter().chain(&appended.rotated) {
            let key = removed.message.key;
            let span = spans.entry(key.container).or_insert((key.time, key.time));
            *span = (span.0.min(key.time), span.1.max(key.time));
        }
        for (number, span) in spans {
            let name = self.reader()?.container_name(number)?;
            if let Some(name) = name {
                self.remake(&name, span)?;
            }
        }
        Ok(())
    }

    pub(super) fn container_options(&self, container: &str) -> Result<ContainerOptions> {
        let reader = self.reader()?;
        let own = reader.container(container)?.map(|info| info.options);
        Ok(own.unwrap_or_else(|| reader.options().defaults.clone()))
    }

    /// Makes the rows of the messages of a container from a time to another, both inclusive, anew.
    pub(super) fn remake(&mut self, container: &str, (from, to): (i64, i64)) -> Result<()> {
        let name = series_of(&self.table_name(), container)?;
        self.txn.remove_numbers(&name, (from, to))?;
        let rule = self.container_options(container)?.on_duplicate;
        let mut query = MessageQuery {
            from,
            to,
            limit: ROWS_AT_ONCE,
            ..MessageQuery::default()
        };
        loop {
            let (documents, last) = {
                let reader = self.reader()?;
                let names = reader.field_names()?;
                let mut documents = Vec::new();
                let mut last = None;
                // Messages that have expired but are not removed yet have rows, too.
                let mut found = reader.messages(container, &query, i64::MIN)?;
                while let Some(message) = found.next()? {
                    let document = decode_document(message.document, &|number| names.get(number))?;
                    documents.push((message.key.time, document));
                    last = Some(tidalite_messages::MessageToken::behind(message.key));
                }
                (documents, last)
            };
            if documents.is_empty() {
                return Ok(());
            }
            let lent: Vec<(i64, &Document)> = documents
                .iter()
                .map(|(time, document)| (*time, document))
                .collect();
            self.txn.insert_numbers(&name, rule, &lent)?;
            query.after = last;
        }
    }
}
