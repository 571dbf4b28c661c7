//! Assigns a role to each column of an input: time, tag or value.
//!
//! A column is given by its header or by its number, counted from 1; `=NAME` after it gives the column another name in
//! the database. Roles that the user does not set are found in a sample of the first rows: the time is the first column
//! whose fields mostly parse as times; values are all other columns in which at least half of the fields parse as
//! numbers.

use crate::args::TypedColumn;
use crate::exit::{Failure, Outcome};
use crate::import::advice::{near_1970, no_numbers};
use crate::import::field::{Nulls, field};
use crate::import::local_times::Policy;
use crate::output::printable;
use crate::time::{Moment, Nanos, TimeFormat, TimeReader};
use csv::ByteRecord;
use jiff::tz::TimeZone;
use tidalite::Column;

/// Guessed times that are plain numbers are rejected if all of them lie within ten days of 1970, in nanoseconds.
const NEAR_1970: Nanos = 10 * 86_400 * 1_000_000_000;

/// The user's options that assign roles to columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Whether the first line holds the names of the columns.
    pub header: bool,
    /// The option `--time`: the column with the time.
    pub time: Option<String>,
    /// The option `--time-format`: the format of the times.
    pub time_format: Option<TimeFormat>,
    /// The option `--tz`: the zone of times without an offset.
    pub zone: Option<TimeZone>,
    /// The options `--ambiguous` and `--nonexistent`, for local times that clocks repeat or skip.
    pub local_times: Policy,
    /// The options `--tag`: the columns that become tags.
    pub tags: Vec<String>,
    /// The option `--series`, in place of `tags`: the column with the full name of each row's series.
    pub series: Option<String>,
    /// The options `--value`: the columns with values; if empty, every numeric column.
    pub values: Vec<String>,
    /// The option `--columns`, in place of `values`: the columns of one series, each with its type.
    pub columns: Vec<TypedColumn>,
    /// The option `--on-error null`: a bad cell of a value column is stored as null.
    pub bad_cells_are_null: bool,
}

/// A column of the input that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Index of the column's field in a record.
    pub index: usize,
    /// Name of the column in the database.
    pub name: String,
}

/// A column of the input that is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Name of the column in the header.
    pub name: String,
    /// Number of cells in the sample that are numbers; `cells` is the number of all cells that are not null.
    pub numbers: usize,
    pub cells: usize,
}

/// The roles of all columns.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Number of fields of every record.
    pub width: usize,
    /// The column with the time.
    pub time: Named,
    /// Parser for the texts in the time column.
    pub reader: TimeReader,
    /// Columns that become tags; with `names_series`, the column with the full series name.
    pub tags: Vec<Named>,
    /// Whether a column contains the name of each row's series.
    pub names_series: bool,
    /// Columns that become one series each or, with `typed`, the columns of one series.
    pub values: Vec<Named>,
    /// Schema of the columns if they form one series; empty if each column becomes a series.
    pub typed: Vec<Column>,
    /// Columns that the options do not mention and that hold few or no numbers.
    pub left_out: Vec<LeftOut>,
}

/// Header names, in lower case, of columns that are likely to hold times.
const TIME_NAMES: [&str; 11] = [
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
];

impl Layout {
    /// Assigns the roles. `names` is the header, or `column1`, `column2` and so on; `sample` are the first records.
    pub(crate) fn decide(
        names: &[String],
        sample: &[ByteRecord],
        wishes: &Wishes,
        nulls: &Nulls,
    ) -> Outcome<Self> {
        let (names, unnamed) = &numbered(names);
        let table = Table {
            names,
            unnamed,
            sample,
            nulls,
        };
        let zone = wishes.zone.clone().unwrap_or(TimeZone::UTC);
        let (time, format) = table.time(wishes)?;
        let tags = wishes
            .tags
            .iter()
            .chain(&wishes.series)
            .map(|wish| table.find(wish))
            .collect::<Outcome<Vec<_>>>()?;
        let typed = wishes.columns.iter().map(|column| {
            let named = table.find(&column.wish)?;
            let own = Column {
                name: named.name.clone(),
                ty: column.ty,
                nullable: column.nullable,
            };
            Ok((named, own))
        });
        let (columns, typed): (Vec<_>, Vec<_>) =
            typed.collect::<Outcome<Vec<_>>>()?.into_iter().unzip();
        let values = if !columns.is_empty() {
            columns
        } else if wishes.values.is_empty() {
            table.numeric(&time, &tags)?
        } else {
            wishes
                .values
                .iter()
                .map(|wish| table.find(wish))
                .collect::<Outcome<Vec<_>>>()?
        };
        let left_out = if wishes.values.is_empty() && typed.is_empty() {
            table.others(&time, &tags, &values)
        } else {
            Vec::new()
        };
        let layout = Self {
            left_out,
            width: names.len(),
            time,
            reader: TimeReader::new(format, zone),
            tags,
            names_series: wishes.series.is_some(),
            values,
            typed,
        };
        layout.refuse_double_use()?;
        layout.refuse_many_values()?;
        Ok(layout)
    }

    /// Refuses several untyped value columns if a column names the series of each row: a series has either one value,
    /// or columns with names and types.
    fn refuse_many_values(&self) -> Outcome {
        if !self.names_series || !self.typed.is_empty() || self.values.len() == 1 {
            return Ok(());
        }
        let names: Vec<&str> = self.values.iter().map(|own| own.name.as_str()).collect();
        let names = names.join(", ");
        Err(Failure::usage(format!(
            "--series needs one value column, not {} ({names})",
            self.values.len()
        ))
        .hint(
            "choose one with --value, or name all with their types: --columns flags:i64,value:f64",
        ))
    }

    /// Advice to select the columns by number, and to give one of them another name.
    fn with_another_name(&self, renamed: &Named) -> String {
        const SHOWN: usize = 12;
        let is_value = self.values.contains(renamed);
        let option = if is_value { "--value" } else { "--tag" };
        let rename = format!("{option} {}=other_name", renamed.index + 1);
        if !is_value || self.values.len() > SHOWN || !self.typed.is_empty() {
            return format!(
                "choose columns by number and rename one: {rename}; with --value only the columns that it names are stored"
            );
        }
        let all: Vec<String> = self
            .values
            .iter()
            .map(|value| match value == renamed {
                true => rename.clone(),
                false => format!("--value {}", value.index + 1),
            })
            .collect();
        format!("choose columns by number and rename one: {}", all.join(" "))
    }

    fn refuse_double_use(&self) -> Outcome {
        let named: Vec<&Named> = self.tags.iter().chain(&self.values).collect();
        for (position, column) in named.iter().enumerate() {
            if column.index == self.time.index {
                return Err(Failure::usage(format!(
                    "column {} is the time and cannot be a tag or a value too",
                    shown(column)
                )));
            }
            if let Some(other) = named[..position]
                .iter()
                .find(|other| other.name == column.name)
            {
                return Err(Failure::usage(format!(
                    "columns {} and {} would get the same name `{}`",
                    other.index + 1,
                    column.index + 1,
                    printable(&column.name)
                ))
                .hint(self.with_another_name(column)));
            }
        }
        Ok(())
    }
}

/// The names of the columns, and for each column whether the header lacked its name. A missing name is replaced by a
/// name such as `column1`.
fn numbered(names: &[String]) -> (Vec<String>, Vec<bool>) {
    let named = names.iter().enumerate().map(|(index, name)| match name {
        name if name.is_empty() => (format!("column{}", index + 1), true),
        name => (name.clone(), false),
    });
    named.unzip()
}

fn shown(column: &Named) -> String {
    format!("{} `{}`", column.index + 1, printable(&column.name))
}

struct Table<'a> {
    names: &'a [String],
    /// For each column, whether the header lacks its name: an index written by pandas, or an empty column after a
    /// trailing separator.
    unnamed: &'a [bool],
    sample: &'a [ByteRecord],
    nulls: &'a Nulls,
}

impl Table<'_> {
    /// Finds a column by its header or number, which `=NAME` may follow.
    fn find(&self, wish: &str) -> Outcome<Named> {
        if let Some(index) = self.index_of(wish)? {
            return Ok(Named {
                index,
                name: self.names[index].clone(),
            });
        }
        if let Some((column, name)) = wish.rsplit_once('=')
            && !name.is_empty()
            && let Some(index) = self.index_of(column)?
        {
            return Ok(Named {
                index,
                name: name.to_owned(),
            });
        }
        let failure = Failure::not_found(format!("there is no column `{wish}`"));
        Err(failure.hint(format!("the columns are: {}", self.listing())))
    }

    fn index_of(&self, wish: &str) -> Outcome<Option<usize>> {
        let mut found = self
            .names
            .iter()
            .enumerate()
            .filter(|(_, name)| *name == wish);
        if let Some((index, _)) = found.next() {
            if let Some((second, _)) = found.next() {
                return Err(
                    Failure::usage(format!("two columns are called `{wish}`")).hint(format!(
                        "give the number instead: {} or {}",
                        index + 1,
                        second + 1
                    )),
                );
            }
            return Ok(Some(index));
        }
        let number = wish
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        Ok(number.filter(|index| *index < self.names.len()))
    }

    fn listing(&self) -> String {
        const SHOWN: usize = 40;
        let names: Vec<String> = self
            .names
            .iter()
            .take(SHOWN)
            .enumerate()
            .map(|(index, name)| format!("{}={}", index + 1, printable(name)))
            .collect();
        let more = if self.names.len() > SHOWN { " ..." } else { "" };
        names.join(" ") + more
    }

    /// The fields of a column in the sample that are not null.
    fn fields(&self, index: usize) -> impl Iterator<Item = &str> {
        self.sample
            .iter()
            .filter_map(move |record| field(record, index).ok())
            .filter(|text| !self.nulls.contains(text))
    }

    fn time(&self, wishes: &Wishes) -> Outcome<(Named, TimeFormat)> {
        if let Some(wish) = &wishes.time {
            let column = self.find(wish)?;
            let format = match &wishes.time_format {
                Some(format) => format.clone(),
                None => self.time_format(&column)?,
            };
            return Ok((column, format));
        }
        let reads = |index: usize| match &wishes.time_format {
            Some(format) => {
                let reader = TimeReader::new(format.clone(), TimeZone::UTC);
                self.mostly(index, |text| reader.read(text).is_ok())
            }
            // A plain number is taken for a time only in a column whose name says so.
            None => self.likely_format(index) == Some(TimeFormat::Iso),
        };
        let by_name = self.names.iter().enumerate().find(|(index, name)| {
            TIME_NAMES.contains(&name.to_lowercase().as_str())
                && (reads(*index) || self.likely_format(*index).is_some())
        });
        let index = match by_name {
            Some((index, _)) => Some(index),
            None => (0..self.names.len()).find(|index| reads(*index)),
        };
        let Some(index) = index else {
            return Err(Failure::bad_input("no column contains times").hint(format!(
                "name one with --time COLUMN, and its form with --time-format '%d.%m.%Y %H:%M'; \
                 the columns are: {}",
                self.listing()
            )));
        };
        let column = Named {
            index,
            name: self.names[index].clone(),
        };
        let format = match &wishes.time_format {
            Some(format) => format.clone(),
            None => self.time_format(&column)?,
        };
        Ok((column, format))
    }

    /// The time format of most fields of a column. A few broken fields do not prevent detection; they are reported
    /// later, as bad rows.
    fn likely_format(&self, index: usize) -> Option<TimeFormat> {
        let readable = |text: &str| TimeFormat::detect([text]).is_some();
        if !self.mostly(index, readable) {
            return None;
        }
        TimeFormat::detect(self.fields(index).filter(|text| readable(text)))
    }

    /// Whether at least half of the column's fields match `is_so`, and at least one field does.
    fn mostly(&self, index: usize, is_so: impl Fn(&str) -> bool) -> bool {
        let (mut yes, mut all) = (0_usize, 0_usize);
        for text in self.fields(index) {
            yes += usize::from(is_so(text));
            all += 1;
        }
        yes > 0 && yes * 2 >= all
    }

    fn time_format(&self, column: &Named) -> Outcome<TimeFormat> {
        if let Some(format) = self.likely_format(column.index) {
            self.refuse_near_1970(column, &format)?;
            return Ok(format);
        }
        let example = self.fields(column.index).next().unwrap_or("");
        Err(Failure::bad_input(format!(
            "column {} does not contain times: `{}`",
            shown(column),
            printable(example)
        ))
        .hint("give its format: --time-format '%d.%m.%Y %H:%M', or s, ms, us, ns"))
    }

    /// Rejects times that all lie in the first days of 1970: they count from another date or in another unit.
    fn refuse_near_1970(&self, column: &Named, format: &TimeFormat) -> Outcome {
        if !matches!(format, TimeFormat::Epoch(_)) {
            return Ok(());
        }
        let reader = TimeReader::new(format.clone(), TimeZone::UTC);
        let is_near = |text: &str| {
            let read = reader.read(text).map(Moment::compatible);
            read.is_ok_and(|time| time.abs() < NEAR_1970)
        };
        let readable = |text: &&str| reader.read(text).is_ok();
        let mut fields = self.fields(column.index).filter(readable);
        let Some(first) = fields.next() else {
            return Ok(());
        };
        let last = self
            .fields(column.index)
            .filter(readable)
            .last()
            .unwrap_or(first);
        match is_near(first) && fields.all(is_near) {
            true => Err(near_1970(&shown(column), first, last, &format.to_string())),
            false => Ok(()),
        }
    }

    /// The columns that are not time, tag or value. A column without a name is listed only if it contains text;
    /// otherwise it holds row numbers.
    fn others(&self, time: &Named, tags: &[Named], values: &[Named]) -> Vec<LeftOut> {
        let taken = |index| {
            [time]
                .into_iter()
                .chain(tags)
                .chain(values)
                .any(|c| c.index == index)
        };
        (0..self.names.len())
            .filter(|index| !taken(*index))
            .filter(|index| {
                !self.unnamed[*index]
                    || self.fields(*index).any(|text| text.parse::<f64>().is_err())
            })
            .map(|index| {
                let (numbers, others) = self.numbers_and_others(index);
                LeftOut {
                    name: self.names[index].clone(),
                    numbers,
                    cells: numbers + others,
                }
            })
            .collect()
    }

    /// Number of cells of a column that are numbers, and number of its other cells that are not null.
    fn numbers_and_others(&self, index: usize) -> (usize, usize) {
        let is_number = |text: &&str| text.parse::<f64>().is_ok();
        let numbers = self.fields(index).filter(is_number).count();
        (numbers, self.fields(index).count() - numbers)
    }

    /// An example cell of a column: the first that is not a number, or else the first.
    fn example(&self, index: usize) -> Option<&str> {
        let is_word = |text: &&str| text.parse::<f64>().is_err();
        let word = self.fields(index).find(is_word);
        word.or_else(|| self.fields(index).next())
    }

    fn numeric(&self, time: &Named, tags: &[Named]) -> Outcome<Vec<Named>> {
        let taken = |index: usize| index == time.index || tags.iter().any(|t| t.index == index);
        let numeric: Vec<Named> = (0..self.names.len())
            .filter(|index| !taken(*index))
            .filter(|index| !self.unnamed[*index] || self.fields(*index).next().is_some())
            .filter(|index| {
                // At least half of the cells must be numbers; the others are reported later, as bad cells.
                let (numbers, others) = self.numbers_and_others(*index);
                others <= numbers
            })
            .map(|index| Named {
                index,
                name: self.names[index].clone(),
            })
            .collect();
        if numeric.is_empty() {
            let others = (0..self.names.len()).filter(|index| !taken(*index));
            let cells: Vec<_> = others
                .map(|index| (self.names[index].as_str(), self.example(index)))
                .collect();
            return Err(no_numbers(&cells));
        }
        let is_named = |column: &Named| !self.unnamed[column.index];
        let only_numbers = !numeric.iter().any(is_named);
        Ok(numeric
            .into_iter()
            .filter(|column| only_numbers || is_named(column))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;

    const NAMES: [&str; 5] = ["site", "when", "temp", "note", "gust"];

    fn decide(wishes: &Wishes) -> Outcome<Layout> {
        let names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
        let sample = [
            ByteRecord::from(vec!["A", "2014-06-01T00:00:00Z", "1.5", "fine", "NA"]),
            ByteRecord::from(vec!["B", "2014-06-01T01:00:00Z", "NA", "ok", ""]),
        ];
        Layout::decide(&names, &sample, wishes, &Nulls::default())
    }

    fn names(columns: &[Named]) -> Vec<&str> {
        columns.iter().map(|column| column.name.as_str()).collect()
    }

    #[test]
    fn found_without_a_word() {
        let layout = decide(&Wishes::default()).unwrap();
        assert_eq!(layout.time.index, 1);
        assert_eq!(*layout.reader.format(), TimeFormat::Iso);
        // A column that has only nulls in the sample may hold numbers later, so it is a value column.
        assert_eq!(names(&layout.values), ["temp", "gust"]);
        let left_out: Vec<_> = layout.left_out.iter().map(|own| &own.name[..]).collect();
        assert_eq!(left_out, ["site", "note"]);
    }

    #[test]
    fn by_header_number_and_new_name() {
        let layout = decide(&Wishes {
            time: Some("2".into()),
            tags: vec!["site=airport".into()],
            values: vec!["3=temperature".into(), "gust".into()],
            ..Wishes::default()
        })
        .unwrap();
        assert_eq!(names(&layout.tags), ["airport"]);
        assert_eq!(names(&layout.values), ["temperature", "gust"]);
        assert_eq!(layout.values[0].index, 2);
    }

    #[test]
    fn wrong_wishes_get_an_answer() {
        let failure = |wishes: Wishes| decide(&wishes).unwrap_err();
        let missing = failure(Wishes {
            tags: vec!["sight".into()],
            ..Wishes::default()
        });
        assert_eq!(missing.exit, Exit::NotFound);
        assert!(missing.hint.unwrap().contains("1=site"));
        let double = failure(Wishes {
            values: vec!["when".into()],
            ..Wishes::default()
        });
        assert_eq!(double.exit, Exit::Usage);
        let same = failure(Wishes {
            values: vec!["3".into(), "gust=temp".into()],
            ..Wishes::default()
        });
        assert!(same.hint.unwrap().contains("--value 5=other_name"));
        let no_time = failure(Wishes {
            time: Some("note".into()),
            ..Wishes::default()
        });
        assert_eq!(no_time.exit, Exit::BadInput);
        assert!(no_time.message.contains("`fine`"));
        assert_eq!(
            failure(Wishes {
                tags: vec!["0".into()],
                ..Wishes::default()
            })
            .exit,
            Exit::NotFound
        );
    }
}
