//! Series of several columns in the model. Rows hold values; texts are stored in full, not as numbers of texts.

use super::digest::Digest;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tidalite::{Column, ColumnType, Decimal, MergePolicy, Result, Schema, Series, Unit, Value};
use tidalite_base::checksum;

/// A row: one value for each column.
pub type WideRow = Arc<[Value]>;

/// A series with columns of any type.
#[derive(Clone, Debug)]
pub struct Wide {
    /// The columns of the series; more may be added later.
    pub columns: Vec<Column>,
    /// The current merge policy, which decides about a row whose time already exists.
    pub merge: MergePolicy,
    /// Rows by time; rows at one time are in order of arrival. No entry is empty.
    pub rows: BTreeMap<i64, Vec<WideRow>>,
}

impl Wide {
    pub(crate) fn schema(&self) -> Schema {
        let columns = self.columns.iter().cloned();
        columns.fold(Schema::new(Unit::Nanos, []), Schema::with)
    }

    /// Number of rows of the series.
    pub(crate) fn count(&self) -> u64 {
        self.rows.values().map(|rows| rows.len() as u64).sum()
    }

    /// Applies an insert to the model, and checks that the result `done` of the insert follows the merge policy.
    pub(crate) fn inserted(&mut self, time: i64, row: WideRow, done: Result<()>) -> Result<()> {
        match self.merge {
            MergePolicy::Error if self.rows.contains_key(&time) => {
                return match done {
                    Err(error) if error.time() == Some(time) => Ok(()),
                    Ok(()) => panic!("a row at {time} is taken twice"),
                    // The insert may fail with a disk error before the database checks the time.
                    Err(error) => Err(error),
                };
            }
            MergePolicy::KeepFirst => {
                self.rows.entry(time).or_insert_with(|| vec![row]);
            }
            MergePolicy::KeepAll => self.rows.entry(time).or_default().push(row),
            MergePolicy::KeepDistinct => {
                let there = self.rows.entry(time).or_default();
                if !there.iter().any(|other| same_row(other, &row)) {
                    there.push(row);
                }
            }
            _ => {
                self.rows.insert(time, vec![row]);
            }
        }
        done
    }

    /// Adds a column. In existing rows its value is null, or zero if the column is not nullable.
    pub(crate) fn widen(&mut self, column: Column) {
        let value = match column.ty {
            _ if column.nullable => Value::Null,
            ColumnType::String => Value::String(String::new()),
            ColumnType::Bytes => Value::Bytes(Vec::new()),
            ColumnType::Guid => Value::Guid([0; 16]),
            _ => column.value(0),
        };
        for row in self.rows.values_mut().flatten() {
            *row = row.iter().chain([&value]).cloned().collect();
        }
        self.columns.push(column);
    }

    pub(crate) fn fold(&self, digest: &mut Digest) {
        head(&self.columns, self.merge, digest);
        for (&time, rows) in &self.rows {
            for row in rows {
                digest.word(time as u64);
                row.iter().for_each(|value| digest.word(print_of(value)));
            }
        }
    }
}

/// True if two values are equal; floats are compared by their bits.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::F64(a), Value::F64(b)) => a.to_bits() == b.to_bits(),
        _ => a == b,
    }
}

pub(crate) fn same_row(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// True if the schema of a series differs from the default schema.
pub(crate) fn is_wide(series: &Series<'_>) -> bool {
    series.info().schema != Schema::point()
}

fn head(columns: &[Column], merge: MergePolicy, digest: &mut Digest) {
    digest.bytes(merge.name().as_bytes());
    for column in columns {
        digest.bytes(column.name.as_bytes());
        digest.bytes(column.ty.name().as_bytes());
        digest.word(u64::from(column.nullable));
    }
}

/// A 64-bit hash of a value.
fn print_of(value: &Value) -> u64 {
    let number = |kind: u8, bits: u64| {
        let mut bytes = [kind; 9];
        bytes[1..].copy_from_slice(&bits.to_le_bytes());
        checksum(&bytes)
    };
    match value {
        Value::Null => 1,
        Value::F64(x) => number(1, x.to_bits()),
        Value::I64(x) => number(2, *x as u64),
        Value::U64(x) => number(3, *x),
        Value::Bool(x) => number(4, u64::from(*x)),
        Value::Decimal(Decimal { units, scale }) => number(5 + scale, *units as u64),
        Value::String(text) => checksum(text.as_bytes()).rotate_left(1),
        Value::Bytes(bytes) => checksum(bytes).rotate_left(2),
        Value::Guid(bytes) => checksum(bytes).rotate_left(3),
        other => panic!("{other:?} is of a type that the model does not know"),
    }
}

/// Adds the content of a series to a digest, as [`Wide::fold`] does for the model.
pub(crate) fn fold(series: &Series<'_>, digest: &mut Digest) -> Result<()> {
    let info = series.info();
    let columns = &info.schema.columns;
    head(columns, info.merge, digest);
    // The hashes of texts are cached, because texts occur many times.
    let (mut known, mut failed) = (HashMap::new(), Ok(()));
    let mut print = |c: usize, word: u64| -> Result<u64> {
        if !columns[c].ty.is_text() {
            return Ok(print_of(&columns[c].value(word)));
        }
        if let Some(&print) = known.get(&(c, word)) {
            return Ok(print);
        }
        let print = print_of(&series.value(c, word)?);
        known.insert((c, word), print);
        Ok(print)
    };
    series.query(..).for_each(|time, words| {
        digest.word(time as u64);
        for (c, &word) in words.iter().enumerate() {
            match print(c, word) {
                Ok(print) => digest.word(print),
                Err(error) => failed = Err(error),
            }
        }
    })?;
    failed
}

/// Reads the content of a series into a model.
pub(crate) fn wide_of(series: &Series<'_>) -> Result<Wide> {
    let info = series.info();
    let mut wide = Wide {
        columns: info.schema.columns.clone(),
        merge: info.merge,
        rows: BTreeMap::new(),
    };
    let mut failed = Ok(());
    series.query(..).for_each(|time, words| {
        let values = words.iter().enumerate();
        let row: Result<WideRow> = values.map(|(c, &word)| series.value(c, word)).collect();
        match row {
            Ok(row) => wide.rows.entry(time).or_default().push(row),
            Err(error) => failed = Err(error),
        }
    })?;
    failed.map(|()| wide)
}

/// Describes the first difference between two contents of a series, for error messages.
pub(crate) fn differs(own: Option<&Arc<Wide>>, found: Option<&Arc<Wide>>) -> Option<String> {
    let (Some(own), Some(found)) = (own, found) else {
        return (own.is_some() != found.is_some())
            .then(|| format!("is there: {}", found.is_some()));
    };
    if own.columns != found.columns || own.merge != found.merge {
        let of = |wide: &Wide| (wide.columns.len(), wide.merge.name());
        return Some(format!(
            "columns and policy are {:?}, were {:?}",
            of(found),
            of(own)
        ));
    }
    let times = own.rows.keys().chain(found.rows.keys());
    let rows = |wide: &Wide, time: &i64| wide.rows.get(time).cloned().unwrap_or_default();
    let differ = |time: &&i64| {
        let (own, found) = (rows(own, time), rows(found, time));
        own.len() != found.len() || !own.iter().zip(&found).all(|(a, b)| same_row(a, b))
    };
    let first = times.filter(differ).min()?;
    let [own, found] = [own, found].map(|wide| rows(wide, first));
    Some(format!("at {first} are {found:?}, were {own:?}"))
}
