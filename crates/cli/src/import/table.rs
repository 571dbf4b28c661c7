//! A sample of an input as a table: its first rows and the names of its columns.

use crate::exit::{Failure, Outcome};
use crate::import::digits::Digits;
use crate::import::field::{Nulls, boolean, field};
use crate::output::printable;
use csv::ByteRecord;
use std::collections::HashSet;

/// A column of the input that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Index of the column's field in a record.
    pub index: usize,
    /// Name of the column in the database.
    pub name: String,
}

/// The names of the columns of an input.
#[derive(Debug)]
pub(crate) struct Names {
    /// The names in the header; `column1`, `column2` and so on where the header has none.
    written: Vec<String>,
    /// The names in the database, which differ from each other: a repeated name has a number after it.
    pub own: Vec<String>,
    /// For each column, whether the header lacks its name: an index written by pandas, or an empty column after a
    /// trailing separator.
    pub unnamed: Vec<bool>,
}

impl Names {
    pub(crate) fn new(header: &[String]) -> Self {
        let (written, unnamed): (Vec<String>, Vec<bool>) = header
            .iter()
            .enumerate()
            .map(|(index, name)| match name.is_empty() {
                true => (format!("column{}", index + 1), true),
                false => (name.clone(), false),
            })
            .unzip();
        let mut taken: HashSet<String> = written.iter().cloned().collect();
        let mut seen = HashSet::new();
        let own = written.iter().map(|name| {
            if seen.insert(name.clone()) {
                return name.clone();
            }
            let mut numbers = 2_u64..;
            let free = numbers.find_map(|number| {
                let other = format!("{name}_{number}");
                taken.insert(other.clone()).then_some(other)
            });
            free.unwrap_or_else(|| name.clone())
        });
        let own = own.collect();
        Self {
            written,
            own,
            unnamed,
        }
    }

    /// Whether the column has another name in the database than in the header, because the name occurs before.
    pub(crate) fn is_repeated(&self, index: usize) -> bool {
        self.own[index] != self.written[index]
    }

    pub(crate) fn written(&self, index: usize) -> &str {
        &self.written[index]
    }

    pub(crate) fn len(&self) -> usize {
        self.own.len()
    }
}

pub(crate) fn shown(column: &Named) -> String {
    format!("{} `{}`", column.index + 1, printable(&column.name))
}

/// A sample of the input.
pub(crate) struct Table<'a> {
    pub names: &'a Names,
    pub sample: &'a [ByteRecord],
    pub nulls: &'a Nulls,
}

impl<'a> Table<'a> {
    /// Finds a column by its header or number, which `=NAME` may follow.
    pub(crate) fn find(&self, wish: &str) -> Outcome<Named> {
        if let Some(index) = self.index_of(wish)? {
            return Ok(self.named(index));
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

    pub(crate) fn named(&self, index: usize) -> Named {
        Named {
            index,
            name: self.names.own[index].clone(),
        }
    }

    /// The index of the column with this header or number.
    pub(crate) fn index_of(&self, wish: &str) -> Outcome<Option<usize>> {
        let names = self.names.written.iter().enumerate();
        let mut found = names.filter(|(_, name)| *name == wish);
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
        if let Some(index) = self.names.own.iter().position(|name| name == wish) {
            return Ok(Some(index));
        }
        let number = wish
            .parse::<usize>()
            .ok()
            .and_then(|number| number.checked_sub(1));
        Ok(number.filter(|index| *index < self.names.len()))
    }

    pub(crate) fn listing(&self) -> String {
        const SHOWN: usize = 40;
        let names: Vec<String> = self
            .names
            .own
            .iter()
            .take(SHOWN)
            .enumerate()
            .map(|(index, name)| format!("{}={}", index + 1, printable(name)))
            .collect();
        let more = if self.names.len() > SHOWN { " ..." } else { "" };
        names.join(" ") + more
    }

    /// The fields of a column in the sample that are not null.
    pub(crate) fn fields(&self, index: usize) -> impl Iterator<Item = &'a str> {
        let (sample, nulls) = (self.sample, self.nulls);
        sample
            .iter()
            .filter_map(move |record| field(record, index).ok())
            .filter(move |text| !nulls.contains(text))
    }

    /// Whether at least half of the column's fields match `is_so`, and at least one field does.
    pub(crate) fn mostly(&self, index: usize, is_so: impl Fn(&str) -> bool) -> bool {
        let (mut yes, mut all) = (0_usize, 0_usize);
        for text in self.fields(index) {
            yes += usize::from(is_so(text));
            all += 1;
        }
        yes > 0 && yes * 2 >= all
    }

    /// Number of cells of a column that are numbers, and number of its other cells that are not null.
    pub(crate) fn numbers_and_others(&self, index: usize, digits: Digits) -> (usize, usize) {
        let numbers = self.fields(index).filter(|text| is_number(text, digits));
        let numbers = numbers.count();
        (numbers, self.fields(index).count() - numbers)
    }

    /// Whether a column holds row numbers, as pandas and R write them: the first column, with whole numbers that
    /// increase.
    pub(crate) fn holds_row_numbers(&self, index: usize) -> bool {
        let numbers: Option<Vec<i64>> = self.fields(index).map(|text| text.parse().ok()).collect();
        index == 0 && numbers.is_some_and(|numbers| numbers.is_sorted_by(|a, b| a < b))
    }

    /// Whether all cells of a column that are not null are true or false, and there is one.
    pub(crate) fn is_boolean(&self, index: usize) -> bool {
        let mut fields = self.fields(index).peekable();
        fields.peek().is_some() && fields.all(|text| boolean(text).is_some())
    }

    /// An example cell of a column: the first that is not a number, or else the first.
    pub(crate) fn example(&self, index: usize) -> Option<&'a str> {
        let is_word = |text: &&str| text.parse::<f64>().is_err();
        let word = self.fields(index).find(is_word);
        word.or_else(|| self.fields(index).next())
    }
}

pub(crate) fn is_number(text: &str, digits: Digits) -> bool {
    digits
        .plain(text)
        .is_some_and(|plain| plain.parse::<f64>().is_ok())
}
