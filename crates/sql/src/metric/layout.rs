//! The table of a metric: its columns, and the series that contain its rows.
//!
//! ```text
//! time | a column per tag | a column per value column of the series
//! ```
//!
//! A *member* is a set of series with the same tags, from which a row takes its values; the rows of these series are
//! joined on their time. In the table of a single metric every member has exactly one series. In a wide table, which
//! combines several metrics, a member has at most one series of each metric.
//!
//! Invariants
//! 1. Members are sorted by the values of their tags, in the order of the tag columns; a missing tag comes first.
//! 2. The values of a tag are sorted, so that their numbers sort like the values.

use crate::error::{Error, ErrorKind, Result};
use crate::types::{Clock, arrow_unit, column_type, common_type, nanos_of, time_type};
use arrow::array::{Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, SchemaRef, TimeUnit};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::SeriesInfo;

/// The name of the column of times.
pub(crate) const TIME: &str = "time";

/// If a series has a column with this name, the column of the wide table is named after the metric alone.
const MAIN: &str = "value";

/// A table whose rows are rows of series.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) schema: SchemaRef,
    pub(crate) unit: TimeUnit,
    pub(crate) tags: Vec<TagColumn>,
    pub(crate) members: Vec<Member>,
    pub(crate) sources: Vec<Source>,
    /// The indexes of the value columns, by [`Source::column_name`].
    places: BTreeMap<String, usize>,
}

/// The values of a tag.
#[derive(Debug)]
pub(crate) struct TagColumn {
    pub(crate) key: String,
    pub(crate) values: Arc<StringArray>,
}

/// The series with one combination of tags.
#[derive(Debug)]
pub(crate) struct Member {
    /// The number of the value of each tag; `None` for a tag that the series lack.
    pub(crate) tags: Vec<Option<i32>>,
    pub(crate) parts: Vec<Part>,
    /// For each value column of the table, the part and its column; `None` if the series lack it.
    pub(crate) columns: Vec<Option<(usize, usize)>>,
}

/// A series of a member.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) info: Arc<SeriesInfo>,
    pub(crate) clock: Clock,
}

/// The role of a column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Time,
    Tag(usize),
    Value(usize),
}

/// A metric of a table, with the prefix of its columns in the table. The only metric of a table has no prefix.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) metric: String,
    pub(crate) leaf: Option<String>,
    /// The tags and columns with which the metric was created, if it was created before its series.
    pub(crate) declared: Option<(Vec<String>, tidalite::Schema)>,
    pub(crate) series: Vec<Arc<SeriesInfo>>,
}

impl Source {
    /// The schemas of the series, and the schema with which the metric was created.
    fn schemas(&self) -> impl Iterator<Item = &tidalite::Schema> {
        let declared = self.declared.iter().map(|(_, schema)| schema);
        declared.chain(self.series.iter().map(|info| &info.schema))
    }

    /// The schema for a new series.
    pub(crate) fn template(&self) -> Option<&tidalite::Schema> {
        let declared = self.declared.as_ref().map(|(_, schema)| schema);
        declared.or_else(|| self.series.last().map(|info| &info.schema))
    }

    /// The name in the table for a column of the metric's series.
    fn column_name(&self, column: &str) -> String {
        match &self.leaf {
            None => column.to_owned(),
            Some(leaf) if column == MAIN => leaf.clone(),
            Some(leaf) => format!("{leaf}.{column}"),
        }
    }
}

impl Layout {
    /// Creates the table of these metrics.
    ///
    /// # Errors
    /// Two columns of a wide table would have the same name.
    pub(crate) fn new(table: &str, sources: Vec<Source>) -> Result<Self> {
        let series = || sources.iter().flat_map(|source| &source.series);
        let declared = || sources.iter().filter_map(|source| source.declared.as_ref());
        let units = series().map(|info| &info.schema);
        let units = units.chain(declared().map(|(_, schema)| schema));
        let units = units.map(|schema| arrow_unit(schema.unit));
        let unit = units
            .min_by_key(|&unit| nanos_of(unit))
            .unwrap_or(TimeUnit::Nanosecond);
        let keys: BTreeSet<&str> = series()
            .filter_map(|info| info.name.as_ref())
            .flat_map(|name| name.tags().iter().map(|(key, _)| key.as_str()))
            .chain(declared().flat_map(|(tags, _)| tags.iter().map(String::as_str)))
            .collect();
        let tags: Vec<TagColumn> = keys
            .iter()
            .map(|key| TagColumn::new(key, series()))
            .collect();
        let columns = value_columns(&sources);
        let is_wide = sources.iter().any(|source| source.leaf.is_some());
        let names = tags.iter().map(|tag| tag.key.as_str());
        let names = names.chain(columns.iter().map(|(name, _)| name.as_str()));
        let names = match is_wide {
            true => distinct(table, names)?,
            false => renamed(names, tags.len()),
        };
        let mut fields = vec![Field::new(TIME, time_type(unit), false)];
        for (at, name) in names.into_iter().enumerate() {
            fields.push(match at.checked_sub(tags.len()) {
                None => tags[at].field(&name),
                Some(column) => Field::new(name, columns[column].1.clone(), true),
            });
        }
        let places: BTreeMap<String, usize> = columns
            .into_iter()
            .enumerate()
            .map(|(at, (name, _))| (name, at))
            .collect();
        Ok(Self {
            schema: Arc::new(Schema::new(fields)),
            unit,
            members: members(&sources, &tags, &places, unit),
            tags,
            sources,
            places,
        })
    }

    /// The value column of the table that corresponds to a column of a metric's series.
    pub(crate) fn place(&self, source: &Source, column: &str) -> Option<usize> {
        self.places.get(&source.column_name(column)).copied()
    }

    /// The value columns of the table that belong to a metric.
    pub(crate) fn columns_of(&self, source: &Source) -> Vec<usize> {
        let schemas = source.schemas();
        let names = schemas.flat_map(|schema| schema.columns.iter().map(|column| &column.name));
        let places: BTreeSet<usize> = names.filter_map(|name| self.place(source, name)).collect();
        places.into_iter().collect()
    }

    /// The role of a column of the table.
    pub(crate) fn role(&self, column: usize) -> Role {
        match column.checked_sub(1) {
            None => Role::Time,
            Some(tag) if tag < self.tags.len() => Role::Tag(tag),
            Some(other) => Role::Value(other - self.tags.len()),
        }
    }

    /// The number of the column with this name.
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.schema.index_of(name).ok()
    }

    /// The tags of all members, one row for each member.
    pub(crate) fn tag_rows(&self) -> Result<RecordBatch> {
        let fields = self.schema.fields()[1..=self.tags.len()].to_vec();
        let keys = |tag: usize| self.members.iter().map(|member| member.tags[tag]).collect();
        let columns = self.tags.iter().enumerate();
        let columns = columns
            .map(|(at, tag)| tag.array(keys(at)))
            .collect::<Result<_>>()?;
        let rows = arrow::array::RecordBatchOptions::new().with_row_count(Some(self.members.len()));
        let schema = Arc::new(Schema::new(fields));
        Ok(RecordBatch::try_new_with_options(schema, columns, &rows)?)
    }

    /// Whether a row of this table can combine several series.
    pub(crate) fn is_joined(&self) -> bool {
        self.members.iter().any(|member| member.parts.len() > 1)
    }
}

impl TagColumn {
    fn new<'s>(key: &str, series: impl Iterator<Item = &'s Arc<SeriesInfo>>) -> Self {
        let values: BTreeSet<&str> = series
            .filter_map(|info| info.name.as_ref()?.tag(key))
            .collect();
        Self {
            key: key.to_owned(),
            values: Arc::new(StringArray::from_iter_values(values)),
        }
    }

    fn field(&self, name: &str) -> Field {
        let ty = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        Field::new(name, ty, true)
    }

    /// The number of a value.
    pub(crate) fn number(&self, value: &str) -> Option<i32> {
        let (mut low, mut high) = (0, self.values.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.values.value(middle).cmp(value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return i32::try_from(middle).ok(),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The array of the values with these numbers.
    pub(crate) fn array(&self, numbers: Int32Array) -> Result<ArrayRef> {
        let values = Arc::clone(&self.values) as ArrayRef;
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(
            numbers, values,
        )?))
    }
}

/// The names and types of the value columns, in the order in which they occur in the series.
fn value_columns(sources: &[Source]) -> Vec<(String, DataType)> {
    let mut columns: Vec<(String, DataType)> = Vec::new();
    for source in sources {
        let mut own: Vec<(&str, DataType)> = Vec::new();
        let mut last: Option<&tidalite::Schema> = None;
        for schema in source.schemas() {
            // Most series of a metric have the same columns.
            if last == Some(schema) {
                continue;
            }
            last = Some(schema);
            for column in &schema.columns {
                let ty = column_type(column.ty);
                match own.iter_mut().find(|(name, _)| *name == column.name) {
                    Some((_, known)) => *known = common_type(known, &ty),
                    None => own.push((&column.name, ty)),
                }
            }
        }
        columns.extend(
            own.into_iter()
                .map(|(name, ty)| (source.column_name(name), ty)),
        );
    }
    columns
}

/// Returns the names of the columns other than the time.
///
/// # Errors
/// Two names are equal, or one equals the name of the time column.
fn distinct<'n>(table: &str, names: impl Iterator<Item = &'n str>) -> Result<Vec<String>> {
    let mut taken = BTreeSet::from([TIME]);
    let names: Vec<&str> = names.collect();
    for name in &names {
        if !taken.insert(name) {
            let problem = format!(
                "table {table} would have two columns called {name}: a metric {table}.{name}, and a tag, the time or another metric; \
                 query the metric as \"{table}.{name}\""
            );
            return Err(Error::new(ErrorKind::Plan, problem));
        }
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns the names of the columns other than the time. A tag or a value column whose name is already in use gets a
/// suffix.
fn renamed<'n>(names: impl Iterator<Item = &'n str>, tags: usize) -> Vec<String> {
    let mut taken = BTreeSet::from([TIME.to_owned()]);
    let mut unique = Vec::new();
    for (at, name) in names.enumerate() {
        let mut name = name.to_owned();
        while !taken.insert(name.clone()) {
            name.push_str(if at < tags { "_tag" } else { "_value" });
        }
        unique.push(name);
    }
    unique
}

fn members(
    sources: &[Source],
    tags: &[TagColumn],
    places: &BTreeMap<String, usize>,
    unit: TimeUnit,
) -> Vec<Member> {
    let mut members: BTreeMap<Vec<Option<i32>>, Vec<Member>> = BTreeMap::new();
    for (number, source) in sources.iter().enumerate() {
        for info in &source.series {
            let value = |tag: &TagColumn| tag.number(info.name.as_ref()?.tag(&tag.key)?);
            let key: Vec<Option<i32>> = tags.iter().map(value).collect();
            let found = members.entry(key.clone()).or_default();
            // Series of different metrics are joined; series of the same metric never are.
            if number == 0 || found.is_empty() {
                found.push(Member {
                    tags: key,
                    parts: Vec::new(),
                    columns: vec![None; places.len()],
                });
            }
            let at = if number == 0 { found.len() - 1 } else { 0 };
            found[at].add(source, info, places, unit);
        }
    }
    members.into_values().flatten().collect()
}

impl Member {
    /// Adds a series. Its columns become columns of the table, with the names of the table.
    fn add(
        &mut self,
        source: &Source,
        info: &Arc<SeriesInfo>,
        places: &BTreeMap<String, usize>,
        unit: TimeUnit,
    ) {
        let part = self.parts.len();
        for (number, column) in info.schema.columns.iter().enumerate() {
            let name = source.column_name(&column.name);
            if let Some(&place) = places.get(name.as_str()) {
                self.columns[place] = Some((part, number));
            }
        }
        self.parts.push(Part {
            info: Arc::clone(info),
            clock: Clock::new(info.schema.unit, unit),
        });
    }
}
