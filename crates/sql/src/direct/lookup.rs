//! Runs `SELECT columns FROM relation WHERE key = value` directly: finds the rows with these values in the first
//! columns of the primary key or of an index.

use crate::direct::value::{number, parameter};
use crate::error::Result;
use crate::relational::columns::ColumnBuilder;
use crate::relational::table::RelationTable;
use crate::relational::types;
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::relation::{self, Cell, ColumnType, KeyBounds, Relation, RowRef, Rows};

/// Maximum number of rows of a look-up, which are returned in one batch. If there are more rows, a plan reads them.
const ROWS_MAX: u64 = 1024;

/// The look-up of rows.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    table: Arc<str>,
    /// The index; `None` for the primary key.
    index: Option<String>,
    /// Whether the values cover the whole primary key.
    is_row: bool,
    /// The first columns of the key, in order.
    key: Vec<(ColumnType, Wanted)>,
    /// The columns of the result.
    columns: Vec<(usize, ColumnType)>,
    schema: SchemaRef,
}

/// The required value of a column of the key.
#[derive(Clone, Debug)]
enum Wanted {
    Constant(Cell),
    Parameter(usize),
}

impl Lookup {
    /// The look-up that an optimized plan describes; `None` if the plan does something else.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Self> {
        let (names, filtered) = match plan {
            LogicalPlan::Projection(projection) => {
                let column = |expr: &Expr| match expr {
                    Expr::Column(column) => Some(column.name.clone()),
                    Expr::Alias(alias) => match &*alias.expr {
                        Expr::Column(column) => Some(column.name.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let names: Vec<String> =
                    projection.expr.iter().map(column).collect::<Option<_>>()?;
                (Some(names), &*projection.input)
            }
            other => (None, other),
        };
        let LogicalPlan::Filter(filter) = filtered else {
            return None;
        };
        let LogicalPlan::TableScan(scan) = &*filter.input else {
            return None;
        };
        let provider = source_as_provider(&scan.source).ok()?;
        let table = provider.downcast_ref::<RelationTable>()?;
        let relation = &table.source.relation;
        let conditions = split_conjunction(&filter.predicate);
        if scan.fetch.is_some() {
            return None;
        }
        let indexes = relation.indexes.iter();
        let indexes = indexes.map(|index| (Some(&index.name), &index.columns));
        let mut keys = std::iter::once((None, &relation.primary_key)).chain(indexes);
        let (index, columns, key) = keys.find_map(|(index, columns)| {
            let key = key_of(relation, columns, &conditions)?;
            Some((index.cloned(), columns, key))
        })?;
        let is_row = index.is_none() && columns.len() == key.len();
        let schema = plan.schema().inner();
        let names = names.unwrap_or_else(|| {
            let fields = schema.fields().iter();
            fields.map(|field| field.name().clone()).collect()
        });
        let column = |name: &String| {
            let at = relation.position(name)?;
            Some((at, relation.columns[at].kind))
        };
        Some(Self {
            table: Arc::clone(&table.source.name),
            index,
            is_row,
            key,
            columns: names.iter().map(column).collect::<Option<_>>()?,
            schema: Arc::new(Schema::clone(schema)),
        })
    }

    /// The rows as one batch; `None` if they are too many and should be read by a plan.
    pub(crate) fn run(
        &self,
        state: &AnyRead,
        parameters: &[ScalarValue],
    ) -> Result<Option<RecordBatch>> {
        let empty = || Some(RecordBatch::new_empty(Arc::clone(&self.schema)));
        let mut key = Vec::with_capacity(self.key.len());
        for (kind, wanted) in &self.key {
            let cell = match wanted {
                Wanted::Constant(cell) => cell.clone(),
                Wanted::Parameter(number) => {
                    let value = parameter(parameters, *number)?;
                    match types::equal_cell(*kind, value)? {
                        None => return Ok(empty()),
                        Some(cell) => cell,
                    }
                }
            };
            key.push(cell);
        }
        let Some(relation) = state.relation(&self.table)? else {
            return Ok(empty());
        };
        let builder = |&(_, kind): &(usize, ColumnType)| ColumnBuilder::new(kind);
        let mut builders: Vec<ColumnBuilder> = self.columns.iter().map(builder).collect();
        let mut append = |row: &RowRef<'_>| -> Result<()> {
            let columns = self.columns.iter().zip(&mut builders);
            for (&(column, _), builder) in columns {
                builder.append(row, column)?;
            }
            Ok(())
        };
        let mut count = 0;
        if self.is_row {
            let key = relation.row_key(&key)?;
            if let Some(done) = relation.with_row(&key, |row| Ok(append(&row)))? {
                done?;
                count = 1;
            }
        } else {
            let Some(mut rows) = self.rows(&relation, KeyBounds::prefix(key))? else {
                return Ok(None);
            };
            while let Some(row) = rows.next()? {
                append(&row)?;
                count += 1;
            }
        }
        let columns = builders.iter_mut().map(ColumnBuilder::finish);
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(count));
        Ok(Some(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns.collect::<Result<_>>()?,
            &options,
        )?))
    }

    /// The rows whose keys begin with these values; `None` if they are too many.
    fn rows<'r>(&self, relation: &'r Relation<'_>, range: KeyBounds) -> Result<Option<Rows<'r>>> {
        let found = match &self.index {
            Some(index) => {
                let is_few = relation.count_by(index, range.clone())? <= ROWS_MAX;
                is_few.then(|| relation.rows_by(index, range))
            }
            None => {
                let is_few = relation.count_in(range.clone())? <= ROWS_MAX;
                is_few.then(|| relation.rows(range))
            }
        };
        Ok(found.transpose()?)
    }
}

/// The values of the first columns of a key, if the conditions give exactly these.
fn key_of(
    relation: &relation::Schema,
    columns: &[String],
    conditions: &[&Expr],
) -> Option<Vec<(ColumnType, Wanted)>> {
    if conditions.is_empty() || conditions.len() > columns.len() {
        return None;
    }
    let columns = columns[..conditions.len()].iter();
    let key = columns.map(|column| {
        let kind = relation.columns[relation.position(column)?].kind;
        let mut found = conditions.iter();
        Some((kind, found.find_map(|one| wanted(one, column, kind))?))
    });
    key.collect()
}

/// The value that a condition requires for a column.
fn wanted(condition: &Expr, column: &str, kind: ColumnType) -> Option<Wanted> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Eq,
        right,
    }) = condition
    else {
        return None;
    };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(own) if own.name == column);
    let value = match (is_column(left), is_column(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return None,
    };
    match &**value {
        Expr::Literal(value, _) => match types::cell(kind, value)? {
            Cell::Null => None,
            cell => Some(Wanted::Constant(cell)),
        },
        Expr::Placeholder(placeholder) => {
            // A parameter of another type would be compared in that type.
            let ty = placeholder.field.as_ref()?.data_type().clone();
            (ty == types::data_type(kind)).then_some(())?;
            number(&placeholder.id).map(Wanted::Parameter)
        }
        _ => None,
    }
}
