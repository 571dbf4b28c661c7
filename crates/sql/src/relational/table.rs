//! A relation, as seen by the planner.

use crate::error::Result;
use crate::relational::range::Ranges;
use crate::relational::scan::{RelationScan, Source};
use crate::relational::types;
use crate::slot::Slot;
use arrow::datatypes::{DataType, Field, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Constraint, Constraints, Result as PlanResult};
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::AnyRead;
use tidalite::TableLayout;

/// The column with the keys of rows, in statements that change rows.
pub(crate) const KEY: &str = "__key";

/// Prefix of the names of relations that declare metrics.
pub(crate) const DECLARATION: &str = "series/";

/// Prefix of the names of relations that store views.
pub(crate) const VIEW: &str = "view/";

/// The role of a relation in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its rows are read.
    Read,
    /// Rows are inserted. Nulls are detected when the rows are stored.
    Insert,
    /// Its rows are changed, so it has an additional column with their keys.
    Change,
}

/// A relation.
#[derive(Clone, Debug)]
pub(crate) struct RelationTable {
    pub(crate) source: Source,
    constraints: Constraints,
    defaults: HashMap<String, Expr>,
}

impl RelationTable {
    /// The relation with this name; `None` if it does not exist.
    pub(crate) fn find(name: &str, slot: &Slot, purpose: Purpose) -> Result<Option<Self>> {
        let snapshot = slot.snapshot()?;
        let types = snapshot.table_types(name)?;
        if types.is_none_or(|types| types.layout() != TableLayout::Relation) {
            return Ok(None);
        }
        let Some(relation) = snapshot.relation(name)? else {
            return Ok(None);
        };
        let relation = relation.schema().clone();
        let mut schema = types::schema(&relation);
        if purpose != Purpose::Read {
            let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
            let mut fields: Vec<Field> = schema.fields().iter().map(nullable).collect();
            if purpose == Purpose::Change {
                fields.push(Field::new(KEY, DataType::Binary, false));
            }
            schema = Arc::new(arrow::datatypes::Schema::new(fields));
        }
        let mut defaults = HashMap::new();
        for column in &relation.columns {
            if let Some(default) = &column.default {
                let value = types::constant(column.kind, default)?;
                defaults.insert(column.name.clone(), Expr::Literal(value, None));
            }
        }
        let places = |columns: &[String]| -> Vec<usize> {
            let places = columns
                .iter()
                .filter_map(|column| relation.position(column));
            places.collect()
        };
        let mut constraints = Vec::new();
        if !relation.primary_key.is_empty() {
            constraints.push(Constraint::PrimaryKey(places(&relation.primary_key)));
        }
        for index in relation.indexes.iter().filter(|index| index.unique) {
            constraints.push(Constraint::Unique(places(&index.columns)));
        }
        Ok(Some(Self {
            source: Source {
                name: name.into(),
                slot: slot.clone(),
                relation: Arc::new(relation),
                schema,
            },
            constraints: Constraints::new_unverified(constraints),
            defaults,
        }))
    }

    /// The names of all relations except the declarations of metrics and the views.
    pub(crate) fn names(snapshot: &AnyRead) -> Result<Vec<String>> {
        let mut names = Self::all_names(snapshot)?;
        names.retain(|name| !name.starts_with(DECLARATION) && !name.starts_with(VIEW));
        Ok(names)
    }

    /// The names of all relations.
    pub(crate) fn all_names(snapshot: &AnyRead) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for name in snapshot.tables()? {
            let types = snapshot.table_types(&name)?;
            if types.is_some_and(|types| types.layout() == TableLayout::Relation) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[async_trait]
impl TableProvider for RelationTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.source.schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        // A condition on a column of the primary key or of an index may restrict the rows that are read.
        let keys = std::iter::once(&self.source.relation.primary_key);
        let indexes = self
            .source
            .relation
            .indexes
            .iter()
            .map(|index| &index.columns);
        let columns: Vec<&String> = keys.chain(indexes).flatten().collect();
        let pushdown = |filter: &&Expr| {
            let refs = filter.column_refs();
            match refs.iter().any(|column| columns.contains(&&column.name)) {
                true => TableProviderFilterPushDown::Inexact,
                false => TableProviderFilterPushDown::Unsupported,
            }
        };
        Ok(filters.iter().map(pushdown).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        let filters = unnormalize_cols(filters.iter().cloned());
        let ranges = Ranges::of(&self.source.relation, &filters);
        let all = || (0..self.source.schema.fields().len()).collect();
        let projection = projection.cloned().unwrap_or_else(all);
        let threads = session.config().target_partitions();
        let scan = RelationScan::new(&self.source, ranges, projection, threads)?;
        Ok(match limit {
            Some(_) => scan.with_fetch(limit).unwrap_or_else(|| Arc::new(scan)),
            None => Arc::new(scan),
        })
    }
}
