//! Figures of the fields of messages, over steps of time and over the values of a field.
//!
//! Figures of numeric fields without a filter can also be read from the container's series, which is faster because a
//! series stores sums of its blocks. The code here reads the messages themselves: it supports filters and texts, and is
//! exact for 64-bit integers.

use crate::container::read::{Containers, Select};
use crate::types::error::Result;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;
use tidalite_messages::{EncodedPath, FieldNumber, FieldValue, nanoseconds};
use tidalite_pager::{Error as FileError, Refusal};
use tidalite_time::Timestamp;

/// A figure that is computed from the values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFigure {
    /// Number of messages that have the field, with a value other than null.
    Count,
    /// The least number.
    Min,
    /// The greatest number.
    Max,
    /// Sum of the numbers: an integer if all of them are integers.
    Sum,
    /// Mean of the numbers.
    Mean,
    /// The first value.
    First,
    /// The last value.
    Last,
    /// Sum of the increases from each number to the next. The first number of a step is compared with the last number
    /// of the step before. A decrease counts as a restart from zero, as of a counter.
    Increase,
}

/// A query that computes figures of messages.
#[derive(Clone, Debug, Default)]
pub struct AggregateQuery {
    /// Selects the messages. Its `fields`, `reverse` and `limit` have no effect.
    pub select: Select,
    /// Length of a step, at least one nanosecond; steps begin at its multiples, counted from 1970. `None`: one step for
    /// all messages.
    pub step: Option<Duration>,
    /// Path of the field by which messages are grouped: each value of it has a result of its own. Equal numbers are one
    /// value.
    pub group_by: Option<String>,
    /// The figures to compute, each with the path of its field.
    pub figures: Vec<(String, MessageFigure)>,
}

/// The figures of one step and one group.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateRow {
    /// Beginning of the step; without steps the time of the first message.
    pub from: Timestamp,
    /// The value of the grouping field; `Null` for messages without this field, and if the query does not group.
    pub group: FieldValue,
    /// Number of messages.
    pub messages: u64,
    /// The figures; `Null` if no message had a value for it.
    pub figures: Vec<FieldValue>,
}

/// A sum that is exact as long as all numbers are integers.
#[derive(Clone, Copy, Debug)]
struct Sum {
    integers: Option<i128>,
    floats: f64,
}

impl Sum {
    const ZERO: Self = Self {
        integers: Some(0),
        floats: 0.0,
    };

    fn add(&mut self, number: FieldNumber) {
        self.floats += number.as_float();
        self.integers = match (self.integers, number) {
            (Some(sum), FieldNumber::Integer(x)) => sum.checked_add(x),
            _ => None,
        };
    }

    fn value(self) -> FieldValue {
        let range = i128::from(i64::MIN)..=i128::from(u64::MAX);
        match self.integers.filter(|sum| range.contains(sum)) {
            Some(sum) => FieldValue::Integer(sum),
            None => float(self.floats),
        }
    }
}

/// A float as a field value; null if it is infinite, which a sum of floats can be.
fn float(x: f64) -> FieldValue {
    match x.is_finite() {
        true => FieldValue::Float(x),
        false => FieldValue::Null,
    }
}

/// Returns the same value for equal numbers: an integer if the number is a whole one.
fn canonical(value: FieldValue) -> FieldValue {
    match value {
        FieldValue::Float(x) if x.fract() == 0.0 && x.abs() < 1e18 => {
            FieldValue::Integer(x as i128)
        }
        value => value,
    }
}

/// The order of groups: null, booleans, numbers, texts, and then all other values by their printed form.
fn order(a: &FieldValue, b: &FieldValue) -> Ordering {
    let rank = |value: &FieldValue| match value {
        FieldValue::Null => 0,
        FieldValue::Bool(_) => 1,
        FieldValue::Integer(_) | FieldValue::Float(_) => 2,
        FieldValue::Text(_) => 3,
        FieldValue::List(_) | FieldValue::Object(_) => 4,
    };
    match (a, b) {
        (FieldValue::Bool(a), FieldValue::Bool(b)) => a.cmp(b),
        (FieldValue::Text(a), FieldValue::Text(b)) => a.cmp(b),
        _ => match (a.as_number(), b.as_number()) {
            (Some(a), Some(b)) => a.compare(b),
            _ => rank(a).cmp(&rank(b)),
        },
    }
}

/// A figure while messages are being read.
#[derive(Clone, Debug)]
struct Tally {
    figure: MessageFigure,
    count: u64,
    sum: Sum,
    last: Option<FieldNumber>,
    best: FieldValue,
    chosen: Option<FieldNumber>,
}

impl Tally {
    fn new(figure: MessageFigure, last: Option<FieldNumber>) -> Self {
        Self {
            figure,
            count: 0,
            sum: Sum::ZERO,
            last,
            best: FieldValue::Null,
            chosen: None,
        }
    }

    fn take(&mut self, value: FieldValue) {
        match (self.figure, value.as_number()) {
            (_, None) if value == FieldValue::Null => {}
            (MessageFigure::Count, _) => self.count += 1,
            (MessageFigure::First, _) => {
                if self.count == 0 {
                    self.best = value;
                }
                self.count += 1;
            }
            (MessageFigure::Last, _) => self.best = value,
            (_, None) => {}
            (MessageFigure::Min, Some(number)) => {
                if self
                    .chosen
                    .is_none_or(|chosen| number.compare(chosen).is_lt())
                {
                    self.chosen = Some(number);
                }
            }
            (MessageFigure::Max, Some(number)) => {
                if self
                    .chosen
                    .is_none_or(|chosen| number.compare(chosen).is_gt())
                {
                    self.chosen = Some(number);
                }
            }
            (MessageFigure::Sum | MessageFigure::Mean, Some(number)) => {
                self.count += 1;
                self.sum.add(number);
            }
            (MessageFigure::Increase, Some(number)) => {
                if let Some(last) = self.last {
                    self.count += 1;
                    self.sum.add(increase(last, number));
                }
                self.last = Some(number);
            }
        }
    }

    fn value(self) -> FieldValue {
        match self.figure {
            MessageFigure::Count => FieldValue::Integer(self.count.into()),
            MessageFigure::First | MessageFigure::Last => self.best,
            MessageFigure::Min | MessageFigure::Max => {
                self.chosen.map_or(FieldValue::Null, FieldValue::from)
            }
            _ if self.count == 0 => FieldValue::Null,
            MessageFigure::Sum | MessageFigure::Increase => self.sum.value(),
            MessageFigure::Mean => match self.sum.integers {
                Some(sum) => float(sum as f64 / self.count as f64),
                None => float(self.sum.floats / self.count as f64),
            },
        }
    }
}

fn increase(from: FieldNumber, to: FieldNumber) -> FieldNumber {
    match (from, to) {
        _ if to.compare(from).is_lt() => match to.compare(FieldNumber::Integer(0)).is_gt() {
            true => to,
            false => FieldNumber::Integer(0),
        },
        (FieldNumber::Integer(from), FieldNumber::Integer(to)) => FieldNumber::Integer(to - from),
        (from, to) => FieldNumber::Float(to.as_float() - from.as_float()),
    }
}

/// The figures of one step and group while messages are being read.
struct Tallies {
    from: i64,
    group: FieldValue,
    messages: u64,
    figures: Vec<Tally>,
}

impl Containers<'_> {
    /// Computes figures of fields, for each step of time and each value of a field, in this order.
    ///
    /// ```
    /// # let db = tidalite::Options::new().open_storage(std::sync::Arc::new(tidalite::storage::MemoryStorage::new()))?;
    /// use std::time::Duration;
    /// use tidalite::Timestamp;
    /// use tidalite::containers::{AggregateQuery, Append, Document, MessageFigure};
    ///
    /// let mut tx = db.begin_write()?;
    /// let mut cars = tx.containers("cars")?;
    /// for time in 0..6 {
    ///     let message = format!(r#"{{"state": "{}", "km": {}}}"#, ["on", "off"][time % 2], 10 * time);
    ///     cars.append(&Append::new("red", Timestamp(time as i64), &Document::from_json(&message)?))?;
    /// }
    /// let query = AggregateQuery {
    ///     step: Some(Duration::from_nanos(4)),
    ///     group_by: Some("state".to_owned()),
    ///     figures: vec![("km".to_owned(), MessageFigure::Max), ("km".to_owned(), MessageFigure::Increase)],
    ///     ..AggregateQuery::default()
    /// };
    /// let rows = cars.view()?.aggregate("red", &query)?;
    /// assert_eq!((rows.len(), rows[0].from, rows[0].messages), (4, Timestamp(0), 2));
    /// assert_eq!(rows[0].group, "off".into());
    /// assert_eq!(rows[0].figures, [30.into(), 20.into()]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidInput` for a step below one nanosecond, and for operands of a filter that do not fit; a damaged or
    /// unreadable page.
    ///
    /// # Cost
    /// Reads the messages and decodes only the fields that are needed. Needs memory for each step and group.
    pub fn aggregate(&self, container: &str, query: &AggregateQuery) -> Result<Vec<AggregateRow>> {
        let step_ns = query.step.map(nanoseconds);
        if step_ns == Some(0) {
            let found = "a step of no length";
            let expected = "a step of at least one nanosecond";
            return Err(FileError::refused(Refusal::InvalidInput, found, expected).into());
        }
        let (paths, group) = {
            let number = self.numbers()?;
            let names: Vec<String> = query.figures.iter().map(|(path, _)| path.clone()).collect();
            let group: Vec<String> = query.group_by.iter().cloned().collect();
            (
                EncodedPath::all(&names, &number),
                EncodedPath::all(&group, &number),
            )
        };
        let mut select = query.select.clone();
        (select.query.limit, select.query.reverse) = (u64::MAX, false);
        let mut rows: BTreeMap<(Option<i64>, String), Tallies> = BTreeMap::new();
        let mut lasts: HashMap<String, Vec<Option<FieldNumber>>> = HashMap::new();
        self.each(container, &select, &mut |message| {
            let document = message.encoded()?;
            let step = step_ns.map(|step| message.time().0.div_euclid(step).saturating_mul(step));
            let group = match group.first() {
                Some(path) => match path.find(&document)? {
                    Some(value) => canonical(value.decode()?),
                    None => FieldValue::Null,
                },
                None => FieldValue::Null,
            };
            let key = format!("{group:?}");
            // An increase starts from the last number of the group in the previous step.
            let lasts = lasts
                .entry(key.clone())
                .or_insert_with(|| vec![None; query.figures.len()]);
            let row = rows.entry((step, key)).or_insert_with(|| Tallies {
                from: step.unwrap_or(message.time().0),
                group,
                messages: 0,
                figures: query
                    .figures
                    .iter()
                    .zip(&*lasts)
                    .map(|((_, figure), last)| Tally::new(*figure, *last))
                    .collect(),
            });
            row.messages += 1;
            for ((tally, path), last) in row.figures.iter_mut().zip(&paths).zip(lasts) {
                if let Some(value) = path.find(&document)? {
                    tally.take(value.decode()?);
                    *last = tally.last;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let rows = rows.into_values().map(|row| AggregateRow {
            from: Timestamp(row.from),
            group: row.group,
            messages: row.messages,
            figures: row.figures.into_iter().map(Tally::value).collect(),
        });
        let mut rows: Vec<AggregateRow> = rows.collect();
        rows.sort_by(|a, b| a.from.cmp(&b.from).then_with(|| order(&a.group, &b.group)));
        Ok(rows)
    }
}
