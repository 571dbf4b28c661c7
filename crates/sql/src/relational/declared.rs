//! Metrics that were created with CREATE TABLE ... WITH (series = true). Until they have series, their tags and columns
//! are stored as a relation without rows, whose primary key consists of the time and the tags.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::table::{DECLARATION as PREFIX, RelationTable};
use std::collections::BTreeSet;
use tidalite::relation::{self, ColumnType as CellType};
use tidalite::{AnyRead, Column, ColumnType, Schema, Unit};

/// Maximum number of digits after the decimal point in a column of a series.
const SCALE_MAX: u8 = 18;

/// The tags and columns of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declared {
    pub(crate) tags: Vec<String>,
    pub(crate) schema: Schema,
}

/// The name of the relation that declares a metric.
pub(crate) fn relation_name(metric: &str) -> String {
    format!("{PREFIX}{metric}")
}

/// The names of the declared metrics.
pub(crate) fn metrics(snapshot: &AnyRead) -> Result<BTreeSet<String>> {
    let names = RelationTable::all_names(snapshot)?;
    let metrics = names.iter().filter_map(|name| name.strip_prefix(PREFIX));
    Ok(metrics.map(str::to_owned).collect())
}

/// The declaration of a metric; `None` if it has none.
pub(crate) fn find(snapshot: &AnyRead, metric: &str) -> Result<Option<Declared>> {
    let name = relation_name(metric);
    if snapshot.table_types(&name)?.is_none() {
        return Ok(None);
    }
    let Some(relation) = snapshot.relation(&name)? else {
        return Ok(None);
    };
    of(metric, relation.schema()).map(Some)
}

/// Reads the declaration of a metric from its relation.
///
/// # Errors
/// The first column of the relation is not a time, or a column has a type that series do not support.
pub(crate) fn of(metric: &str, relation: &relation::Schema) -> Result<Declared> {
    let problem =
        |problem: String| Error::new(ErrorKind::Plan, format!("series {metric}: {problem}"));
    let unit = match relation.columns.first() {
        Some(relation::Column {
            name,
            kind: CellType::Time { unit, .. },
            ..
        }) if name == "time" => match unit {
            relation::TimeUnit::Seconds => Unit::Seconds,
            relation::TimeUnit::Millis => Unit::Millis,
            relation::TimeUnit::Micros => Unit::Micros,
            relation::TimeUnit::Nanos => Unit::Nanos,
        },
        _ => {
            return Err(problem(
                "the first column must be time, a TIMESTAMP".to_owned(),
            ));
        }
    };
    let (mut tags, mut columns) = (Vec::new(), Vec::new());
    for column in &relation.columns[1..] {
        let name = &column.name;
        if relation.primary_key.contains(name) {
            if column.kind != CellType::Text {
                return Err(problem(format!("tag {name} must be TEXT")));
            }
            tags.push(name.clone());
            continue;
        }
        let ty = match column.kind {
            CellType::Bool => ColumnType::Bool,
            CellType::I16 | CellType::I32 | CellType::I64 => ColumnType::I64,
            CellType::U64 => ColumnType::U64,
            CellType::F32 => ColumnType::F32,
            CellType::F64 => ColumnType::F64,
            CellType::Decimal { scale, .. } if scale <= SCALE_MAX => ColumnType::Decimal(scale),
            CellType::Text => ColumnType::String,
            CellType::Bytes => ColumnType::Bytes,
            CellType::Guid => ColumnType::Guid,
            other => {
                return Err(problem(format!("column {name} cannot be a {other}")));
            }
        };
        columns.push(match column.not_null {
            true => Column::new(name, ty),
            false => Column::nullable(name, ty),
        });
    }
    if columns.is_empty() {
        return Err(problem("there is no column of values".to_owned()));
    }
    Ok(Declared {
        tags,
        schema: Schema { unit, columns },
    })
}
