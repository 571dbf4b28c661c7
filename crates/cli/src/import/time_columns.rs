//! Finds the column with the time, or the columns that together are the time.

use crate::exit::{Failure, Outcome};
use crate::import::advice::{near_1970, number_or_date};
use crate::import::dates;
use crate::import::field::{Nulls, field};
use crate::import::table::{Named, Table, shown};
use crate::output::printable;
use crate::time::{Moment, Nanos, TimeFormat, TimeReader};
use csv::ByteRecord;
use jiff::tz::TimeZone;
use std::borrow::Cow;
use std::fmt::Write;

/// Guessed times that are plain numbers are rejected if all of them lie within ten days of 1970, in nanoseconds.
const NEAR_1970: Nanos = 10 * 86_400 * 1_000_000_000;

/// Header names, in lower case, of columns that are likely to hold times.
const TIME_NAMES: [&str; 13] = [
    "time",
    "timestamp",
    "datetime",
    "date_time",
    "date",
    "time_utc",
    "utc",
    "ts",
    "t",
    "time_hour",
    "datum",
    "zeit",
    "_time",
];

/// The column with the time, or the first of several, and the way to join them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimeColumns {
    /// The column, or the first of several.
    pub first: Named,
    /// Indexes of the others.
    pub others: Vec<usize>,
    join: Join,
}

/// How the fields of several columns are joined to one text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Join {
    /// With blanks: `2014-06-01` and `00:10`.
    Blanks,
    /// A date and the number of an hour.
    DateAndHour,
    /// Numbers: year, month and day, and then hour, minute and second.
    Calendar,
}

impl TimeColumns {
    /// A single column.
    pub(crate) fn one(first: Named) -> Self {
        Self {
            first,
            others: Vec::new(),
            join: Join::Blanks,
        }
    }

    /// Whether the column is one of these.
    pub(crate) fn contain(&self, index: usize) -> bool {
        self.first.index == index || self.others.contains(&index)
    }

    /// The time of a record as one text.
    ///
    /// # Errors
    /// A field that is empty, or that is not text.
    pub(crate) fn text<'r>(
        &self,
        record: &'r ByteRecord,
        nulls: &Nulls,
    ) -> Result<Cow<'r, str>, String> {
        let part = |index: usize| {
            let text = field(record, index)?;
            match nulls.contains(text) {
                true => Err(format!("no time in column {}", index + 1)),
                false => Ok(text),
            }
        };
        let first = part(self.first.index)?;
        if self.others.is_empty() {
            return Ok(Cow::Borrowed(first));
        }
        let mut joined = String::from(match self.join {
            Join::Calendar => whole(first),
            Join::Blanks | Join::DateAndHour => first,
        });
        for (place, &index) in self.others.iter().enumerate() {
            let text = part(index)?;
            match self.join {
                Join::Blanks => joined.extend([" ", text]),
                Join::DateAndHour => {
                    let _ = write!(joined, " {:0>2}:00", whole(text));
                }
                Join::Calendar => {
                    let separator = ["-", "-", " ", ":", ":"].get(place).unwrap_or(&" ");
                    let _ = write!(joined, "{separator}{:0>2}", whole(text));
                }
            }
        }
        // An hour without minutes is no time in ISO 8601.
        if self.join == Join::Calendar && self.others.len() == 3 {
            joined.push_str(":00");
        }
        Ok(Cow::Owned(joined))
    }
}

/// Removes a zero fraction from a whole number, such as `6.0`, which tables of floats contain.
fn whole(text: &str) -> &str {
    match text.split_once('.') {
        Some((whole, zeros)) if zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => text,
    }
}

/// The result of looking at the fields of a column, or of joined columns.
#[derive(Debug, PartialEq, Eq)]
enum Likely {
    Format(TimeFormat),
    /// Dates whose day and month could be in either order.
    TwoFormats(TimeFormat, TimeFormat),
}

impl Table<'_> {
    /// Finds the time: the columns that the user names, or the first column that reads as times. Columns of `skipped`
    /// are not considered.
    pub(crate) fn time(
        &self,
        wish: Option<&str>,
        format: Option<&TimeFormat>,
        skipped: &[usize],
    ) -> Outcome<(TimeColumns, TimeFormat)> {
        let columns = match wish {
            Some(wish) => self.named_time(wish)?,
            None => self.guessed_time(format, skipped)?,
        };
        let columns = match columns.others.is_empty() && wish.is_none() && format.is_none() {
            true => self.with_time_of_day(columns, skipped),
            false => columns,
        };
        let format = match format {
            Some(format) => format.clone(),
            None => self.format_of(&columns)?,
        };
        Ok((columns, format))
    }

    /// The columns of `--time`: one, or several with commas in between.
    fn named_time(&self, wish: &str) -> Outcome<TimeColumns> {
        if !wish.contains(',') || self.index_of(wish)?.is_some() {
            return Ok(TimeColumns::one(self.find(wish)?));
        }
        let columns: Vec<Named> = wish
            .split(',')
            .map(|part| self.find(part.trim()))
            .collect::<Outcome<_>>()?;
        let others: Vec<usize> = columns[1..].iter().map(|column| column.index).collect();
        let is_short = |index: usize| {
            self.mostly(index, |text| {
                let digits = whole(text);
                digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit())
            })
        };
        let is_year = |text: &str| {
            let digits = whole(text);
            digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let join = match &others[..] {
            [hour] if is_short(*hour) => Join::DateAndHour,
            [month, day, ..] if is_short(*month) && is_short(*day) => {
                match self.mostly(columns[0].index, is_year) {
                    true => Join::Calendar,
                    false => Join::Blanks,
                }
            }
            _ => Join::Blanks,
        };
        let first = columns.into_iter().next();
        let first = first.ok_or_else(|| Failure::usage("--time names no column"))?;
        Ok(TimeColumns {
            first,
            others,
            join,
        })
    }

    fn guessed_time(&self, format: Option<&TimeFormat>, skipped: &[usize]) -> Outcome<TimeColumns> {
        let free = || (0..self.names.len()).filter(|index| !skipped.contains(index));
        let reads = |index: usize| match format {
            Some(format) => {
                let reader = TimeReader::new(format.clone(), TimeZone::UTC);
                self.mostly(index, |text| reader.read(text).is_ok())
            }
            // A plain number is taken for a time only in a column whose name says so.
            None => match self.likely_format(index) {
                Some(Likely::Format(TimeFormat::Iso)) => true,
                Some(Likely::Format(TimeFormat::Pattern(_))) => {
                    self.mostly(index, dates::may_be_date)
                }
                Some(Likely::TwoFormats(..)) => true,
                _ => false,
            },
        };
        let by_name = free().find(|&index| {
            TIME_NAMES.contains(&self.names.own[index].to_lowercase().as_str())
                && (reads(index) || format.is_none() && self.likely_format(index).is_some())
        });
        match by_name.or_else(|| free().find(|&index| reads(index))) {
            Some(index) => Ok(TimeColumns::one(self.named(index))),
            None => Err(Failure::bad_input("no column contains times").hint(format!(
                "name one with --time COLUMN, and its form with --time-format '%d.%m.%Y %H:%M'; \
                 the columns are: {}",
                self.listing()
            ))),
        }
    }

    /// Adds the column with the time of day if the time is a date only and there is one such column.
    fn with_time_of_day(&self, date: TimeColumns, skipped: &[usize]) -> TimeColumns {
        let index = date.first.index;
        if self.fields(index).any(|text| text.contains(':')) {
            return date;
        }
        let is_number = |text: &str| text.parse::<f64>().is_ok_and(|number| number.abs() > 1e8);
        if self.mostly(index, is_number) {
            return date;
        }
        let mut others = (0..self.names.len())
            .filter(|other| *other != index && !skipped.contains(other))
            .filter(|other| self.mostly(*other, dates::is_time_of_day));
        match (others.next(), others.next()) {
            (Some(time_of_day), None) => TimeColumns {
                others: vec![time_of_day],
                ..date
            },
            _ => date,
        }
    }

    /// The time format of most fields of a column. A few broken fields do not prevent detection; they are reported
    /// later, as bad rows.
    fn likely_format(&self, index: usize) -> Option<Likely> {
        likely_format(&self.fields(index).collect::<Vec<_>>())
    }

    fn format_of(&self, columns: &TimeColumns) -> Outcome<TimeFormat> {
        let sample = self.sample.iter();
        let texts: Vec<Cow<'_, str>> = sample
            .filter_map(|record| columns.text(record, self.nulls).ok())
            .collect();
        let texts: Vec<&str> = texts.iter().map(Cow::as_ref).collect();
        format_of_texts(&format!("column {}", shown(&columns.first)), &texts)
    }
}

/// The format of most of these times. `place` is the column or field that has them, for errors.
pub(crate) fn format_of_texts(place: &str, texts: &[&str]) -> Outcome<TimeFormat> {
    match likely_format(texts) {
        Some(Likely::Format(format)) => {
            refuse_what_may_be_dates(place, texts, &format)?;
            refuse_near_1970(place, texts, &format)?;
            Ok(format)
        }
        Some(Likely::TwoFormats(first, second)) => {
            let (first, second) = (pattern_of(&first), pattern_of(&second));
            Err(Failure::bad_input(format!(
                "{place}: in `{}` the day or the month may come first",
                printable(texts.first().unwrap_or(&""))
            ))
            .hint(format!(
                "give the format: --time-format '{first}' or --time-format '{second}'"
            )))
        }
        None => Err(Failure::bad_input(format!(
            "{place} does not contain times: `{}`",
            printable(texts.first().unwrap_or(&""))
        ))
        .hint("give its format: --time-format '%d.%m.%Y %H:%M', or s, ms, us, ns, min, h, d")),
    }
}

fn pattern_of(format: &TimeFormat) -> String {
    match format {
        TimeFormat::Pattern(pattern) => pattern.clone(),
        other => other.to_string(),
    }
}

fn likely_format(texts: &[&str]) -> Option<Likely> {
    let most = |readable: &dyn Fn(&str) -> bool| {
        let good = texts.iter().copied().filter(|text| readable(text));
        let good: Vec<&str> = good.collect();
        (!good.is_empty() && good.len() * 2 >= texts.len()).then_some(good)
    };
    // As a count from 1970, a number of 14 digits would be in 1970 or after 2286.
    if most(&|text| dates::compact(text) == Some(dates::COMPACT_SECONDS)).is_some() {
        let pattern = dates::COMPACT_SECONDS.to_owned();
        return Some(Likely::Format(TimeFormat::Pattern(pattern)));
    }
    if let Some(good) = most(&|text| TimeFormat::detect([text]).is_some())
        && let is_all = good.len() == texts.len()
        && let Some(format) = TimeFormat::detect(good)
    {
        // Months, days and hours may have one digit in some of the rows: `2024-1-5 9:05`.
        if !is_all && let [all] = &dates::formats(texts)[..] {
            return Some(Likely::Format(all.clone()));
        }
        return Some(Likely::Format(format));
    }
    let mut formats = dates::formats(&most(&dates::may_be_date)?).into_iter();
    Some(match (formats.next()?, formats.next()) {
        (first, Some(second)) => Likely::TwoFormats(first, second),
        (only, None) => Likely::Format(only),
    })
}

/// Rejects numbers that may all be dates, such as 202401011200, beside times since 1970.
fn refuse_what_may_be_dates(place: &str, texts: &[&str], format: &TimeFormat) -> Outcome {
    let (TimeFormat::Epoch(unit), Some(first)) = (format, texts.first()) else {
        return Ok(());
    };
    match dates::compact(first) {
        Some(pattern)
            if texts
                .iter()
                .all(|text| dates::compact(text) == Some(pattern)) =>
        {
            Err(number_or_date(place, first, pattern, *unit))
        }
        _ => Ok(()),
    }
}

/// Rejects times that all lie in the first days of 1970: they count from another date or in another unit.
fn refuse_near_1970(place: &str, texts: &[&str], format: &TimeFormat) -> Outcome {
    if !matches!(format, TimeFormat::Epoch(_)) {
        return Ok(());
    }
    let reader = TimeReader::new(format.clone(), TimeZone::UTC);
    let is_near = |text: &str| {
        let read = reader.read(text).map(Moment::compatible);
        read.is_ok_and(|time| time.abs() < NEAR_1970)
    };
    let readable = texts.iter().filter(|text| reader.read(text).is_ok());
    let readable: Vec<&str> = readable.copied().collect();
    match readable[..] {
        [first, .., last] | [first @ last] if readable.iter().all(|text| is_near(text)) => {
            Err(near_1970(place, first, last, &format.to_string()))
        }
        _ => Ok(()),
    }
}
