//! Assigns a role to each column of an input: time, tag or value.
//!
//! A column is given by its header or by its number, counted from 1; `=NAME` after it gives the column another name in
//! the database. Roles that the user does not set are found in a sample of the first rows: the time is the first column
//! whose fields mostly parse as times; values are all other columns in which at least half of the fields parse as
//! numbers, or all as true or false.

use crate::args::TypedColumn;
use crate::exit::{Failure, Outcome};
use crate::import::advice::{ambiguous_number, no_numbers};
use crate::import::digits::{Detected, Digits};
use crate::import::field::Nulls;
use crate::import::given::Given;
use crate::import::local_times::Policy;
use crate::import::table::{Named, Names, Table, shown};
use crate::import::time_columns::TimeColumns;
use crate::output::printable;
use crate::time::{Epoch, TimeFormat, TimeReader};
use csv::ByteRecord;
use jiff::tz::TimeZone;
use tidalite::{Column, ColumnType};

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
    /// The options `--skip`: columns that are not used.
    pub skipped: Vec<String>,
    /// The options `--decimal` and `--thousands`; detected if not given.
    pub digits: Option<Digits>,
    /// The option `--on-error null`: a bad cell of a value column is stored as null.
    pub bad_cells_are_null: bool,
    /// The types of all columns, if the input has any.
    pub given: Vec<Given>,
    /// Whether semicolons separate the fields of the input, as programs write them where commas separate decimals.
    pub has_semicolons: bool,
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

impl LeftOut {
    /// Whether all cells are numbers: such a column is not used if it has no name.
    pub(crate) fn is_numeric(&self) -> bool {
        self.numbers > 0 && self.numbers == self.cells
    }
}

/// The roles of all columns.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Number of fields of every record.
    pub width: usize,
    /// The column with the time, or several.
    pub time: TimeColumns,
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
    /// The separators in numbers.
    pub digits: Digits,
    /// For each of `values`, whether the column holds true and false; only for columns without a type.
    pub booleans: Vec<bool>,
    /// For each of `values`, the type that the input gives the column; empty if it gives none.
    pub given: Vec<Given>,
    /// Properties of the input that were detected and that the user should know about.
    pub notes: Vec<String>,
}

impl Layout {
    /// Assigns the roles. `names` is the header, or `column1`, `column2` and so on; `sample` are the first records.
    pub(crate) fn decide(
        names: &[String],
        sample: &[ByteRecord],
        wishes: &Wishes,
        nulls: &Nulls,
    ) -> Outcome<Self> {
        let names = &Names::new(names);
        let table = Table {
            names,
            sample,
            nulls,
        };
        let zone = wishes.zone.clone().unwrap_or(TimeZone::UTC);
        let skipped = wishes
            .skipped
            .iter()
            .map(|wish| Ok(table.find(wish)?.index))
            .collect::<Outcome<Vec<usize>>>()?;
        let (time, format) = match table.given_time(wishes, &skipped)? {
            Some(time) => (TimeColumns::one(time), TimeFormat::Iso),
            None => {
                let format = wishes.time_format.as_ref();
                table.time(wishes.time.as_deref(), format, &skipped)?
            }
        };
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
        let wished = match columns.is_empty() {
            true => {
                let wished = wishes.values.iter().map(|wish| table.find(wish));
                wished.collect::<Outcome<Vec<_>>>()?
            }
            false => columns,
        };
        // The JSON rows of this program have the parts of a series' name beside the name.
        let of_name = |index: usize| {
            let name = names.own[index].as_str();
            wishes.series.as_deref() == Some("series")
                && (name == "metric" || name.starts_with("tags."))
        };
        let taken = |index: usize| {
            time.contain(index)
                || of_name(index)
                || skipped.contains(&index)
                || tags.iter().any(|tag| tag.index == index)
        };
        let free: Vec<usize> = (0..names.len()).filter(|index| !taken(*index)).collect();
        let mut notes = Vec::new();
        let is_german =
            matches!(&format, TimeFormat::Pattern(pattern) if pattern.starts_with("%d.%m."));
        let may_have_commas = wishes.has_semicolons && is_german;
        let digits = match (wishes.digits, wished.is_empty()) {
            (Some(digits), _) => digits,
            _ if !wishes.given.is_empty() => Digits::default(),
            (None, true) => table.digits(&free, &typed, may_have_commas, &mut notes)?,
            (None, false) => {
                let wished: Vec<usize> = wished.iter().map(|column| column.index).collect();
                table.digits(&wished, &typed, may_have_commas, &mut notes)?
            }
        };
        let values = match wished.is_empty() {
            true if wishes.given.is_empty() => table.numeric(&free, digits)?,
            true => table.given_values(&free, &wishes.given)?,
            false => wished,
        };
        // Beside the name of the series, `export` writes its tags.
        let has_tags_twice = !wishes.given.is_empty() && wishes.series.is_some();
        let names_all = !wishes.values.is_empty() || !typed.is_empty() || has_tags_twice;
        let given = match wishes.given.is_empty() {
            true => Vec::new(),
            false => {
                let values = values.iter();
                let given = values.map(|column| table.given_value(column, &wishes.given));
                given.collect()
            }
        };
        let left_out = match !names_all {
            true => table.others(&free, &values, digits),
            false => Vec::new(),
        };
        let is_boolean = |column: &Named| match wishes.given.get(column.index) {
            Some(given) => *given == Given::Bool,
            None => typed.is_empty() && table.is_boolean(column.index),
        };
        if let (TimeFormat::Epoch(_), None) = (&format, &wishes.time_format) {
            notes.push(format!(
                "the times in column {} are read as {format}",
                shown(&time.first)
            ));
        }
        if let (Some(&other), None) = (time.others.first(), &wishes.time) {
            notes.push(format!(
                "the time consists of columns {} and {}",
                shown(&time.first),
                shown(&table.named(other))
            ));
        }
        let used = tags.iter().chain(&values);
        for column in used.filter(|column| column.name == names.own[column.index]) {
            if names.is_repeated(column.index) {
                notes.push(format!(
                    "the name `{}` occurs more than once: column {} becomes `{}`",
                    printable(names.written(column.index)),
                    column.index + 1,
                    printable(&column.name)
                ));
            }
        }
        let layout = Self {
            left_out,
            width: names.len(),
            time,
            reader: TimeReader::new(format, zone),
            tags,
            names_series: wishes.series.is_some(),
            booleans: values.iter().map(is_boolean).collect(),
            values,
            given,
            typed,
            digits,
            notes,
        };
        layout.refuse_double_use()?;
        layout.refuse_many_values()?;
        Ok(layout)
    }

    /// The roles of the parts of a line of the line protocol: a time, the name of a series, and a value.
    pub(crate) fn of_line_protocol(epoch: Epoch) -> Self {
        let named = |index, name: &str| Named {
            index,
            name: name.to_owned(),
        };
        Self {
            width: 3,
            time: TimeColumns::one(named(0, "time")),
            reader: TimeReader::new(TimeFormat::Epoch(epoch), TimeZone::UTC),
            tags: vec![named(1, "series")],
            names_series: true,
            values: vec![named(2, "value")],
            typed: Vec::new(),
            left_out: Vec::new(),
            digits: Digits::default(),
            booleans: vec![false],
            given: Vec::new(),
            notes: Vec::new(),
        }
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
            if self.time.contain(column.index) {
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

impl Table<'_> {
    /// Finds out how numbers are written in these columns. Columns of `typed` that hold no numbers do not count. With
    /// `may_have_commas`, commas are likely to separate decimals.
    fn digits(
        &self,
        columns: &[usize],
        typed: &[Column],
        may_have_commas: bool,
        notes: &mut Vec<String>,
    ) -> Outcome<Digits> {
        let has_numbers = |place: usize| match typed.get(place) {
            Some(column) => matches!(
                column.ty,
                ColumnType::F64 | ColumnType::F32 | ColumnType::Decimal(_)
            ),
            None => true,
        };
        let columns = columns.iter().enumerate();
        let columns = columns.filter(|(place, _)| has_numbers(*place));
        let cells =
            columns.flat_map(|(_, &index)| self.fields(index).map(move |text| (index, text)));
        let digits = match Digits::detect(cells, may_have_commas) {
            Detected::Sure(digits) => digits,
            Detected::Ambiguous(index, cell) => {
                return Err(ambiguous_number(&shown(&self.named(index)), &cell));
            }
        };
        if !digits.is_plain() {
            notes.push(format!("numbers are read with {digits}"));
        }
        Ok(digits)
    }

    /// Returns the columns that have no role and do not become values. A column without a name is not listed if it is
    /// empty or holds row numbers.
    fn others(&self, free: &[usize], values: &[Named], digits: Digits) -> Vec<LeftOut> {
        let is_value = |index: usize| values.iter().any(|value| value.index == index);
        free.iter()
            .copied()
            .filter(|index| !is_value(*index))
            .filter(|index| {
                let is_empty = self.fields(*index).next().is_none();
                !self.names.unnamed[*index] || !is_empty && !self.holds_row_numbers(*index)
            })
            .map(|index| {
                let (numbers, others) = self.numbers_and_others(index, digits);
                LeftOut {
                    name: self.names.own[index].clone(),
                    numbers,
                    cells: numbers + others,
                }
            })
            .collect()
    }

    /// The column of times of an input with types: the one that the user names, or the first one. `None` if the time is
    /// a column of another type, or several columns.
    fn given_time(&self, wishes: &Wishes, skipped: &[usize]) -> Outcome<Option<Named>> {
        if wishes.given.is_empty() {
            return Ok(None);
        }
        let is_time = |index: usize| wishes.given.get(index) == Some(&Given::Time);
        let column = match &wishes.time {
            Some(wish) if wish.contains(',') => None,
            Some(wish) => Some(self.find(wish)?),
            None => {
                let named = wishes.tags.iter().chain(&wishes.values);
                let named = named.map(|wish| Ok(self.find(wish)?.index));
                let named = named.collect::<Outcome<Vec<usize>>>()?;
                let is_free = |index: &usize| !skipped.contains(index) && !named.contains(index);
                let mut free = (0..self.names.len()).filter(is_free);
                free.find(|&index| is_time(index))
                    .map(|index| self.named(index))
            }
        };
        Ok(column.filter(|column| is_time(column.index)))
    }

    /// The columns that have no role yet and a type that values can have.
    fn given_values(&self, free: &[usize], given: &[Given]) -> Outcome<Vec<Named>> {
        let values = free.iter().filter(|&&index| given[index].is_value());
        let values: Vec<Named> = values.map(|&index| self.named(index)).collect();
        match values.is_empty() {
            true => Err(self.no_values(free)),
            false => Ok(values),
        }
    }

    /// The type of a column that was chosen for values. A text may hold numbers.
    fn given_value(&self, column: &Named, given: &[Given]) -> Given {
        let is_numeric = |text: &str| text.parse::<f64>().is_ok();
        match given[column.index] {
            Given::Text if self.mostly(column.index, is_numeric) => Given::Number,
            Given::Time | Given::Unused => Given::Text,
            given => given,
        }
    }

    fn no_values(&self, free: &[usize]) -> Failure {
        let cells = free.iter();
        let cells: Vec<_> = cells
            .map(|&index| (self.names.own[index].as_str(), self.example(index)))
            .collect();
        no_numbers(&cells)
    }

    /// The columns that have no role yet and hold numbers, or true and false.
    fn numeric(&self, free: &[usize], digits: Digits) -> Outcome<Vec<Named>> {
        let unnamed = &self.names.unnamed;
        let numeric: Vec<Named> = free
            .iter()
            .copied()
            .filter(|index| !unnamed[*index] || self.fields(*index).next().is_some())
            .filter(|index| {
                // At least half of the cells must be numbers; the others are reported later, as bad cells.
                let (numbers, others) = self.numbers_and_others(*index, digits);
                others <= numbers || self.is_boolean(*index)
            })
            .map(|index| self.named(index))
            .collect();
        if numeric.is_empty() {
            return Err(self.no_values(free));
        }
        let is_named = |column: &Named| !unnamed[column.index];
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
        assert_eq!(layout.time.first.index, 1);
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
