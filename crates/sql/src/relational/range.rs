//! Converts conditions on columns of a relation to ranges of its primary key or of an index.
//!
//! The ranges only determine which rows are read; the conditions are evaluated on these rows again.

use crate::relational::types::cell;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use std::ops::Bound;
use tidalite::relation::{Cell, ColumnType, KeyBounds, Schema};

impl Default for Allowed {
    fn default() -> Self {
        Self {
            values: None,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        }
    }
}

/// Maximum number of ranges of a scan, which is the product of the numbers of allowed values of the columns.
const RANGES_MAX: usize = 4096;

/// The rows that a scan reads.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ranges {
    /// The index; `None` for the primary key.
    pub(crate) index: Option<String>,
    /// Disjoint ranges.
    pub(crate) ranges: Vec<KeyBounds>,
    /// Number of columns whose values are fixed.
    pub(crate) columns: usize,
    /// Whether each range contains at most one row.
    pub(crate) is_unique: bool,
}

/// The values of a column that the conditions allow.
#[derive(Clone, Debug)]
struct Allowed {
    /// A list of values.
    values: Option<Vec<Cell>>,
    low: Bound<Cell>,
    high: Bound<Cell>,
}

impl Ranges {
    /// All rows.
    pub(crate) fn all() -> Self {
        Self {
            index: None,
            ranges: vec![KeyBounds::all()],
            columns: 0,
            is_unique: false,
        }
    }

    /// The smallest set of rows, as ranges, that contains all rows for which the conditions are true.
    pub(crate) fn of(schema: &Schema, filters: &[Expr]) -> Self {
        let mut allowed: Vec<Option<Allowed>> = vec![None; schema.columns.len()];
        for filter in filters.iter().flat_map(split_conjunction) {
            restrict(schema, filter, &mut allowed);
        }
        let has_key = !schema.primary_key.is_empty();
        let mut best = Self::all();
        let mut best_rank = (0, 0, false);
        let keys = std::iter::once((None, &schema.primary_key, true));
        let indexes = schema.indexes.iter();
        let indexes = indexes.map(|index| (Some(&index.name), &index.columns, index.unique));
        for (index, columns, unique) in keys.chain(indexes) {
            if index.is_none() && !has_key {
                continue;
            }
            let (found, has_range) = Self::on(schema, columns, &allowed);
            let is_unique = unique && !columns.is_empty() && found.columns == columns.len();
            let rank = (found.columns, usize::from(has_range), is_unique);
            if rank > best_rank && (found.columns > 0 || has_range) {
                best_rank = rank;
                best = Self {
                    index: index.cloned(),
                    is_unique,
                    ..found
                };
            }
        }
        best
    }

    /// The ranges of a key with these columns, and whether the last of the used columns has a range instead of fixed
    /// values.
    fn on(schema: &Schema, columns: &[String], allowed: &[Option<Allowed>]) -> (Self, bool) {
        let mut prefixes: Vec<Vec<Cell>> = vec![Vec::new()];
        let mut given = 0;
        let mut last = None;
        for column in columns {
            let allowed = schema
                .position(column)
                .and_then(|column| allowed[column].as_ref());
            let Some(allowed) = allowed else { break };
            let Some(values) = &allowed.values else {
                last = Some(allowed);
                break;
            };
            if prefixes.len() * values.len() > RANGES_MAX {
                break;
            }
            prefixes = prefixes
                .iter()
                .flat_map(|prefix| {
                    values.iter().map(|value| {
                        let mut prefix = prefix.clone();
                        prefix.push(value.clone());
                        prefix
                    })
                })
                .collect();
            given += 1;
        }
        let range = |prefix: Vec<Cell>| match last {
            None if prefix.is_empty() => KeyBounds::all(),
            None => KeyBounds::prefix(prefix),
            Some(allowed) => {
                let end = |bound: &Bound<Cell>| {
                    let with = |cell: &Cell| {
                        let mut cells = prefix.clone();
                        cells.push(cell.clone());
                        cells
                    };
                    match bound {
                        Bound::Included(cell) => Bound::Included(with(cell)),
                        Bound::Excluded(cell) => Bound::Excluded(with(cell)),
                        Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
                        Bound::Unbounded => Bound::Included(prefix.clone()),
                    }
                };
                KeyBounds::new(end(&allowed.low), end(&allowed.high))
            }
        };
        let ranges = prefixes.into_iter().map(range).collect();
        let found = Self {
            index: None,
            ranges,
            columns: given,
            is_unique: false,
        };
        (found, last.is_some())
    }
}

/// Restricts the allowed values of the column in a condition.
fn restrict(schema: &Schema, filter: &Expr, allowed: &mut [Option<Allowed>]) {
    match filter {
        Expr::BinaryExpr(BinaryExpr {
            op: Operator::Or, ..
        }) => {
            let mut values = Vec::new();
            if let Some(column) = alternatives(schema, filter, &mut values) {
                among(&mut allowed[column], values);
            }
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            if let Some((column, kind)) = column(schema, left)
                && let Some(value) = constant(kind, right)
            {
                compare(&mut allowed[column], kind, *op, value);
            } else if let Some((column, kind)) = column(schema, right)
                && let Some(value) = constant(kind, left)
                && let Some(op) = op.swap()
            {
                compare(&mut allowed[column], kind, op, value);
            }
        }
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            if let Some((column, kind)) = column(schema, expr)
                && let (Some(low), Some(high)) = (constant(kind, low), constant(kind, high))
            {
                compare(&mut allowed[column], kind, Operator::GtEq, low);
                compare(&mut allowed[column], kind, Operator::LtEq, high);
            }
        }
        Expr::InList(list) if !list.negated => {
            if let Some((column, kind)) = column(schema, &list.expr) {
                let values = list.list.iter().map(|item| constant(kind, item));
                if let Some(values) = values.collect::<Option<Vec<Cell>>>() {
                    among(&mut allowed[column], values);
                }
            }
        }
        _ => {}
    }
}

/// The column of a chain `column = value OR column = value OR ...`, and its values. The planner writes short IN lists
/// in this form.
fn alternatives(schema: &Schema, filter: &Expr, values: &mut Vec<Cell>) -> Option<usize> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = filter else {
        return None;
    };
    match op {
        Operator::Or => {
            let one = alternatives(schema, left, values)?;
            let other = alternatives(schema, right, values)?;
            (one == other).then_some(one)
        }
        Operator::Eq => {
            let (column, kind) = column(schema, left)?;
            values.push(constant(kind, right)?);
            Some(column)
        }
        _ => None,
    }
}

fn compare(allowed: &mut Option<Allowed>, kind: ColumnType, op: Operator, value: Cell) {
    // The database treats the two zeros as one value, but comparisons of Arrow do not.
    let is_float = matches!(kind, ColumnType::F32 | ColumnType::F64);
    let excluded = |value| match is_float {
        true => Bound::Included(value),
        false => Bound::Excluded(value),
    };
    // The texts of GUIDs sort like the GUIDs only if all of them have the same format.
    if kind == ColumnType::Guid && op != Operator::Eq {
        return;
    }
    // If a column has two bounds, the last one is used; both conditions are evaluated on the rows.
    match op {
        Operator::Eq => among(allowed, vec![value]),
        Operator::Gt => allowed.get_or_insert_default().low = excluded(value),
        Operator::GtEq => allowed.get_or_insert_default().low = Bound::Included(value),
        Operator::Lt => allowed.get_or_insert_default().high = excluded(value),
        Operator::LtEq => allowed.get_or_insert_default().high = Bound::Included(value),
        _ => {}
    }
}

fn among(allowed: &mut Option<Allowed>, values: Vec<Cell>) {
    let known = allowed.get_or_insert_default();
    match &known.values {
        Some(list) if list.len() <= values.len() => {}
        _ => {
            let mut list: Vec<Cell> = Vec::with_capacity(values.len());
            for value in values {
                // NaN equals itself in the database, but not in this comparison.
                let is_nan = matches!(value, Cell::F64(float) if float.is_nan());
                if is_nan
                    && list
                        .iter()
                        .any(|cell| matches!(cell, Cell::F64(float) if float.is_nan()))
                {
                    continue;
                }
                if !list.contains(&value) {
                    list.push(value);
                }
            }
            known.values = Some(list);
        }
    }
}

fn column(schema: &Schema, expr: &Expr) -> Option<(usize, ColumnType)> {
    let Expr::Column(column) = expr else {
        return None;
    };
    let at = schema.position(&column.name)?;
    Some((at, schema.columns[at].kind))
}

/// The cell of a constant that is not null.
fn constant(kind: ColumnType, expr: &Expr) -> Option<Cell> {
    let Expr::Literal(value, _) = expr else {
        return None;
    };
    cell(kind, value).filter(|cell| !matches!(cell, Cell::Null))
}
