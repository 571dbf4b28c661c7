//! Containers, for reading.

use crate::catalog::table_name::Named;
use crate::container::found::{Fields, Filter, FoundMessage, Message, Names};
use crate::container::name::series_of;
use crate::tables::open_write::Found;
use crate::txn::pages::Pages;
use crate::types::error::Result;
use std::ops::ControlFlow;
use tidalite_messages::{
    ContainerInfo, ContainerTableOptions, ContainersReader, ContainersStat, Deletion, Document,
    DroppedContainer, Expression, FieldNames, LatestValue, MessageQuery, MessageToken, Projection,
};
use tidalite_time::Timestamp;

/// A selection of messages of a container and of their fields.
#[derive(Clone, Debug, Default)]
pub struct Select {
    /// Range of times, direction, maximum number of messages, and position at which to begin.
    pub query: MessageQuery,
    /// Selects only messages for which this expression is true.
    pub filter: Option<Expression>,
    /// Selects only these fields.
    pub fields: Option<Projection>,
}

/// A page of messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<Message>,
    /// The position at which the next page begins; `None` at the end.
    pub next: Option<MessageToken>,
}

/// A table of containers, in a snapshot or in the current state of a write transaction.
///
/// Messages that had expired when the view was opened are not found.
pub struct Containers<'a> {
    pub(super) reader: ContainersReader<Pages<'a>>,
    named: Named<'a>,
    now: i64,
    names: Names,
}

impl<'a> Containers<'a> {
    pub(super) fn of(pages: Pages<'a>, found: Found<'a>, now: i64) -> Result<Self> {
        Ok(Self {
            reader: ContainersReader::open(&found.tree, pages)?,
            named: found.named,
            now,
            names: Names::default(),
        })
    }

    /// Name of the table.
    #[must_use]
    pub fn name(&self) -> &str {
        self.named.as_str()
    }

    /// Whether `maintain` has work at the time `now`.
    pub(crate) fn is_maintenance_due(&self, now: Timestamp) -> Result<bool> {
        Ok(self.reader.is_maintenance_due(now.0)?)
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &ContainerTableOptions {
        self.reader.options()
    }

    /// Totals of the table.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn stat(&self) -> Result<ContainersStat> {
        Ok(self.reader.stat()?)
    }

    /// Name of the series that holds the numbers of a container. The series exists once a message has had a number.
    ///
    /// # Errors
    /// `InvalidName` for a name that is too long.
    pub fn series_name(&self, container: &str) -> Result<String> {
        Ok(series_of(self.name(), container)?.to_string())
    }

    /// Lists containers whose names begin with `prefix` and follow the name `after`, in order; at most `limit`.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ContainerInfo>> {
        Ok(self.reader.list(prefix, after, limit)?)
    }

    /// Options and totals of a container; `None` if it does not exist.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn container(&self, name: &str) -> Result<Option<ContainerInfo>> {
        Ok(self.reader.container(name)?)
    }

    /// Lists dropped containers that can still be restored.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn dropped(
        &self,
        prefix: &str,
        after: Option<(&str, u32)>,
        limit: usize,
    ) -> Result<Vec<DroppedContainer>> {
        Ok(self.reader.dropped(prefix, self.now, after, limit)?)
    }

    /// Lists deletions of messages of a container that can still be restored, newest first.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged or unreadable page.
    pub fn deletions(
        &self,
        container: &str,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<Deletion>> {
        Ok(self.reader.deletions(container, self.now, before, limit)?)
    }

    /// The names of all fields that messages of the table have had.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn field_names(&self) -> Result<&FieldNames> {
        self.names.get(&self.reader)
    }

    /// The messages of a container with this time, in the order of their arrival.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn get(&self, container: &str, time: Timestamp) -> Result<Vec<Document>> {
        let names = self.field_names()?;
        let found = self.reader.get(container, time.0, self.now)?;
        let documents = found.iter().map(|message| names.decode(&message.document));
        Ok(documents.collect::<tidalite_pager::Result<_>>()?)
    }

    /// The latest value of each field of a container, with its time.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    ///
    /// # Cost
    /// Reads one row.
    pub fn latest(&self, container: &str) -> Result<Vec<LatestValue>> {
        Ok(self.reader.latest(container)?)
    }

    /// The latest values of these fields of a container; `None` for a field that no message has had.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn latest_of(&self, container: &str, fields: &[&str]) -> Result<Vec<Option<LatestValue>>> {
        Ok(self.reader.latest_of(container, fields)?)
    }

    /// Passes messages of a container to `each`, without decoding them, until it breaks. The limit of the query counts
    /// the messages that match the filter; `fields` of `select` have no effect. Returns the position at which a later
    /// query can continue, if `each` or the limit ended the query.
    ///
    /// # Errors
    /// `InvalidInput` for a token of another container and for operands of a filter that do not fit; a damaged or
    /// unreadable page; errors of `each`.
    ///
    /// # Cost
    /// One descent, then a step for each message. A filter decodes the fields that it names.
    pub fn each(
        &self,
        container: &str,
        select: &Select,
        each: &mut dyn FnMut(&FoundMessage<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<Option<MessageToken>> {
        let names = self.field_names()?;
        let filter = self.filter(select.filter.as_ref())?;
        let query = MessageQuery {
            limit: u64::MAX,
            ..select.query
        };
        let mut messages = self.reader.messages(container, &query, self.now)?;
        let mut left = select.query.limit;
        let mut last = select.query.after;
        while let Some(message) = messages.next()? {
            if left == 0 {
                return Ok(last);
            }
            if filter.as_ref().map_or(Ok(true), |f| f.matches(&message))? {
                left -= 1;
                last = Some(MessageToken::behind(message.key));
                if each(&FoundMessage::new(message, names))?.is_break() {
                    return Ok(last);
                }
            }
        }
        Ok(None)
    }

    /// One page of the messages of a container, with the fields that `select` selects.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use tidalite::Timestamp;
    /// use tidalite::containers::{Append, Document, Expression, MessageQuery, Projection, Select};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut cars = tx.containers("cars")?;
    /// for second in 0..100 {
    ///     let message = format!(r#"{{"speed": {second}, "gear": {}}}"#, second / 20);
    ///     cars.append(&Append::new("red", Timestamp::from_secs(second)?, &Document::from_json(&message)?))?;
    /// }
    /// let mut select = Select {
    ///     query: MessageQuery { from: Timestamp::from_secs(50)?, limit: 10, ..MessageQuery::default() },
    ///     filter: Some(Expression::parse("gear >= 3 && speed % 2 == 0")?),
    ///     fields: Some(Projection::new(&["speed"])?),
    /// };
    /// let cars = cars.view()?;
    /// let page = cars.page("red", &select)?;
    /// assert_eq!(page.messages.len(), 10);
    /// assert_eq!(page.messages[0].document.to_json()?, r#"{"speed":60}"#);
    /// // The next page begins after the last message, however many have its time.
    /// select.query.after = page.next;
    /// assert_eq!(cars.page("red", &select)?.messages[0].time, Timestamp::from_secs(80)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As for [`each`](Self::each).
    pub fn page(&self, container: &str, select: &Select) -> Result<MessagePage> {
        let fields = Fields::new(select.fields.as_ref(), &self.numbers()?);
        let mut messages = Vec::new();
        let next = self.each(container, select, &mut |found| {
            messages.push(fields.of(found)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(MessagePage { messages, next })
    }

    /// Passes messages of several containers to `each` in the order of their times, with the name of their container,
    /// until it breaks.
    ///
    /// # Errors
    /// As for [`each`](Self::each), without tokens: `after` of the query must be `None`.
    ///
    /// # Cost
    /// A cursor for each container.
    pub fn each_merged(
        &self,
        containers: &[&str],
        select: &Select,
        each: &mut dyn FnMut(&FoundMessage<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<Option<MessageToken>> {
        let names = self.field_names()?;
        let filter = self.filter(select.filter.as_ref())?;
        let query = MessageQuery {
            limit: u64::MAX,
            ..select.query
        };
        let mut messages = self.reader.merged_messages(containers, &query, self.now)?;
        let mut left = select.query.limit;
        let mut last = select.query.after;
        while let Some(message) = messages.next()? {
            if left == 0 {
                return Ok(last);
            }
            if filter.as_ref().map_or(Ok(true), |f| f.matches(&message))? {
                left -= 1;
                last = Some(MessageToken::behind(message.key));
                if each(&FoundMessage::new(message, names))?.is_break() {
                    return Ok(last);
                }
            }
        }
        Ok(None)
    }

    /// The name of the container with this number, which is part of the key of a message.
    ///
    /// # Errors
    /// A damaged or unreadable page.
    pub fn container_name(&self, number: u32) -> Result<Option<String>> {
        Ok(self.reader.container_name(number)?)
    }

    pub(super) fn filter<'f>(&self, filter: Option<&'f Expression>) -> Result<Option<Filter<'f>>> {
        let Some(filter) = filter else {
            return Ok(None);
        };
        Ok(Some(Filter::new(filter, &self.numbers()?)))
    }

    /// Returns a function that looks up the number of a field's name.
    pub(super) fn numbers(&self) -> Result<impl Fn(&str) -> Option<u32> + '_> {
        let names = self.field_names()?;
        let numbers: std::collections::HashMap<&str, u32> = names
            .by_number()
            .into_iter()
            .map(|(number, name)| (name, number))
            .collect();
        Ok(move |name: &str| numbers.get(name).copied())
    }

    /// Checks every rule of the format for the rows of the table, and calls `problem` with each violation. The check of
    /// a database does the same with all tables, and also checks their pages.
    ///
    /// # Errors
    /// A damaged or unreadable page, rows that cannot be decoded.
    ///
    /// # Cost
    /// Reads the whole table.
    pub fn check(&self, problem: &mut dyn FnMut(&str)) -> Result<()> {
        Ok(self.reader.check(&mut |text| problem(&text))?)
    }
}
