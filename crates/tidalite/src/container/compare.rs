//! Compares the series of containers with the messages, for the check of a database and after a salvage.
//!
//! Both sides are read once, in the order of time; the messages and rows of one time are in memory together.
//!
//! Not every number of a message has a place in the series, and in two cases the order of arrival decides which ones
//! have. In these cases the comparison is less strict:
//! 1. If a time has more rows than the series can have at one time, any of these rows may be missing. If a time has
//!    more messages than any series can have rows at one time, it is not compared.
//! 2. No column is added while a time has more rows than a series with that column could have. If a time has this many
//!    messages, rows and numbers may be missing at all times.

use crate::catalog::entries::SeriesInfo;
use crate::container::name::series_of;
use crate::container::rows::{Columns, holds_numbers, is_own, value_of};
use crate::series::read::Series;
use crate::txn::pages::{Pages, ReadSource};
use crate::txn::read::Reading;
use crate::types::error::Result;
use crate::types::merge_policy::time_rows_max;
use std::collections::BTreeMap;
use tidalite_base::limits::COLUMNS_MAX;
use tidalite_messages::{ContainersReader, Document, FieldNames, MessageCursor, MessageQuery};
use tidalite_pager::PageRead;
use tidalite_series::Scan;

/// Maximum number of differences of a container that are described; further ones are only counted.
const DESCRIBED_MAX: usize = 3;

/// Number of containers that are compared with one opened state of the database. The state keeps in memory the catalog
/// entries that it has read.
const CONTAINERS_AT_ONCE: usize = 1_000;

/// A difference between the messages of a container and its series.
pub(crate) struct Difference {
    /// Time of the message or row; `None` if the difference does not belong to a single time.
    pub(crate) time: Option<i64>,
    /// The column that differs; `None` if a whole row differs or columns are missing.
    pub(crate) column: Option<usize>,
    /// Whether the series contains something that no message has; if false, the series only lacks something.
    pub(crate) is_wrong: bool,
    pub(crate) problem: String,
}

impl Difference {
    fn wrong(time: Option<i64>, column: Option<usize>, problem: String) -> Self {
        Self {
            time,
            column,
            is_wrong: true,
            problem,
        }
    }

    fn lacking(time: Option<i64>, column: Option<usize>, problem: String) -> Self {
        Self {
            is_wrong: false,
            ..Self::wrong(time, column, problem)
        }
    }
}

/// The differences of a container. Only the first ones are described.
#[derive(Default)]
struct Differences {
    first: Vec<Difference>,
    count: u64,
}

impl Differences {
    fn add(&mut self, difference: impl FnOnce() -> Difference) {
        self.count += 1;
        if self.first.len() < DESCRIBED_MAX {
            self.first.push(difference());
        }
    }

    fn tell(self, what: &str, find: &mut dyn FnMut(Difference)) {
        let more = self.count.saturating_sub(self.first.len() as u64);
        self.first.into_iter().for_each(&mut *find);
        if more > 0 {
            find(Difference::lacking(
                None,
                None,
                format!("{more} more {what}"),
            ));
        }
    }
}

/// Compares the messages of each container of a table with the container's series. Passes each difference to `find`,
/// with the name of the container and the series; the series is `None` if it does not exist. `open` opens the state of
/// the database that contains the series. `read` is called with the number of bytes of rows that were read.
///
/// # Errors
/// A damaged or unreadable page, and errors of `open` and `read`.
///
/// # Cost
/// Reads all messages of the table and all rows of the series.
pub(crate) fn compare_table<R: PageRead, S: ReadSource>(
    (messages, table): (&ContainersReader<R>, &str),
    open: &mut dyn FnMut() -> Result<Reading<S>>,
    read: &mut dyn FnMut(u64) -> Result<()>,
    find: &mut dyn FnMut(&str, Option<&SeriesInfo>, Difference),
) -> Result<()> {
    let names = messages.field_names()?;
    let mut after: Option<String> = None;
    loop {
        let listed = messages.list("", after.as_deref(), CONTAINERS_AT_ONCE)?;
        let Some(last) = listed.last() else {
            return Ok(());
        };
        after = Some(last.name.clone());
        let state = open()?;
        for container in &listed {
            let container = &container.name;
            let series = state.series(&series_of(table, container)?.to_string())?;
            let info = series.as_ref().map(Series::info);
            compare(
                (messages, &names),
                container,
                series.as_ref(),
                read,
                &mut |difference| find(container, info, difference),
            )?;
        }
    }
}

/// Compares the messages of a container with its series.
fn compare<R: PageRead>(
    (messages, names): (&ContainersReader<R>, &FieldNames),
    container: &str,
    series: Option<&Series<'_>>,
    read: &mut dyn FnMut(u64) -> Result<()>,
    find: &mut dyn FnMut(Difference),
) -> Result<()> {
    let query = MessageQuery::default();
    let messages = Messages {
        cursor: messages.messages(container, &query, i64::MIN)?,
        names,
        next: None,
    };
    let Some(series) = series else {
        return without_series(messages, find);
    };
    let info = series.info();
    if !is_own(info) {
        find(Difference::wrong(
            None,
            None,
            "has another unit, merge policy or columns than the series of a container: rename it"
                .to_owned(),
        ));
        return Ok(());
    }
    for (i, column) in info.schema.columns.iter().enumerate() {
        if !holds_numbers(column) {
            find(Difference::wrong(
                None,
                Some(i),
                format!("has the type {}, which holds no numbers", column.ty.name()),
            ));
        }
    }
    let rows = Rows {
        scan: series.query(..).scan()?,
        columns: info.schema.columns.len(),
        times: Vec::new(),
        words: Vec::new(),
        at: 0,
    };
    Comparison {
        columns: Columns::new(&info.schema.columns),
        missing: BTreeMap::new(),
        most: 0,
        wrong: Differences::default(),
        lacking: Differences::default(),
    }
    .run(messages, rows, read, find)
}

/// Determines whether a container that has no series needs one.
fn without_series<R: PageRead>(
    mut messages: Messages<'_, R>,
    find: &mut dyn FnMut(Difference),
) -> Result<()> {
    let columns = Columns::new(&[]);
    while let Some((time, document)) = messages.next()? {
        let mut numbers = document.numbers();
        if let Some((name, number)) = numbers.find(|(name, _)| columns.has_room_for(name)) {
            find(Difference::lacking(
                Some(time),
                None,
                format!(
                    "does not exist, but a message has {name} = {}",
                    value_of(number)
                ),
            ));
            return Ok(());
        }
    }
    Ok(())
}

/// The messages of a container, in the order of time.
struct Messages<'r, R> {
    cursor: MessageCursor<'r, R>,
    names: &'r FieldNames,
    /// A message that was read ahead and has not been returned yet.
    next: Option<(i64, Document)>,
}

impl<R: PageRead> Messages<'_, R> {
    fn next(&mut self) -> Result<Option<(i64, Document)>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        let Some(message) = self.cursor.next()? else {
            return Ok(None);
        };
        let document = self.names.decode(message.document)?;
        Ok(Some((message.key.time.0, document)))
    }

    /// Time of the next message.
    fn peek(&mut self) -> Result<Option<i64>> {
        if self.next.is_none() {
            self.next = self.next()?;
        }
        Ok(self.next.as_ref().map(|(time, _)| *time))
    }

    /// Returns the next message if it has this time.
    fn next_at(&mut self, time: i64) -> Result<Option<Document>> {
        match self.peek()? == Some(time) {
            true => Ok(self.next.take().map(|(_, document)| document)),
            false => Ok(None),
        }
    }
}

/// The rows of a series, in the order of time.
struct Rows<'s> {
    scan: Scan<'s, Pages<'s>>,
    columns: usize,
    /// Times of the rows that were read last.
    times: Vec<i64>,
    words: Vec<Vec<u64>>,
    at: usize,
}

impl Rows<'_> {
    /// Time of the next row.
    fn peek(&mut self, read: &mut dyn FnMut(u64) -> Result<()>) -> Result<Option<i64>> {
        while self.at >= self.times.len() {
            let Some(vector) = self.scan.next()? else {
                return Ok(None);
            };
            self.times = vector.times().to_vec();
            let columns = 0..self.columns;
            self.words = columns
                .map(|column| vector.words(column).to_vec())
                .collect();
            self.at = 0;
            read((8 * (1 + self.columns) * self.times.len()) as u64)?;
        }
        Ok(self.times.get(self.at).copied())
    }

    /// Returns the words of the current row, and moves to the next one.
    fn take(&mut self) -> Vec<u64> {
        let at = self.at;
        self.at += 1;
        self.words.iter().map(|column| column[at]).collect()
    }
}

/// The state of a comparison.
struct Comparison<'s> {
    columns: Columns<'s>,
    /// Names of numbers that have no column although the series has room for one, each with the time of the first such
    /// message.
    missing: BTreeMap<String, i64>,
    /// The largest number of messages with numbers that have the same time.
    most: usize,
    /// Rows without a message, and numbers that differ.
    wrong: Differences,
    /// Messages without a row, and rows with nulls in place of numbers.
    lacking: Differences,
}

impl Comparison<'_> {
    fn run<R: PageRead>(
        mut self,
        mut messages: Messages<'_, R>,
        mut rows: Rows<'_>,
        read: &mut dyn FnMut(u64) -> Result<()>,
        find: &mut dyn FnMut(Difference),
    ) -> Result<()> {
        loop {
            let (message, row) = (messages.peek()?, rows.peek(read)?);
            let time = match (message, row) {
                (Some(message), Some(row)) => message.min(row),
                (Some(time), None) | (None, Some(time)) => time,
                (None, None) => break,
            };
            let expected = self.expected(time, &mut messages)?;
            let mut found = Vec::new();
            while rows.peek(read)? == Some(time) {
                found.push(rows.take());
            }
            if let Some(expected) = expected {
                self.compare_time(time, expected, found);
            }
        }
        let width = self.columns.own().len() + self.missing.len();
        let is_crowded = self.most > time_rows_max(COLUMNS_MAX);
        let may_lack = is_crowded && time_rows_max(width.min(COLUMNS_MAX)) < time_rows_max(1);
        self.wrong.tell("rows differ", find);
        if may_lack {
            return Ok(());
        }
        self.lacking.tell("rows or numbers are missing", find);
        let mut missing = Differences::default();
        for (name, time) in self.missing {
            missing.add(|| {
                Difference::lacking(
                    Some(time),
                    None,
                    format!("has no column {name}, but a message has this number"),
                )
            });
        }
        missing.tell("columns are missing", find);
        Ok(())
    }

    /// The rows that the messages of a time should have; `None` if there are too many to compare.
    fn expected<R: PageRead>(
        &mut self,
        time: i64,
        messages: &mut Messages<'_, R>,
    ) -> Result<Option<Vec<Vec<u64>>>> {
        let mut expected = Vec::new();
        let mut count = 0;
        let (columns, missing) = (&mut self.columns, &mut self.missing);
        let mut lacks = Vec::new();
        while let Some(document) = messages.next_at(time)? {
            count += 1;
            if count > time_rows_max(1) {
                continue;
            }
            let mut row = columns.nulls();
            if columns.fill(&document, &mut row, |name| lacks.push(name.to_owned())) {
                expected.push(row);
            }
            for name in lacks.drain(..) {
                if columns.has_room_for(&name) && missing.len() < COLUMNS_MAX {
                    missing.entry(name).or_insert(time);
                }
            }
        }
        self.most = self.most.max(count);
        Ok((count <= time_rows_max(1)).then_some(expected))
    }

    fn compare_time(&mut self, time: i64, mut expected: Vec<Vec<u64>>, mut found: Vec<Vec<u64>>) {
        if expected == found {
            return;
        }
        let columns = self.columns.own();
        let is_full = expected.len() > time_rows_max(columns.len());
        expected.sort_unstable();
        found.sort_unstable();
        let (expected, found) = differing(expected, found);
        for (i, found) in found.iter().enumerate() {
            let Some(expected) = expected.get(i) else {
                self.wrong.add(|| {
                    Difference::wrong(Some(time), None, "has a row without a message".to_owned())
                });
                continue;
            };
            let mut pairs = found.iter().zip(expected).enumerate();
            let mut differing = pairs
                .by_ref()
                .filter(|(_, (found, expected))| found != expected);
            let is_null = |c: usize, word: u64| columns[c].is_null(word);
            // A differing number is reported rather than a missing one, because it says more.
            let first = differing.next();
            let worst = first
                .filter(|(c, (found, _))| !is_null(*c, **found))
                .or_else(|| differing.find(|(c, (found, _))| !is_null(*c, **found)));
            let Some((c, (found, expected))) = worst.or(first) else {
                continue;
            };
            let column = &columns[c];
            let (found, expected) = (column.value(*found), column.value(*expected));
            let problem = || format!("is {found}, in the message {expected}");
            let (time, c) = (Some(time), Some(c));
            match worst {
                Some(_) => self.wrong.add(|| Difference::wrong(time, c, problem())),
                None => self.lacking.add(|| Difference::lacking(time, c, problem())),
            }
        }
        // If a time has too many rows, any of its rows may be missing.
        for expected in expected.iter().skip(found.len()).filter(|_| !is_full) {
            let number = columns.iter().zip(expected);
            let mut number = number.filter(|(column, word)| !column.is_null(**word));
            self.lacking.add(|| {
                Difference::lacking(
                    Some(time),
                    None,
                    match number.next() {
                        Some((column, word)) => format!(
                            "has no row of the message with {} = {}",
                            column.name,
                            column.value(*word)
                        ),
                        None => "has no row of the message".to_owned(),
                    },
                )
            });
        }
    }
}

/// For each of two sorted lists, the elements that the other one does not have.
fn differing(a: Vec<Vec<u64>>, b: Vec<Vec<u64>>) -> (Vec<Vec<u64>>, Vec<Vec<u64>>) {
    let (mut only_a, mut only_b) = (Vec::new(), Vec::new());
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x == y => {
                a.next();
                b.next();
            }
            (Some(x), Some(y)) if x < y => only_a.extend(a.next()),
            (_, Some(_)) => only_b.extend(b.next()),
            (Some(_), None) => only_a.extend(a.next()),
            (None, None) => return (only_a, only_b),
        }
    }
}
