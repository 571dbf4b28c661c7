//! Keeps the rows of a container's series in step with its messages.
//!
//! A newly stored message adds a row. After every other change, the rows of the affected times are removed and created
//! again from the messages.

use crate::container::append::ContainersMut;
use crate::container::name::series_of;
use crate::container::rows::NumberSeries;
use crate::types::error::Result;
use crate::types::merge_policy::time_rows_max;
use std::collections::{BTreeMap, BTreeSet};
use tidalite_messages::{
    Append, AppendChanges, AppendOutcome, Appended, Document, FieldNames, MessageQuery,
    MessageToken,
};
use tidalite_time::Timestamp;

/// Number of messages whose rows are created at a time.
const ROWS_AT_ONCE: u64 = 10_000;

/// A range of times, both ends inclusive.
pub(super) type Span = (i64, i64);

/// Joins times to spans: neighbours that are at most `gap` nanoseconds apart are in one span.
pub(super) fn spans_of(times: impl IntoIterator<Item = i64>, gap: i64) -> Vec<Span> {
    let times: BTreeSet<i64> = times.into_iter().collect();
    let mut spans: Vec<Span> = Vec::new();
    for time in times {
        match spans.last_mut() {
            Some((_, to)) if time.saturating_sub(*to) <= gap => *to = time,
            _ => spans.push((time, time)),
        }
    }
    spans
}

/// The messages of one call, grouped by container.
pub(super) struct Groups<'m> {
    /// Indexes of the messages: by container, and within a container in the order of the call.
    order: Vec<usize>,
    /// The containers, by name.
    groups: Vec<Group<'m>>,
}

/// The messages of one call for a container.
struct Group<'m> {
    container: &'m str,
    series: NumberSeries,
    /// Number of the container's messages.
    len: usize,
}

impl Groups<'_> {
    /// Whether the series of a container exists.
    pub(super) fn has_series(&self, container: &str) -> bool {
        let found = self
            .groups
            .binary_search_by(|group| group.container.cmp(container));
        found.is_ok_and(|at| self.groups[at].series.exists())
    }
}

/// Some messages in order, and the position of the messages that follow.
struct Page {
    documents: Vec<(i64, Document)>,
    next: Option<MessageQuery>,
}

impl ContainersMut<'_> {
    /// Groups messages by container, and finds the series of each container.
    pub(super) fn series_of_messages<'m>(&self, messages: &[Append<'m>]) -> Result<Groups<'m>> {
        let mut order: Vec<usize> = (0..messages.len()).collect();
        // A stable sort: messages of one time stay in the order in which they were stored.
        order.sort_by(|a, b| messages[*a].container.cmp(messages[*b].container));
        let table = self.table_name();
        let groups = order.chunk_by(|a, b| messages[*a].container == messages[*b].container);
        let groups = groups.map(|group| {
            let container = messages[group[0]].container;
            Ok(Group {
                container,
                series: self.txn.check_numbers(series_of(&table, container)?)?,
                len: group.len(),
            })
        });
        let groups = groups.collect::<Result<_>>()?;
        Ok(Groups { order, groups })
    }

    /// Creates the rows of messages that were appended.
    pub(super) fn follow_appended(
        &mut self,
        messages: &[Append<'_>],
        Groups { order, groups }: &Groups<'_>,
        changes: &AppendChanges<'_>,
    ) -> Result<()> {
        let appended = &changes.appended;
        let mut newest = changes.newest_before.iter().peekable();
        let mut rest = &order[..];
        for group in groups {
            let (own, others) = rest.split_at(group.len);
            rest = others;
            let mut changed = BTreeSet::new();
            for &at in own {
                if let AppendOutcome::Replaced { .. } | AppendOutcome::Merged { .. } =
                    &appended.outcomes[at]
                {
                    changed.insert(messages[at].time.0);
                }
            }
            let stored = own.iter().filter(|at| {
                let is_stored = matches!(appended.outcomes[**at], AppendOutcome::Stored { .. });
                is_stored && !changed.contains(&messages[**at].time.0)
            });
            let stored: Vec<(i64, &Document)> = stored
                .map(|at| (messages[*at].time.0, messages[*at].document))
                .collect();
            // Both lists are sorted by name.
            while newest
                .next_if(|(name, _)| *name < group.container)
                .is_some()
            {}
            let before = newest.next_if(|(name, _)| *name == group.container);
            if let Some(&(_, before)) = before
                && !stored.is_empty()
            {
                self.txn
                    .insert_numbers(&group.series, Some(before), &stored)?;
            }
            for time in changed {
                self.remake(group.container, (time, time))?;
            }
        }
        self.remove_gone(appended)
    }

    /// Removes the rows of messages that the table has removed by itself, by expiry or rotation.
    fn remove_gone(&mut self, appended: &Appended) -> Result<()> {
        // The oldest messages are gone. Only protected messages remain between them.
        let mut spans: BTreeMap<u32, Span> = BTreeMap::new();
        for removed in appended.expired.iter().chain(&appended.rotated) {
            let key = removed.message.key;
            let time = key.time.0;
            let span = spans.entry(key.container).or_insert((time, time));
            *span = (span.0.min(time), span.1.max(time));
        }
        for (number, span) in spans {
            if let Some(name) = self.reader()?.container_name(number)? {
                self.remake(&name, span)?;
            }
        }
        Ok(())
    }

    /// Removes the rows in a span of times and creates them again from the messages.
    pub(super) fn remake(&mut self, container: &str, (from, to): Span) -> Result<()> {
        let name = series_of(&self.table_name(), container)?;
        let mut series = self.txn.check_numbers(name.clone())?;
        self.txn.remove_numbers(&series, (from, to))?;
        let mut names = None;
        let mut query = Some(MessageQuery {
            from: Timestamp(from),
            to: Timestamp(to),
            ..MessageQuery::default()
        });
        while let Some(wanted) = query {
            let page = self.messages_of(container, wanted, &mut names)?;
            if !series.exists() {
                series = self.txn.check_numbers(name.clone())?;
            }
            self.txn
                .insert_numbers(&series, None, &lent(&page.documents))?;
            query = page.next;
        }
        Ok(())
    }

    /// Reads messages of a container, including expired ones that are not removed yet. If a time has more messages than
    /// a series can have rows, only the first of its messages are read.
    fn messages_of(
        &self,
        container: &str,
        mut query: MessageQuery,
        names: &mut Option<FieldNames>,
    ) -> Result<Page> {
        query.limit = ROWS_AT_ONCE;
        let most = time_rows_max(1);
        let reader = self.reader()?;
        let mut documents: Vec<(i64, Document)> = Vec::new();
        let mut of_time = 0;
        let mut found = reader.messages(container, &query, i64::MIN)?;
        while let Some(message) = found.next()? {
            let names = match &*names {
                Some(names) => names,
                None => names.insert(reader.field_names()?),
            };
            let time = message.key.time.0;
            of_time = match documents.last() {
                Some((last, _)) if *last == time => of_time + 1,
                _ => 1,
            };
            if of_time > most {
                // Further messages of this time have no rows.
                query.from = Timestamp(time.saturating_add(1));
                query.after = None;
                let next = (time < query.to.0).then_some(query);
                return Ok(Page { documents, next });
            }
            query.after = Some(MessageToken::behind(message.key));
            let document = names.decode(message.document)?;
            documents.push((time, document));
        }
        let is_full = documents.len() as u64 >= ROWS_AT_ONCE;
        Ok(Page {
            documents,
            next: is_full.then_some(query),
        })
    }
}

fn lent(documents: &[(i64, Document)]) -> Vec<(i64, &Document)> {
    let documents = documents.iter();
    documents
        .map(|(time, document)| (*time, document))
        .collect()
}
