//! Plans the functions and ASOF JOIN as nodes.

use super::arguments::Arguments;
use super::asof::{AsOf, Direction};
use super::distance::distance;
use super::node::{Rule, TimeJoin, type_of, value_type};
use super::syntax::{Function, is_as_of};
use super::window::Window;
use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, Result, TableReference, plan_err};
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator};
use datafusion::sql::sqlparser::ast::{
    FunctionArg, Join, JoinConstraint, JoinOperator, TableFactor, TableWithJoins,
};
use std::collections::BTreeSet;

/// The qualifiers of the functions' inputs. Plans use them to distinguish columns.
const SIDES: [&str; 2] = ["left", "right"];

/// Suffix for the name of a right column if its name is already in use.
const SUFFIX: &str = "_right";

/// Plans joins on time in the FROM clause.
#[derive(Debug)]
pub(crate) struct JoinRelations;

impl RelationPlanner for JoinRelations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let planned = |plan, alias| {
            Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
                plan, alias,
            ))))
        };
        match relation {
            TableFactor::Table {
                name,
                alias,
                args: Some(args),
                ..
            } if let Some(function) = Function::of(&name) => {
                planned(called(function, args.args, context)?, alias)
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias,
            } if table_with_joins.joins.last().is_some_and(is_as_of) => {
                planned(joined(*table_with_joins, context)?, alias)
            }
            other => Ok(RelationPlanning::Original(Box::new(other))),
        }
    }
}

/// Plans a call of a function.
fn called(
    function: Function,
    args: Vec<FunctionArg>,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let name = function.name();
    let args = Arguments::new(function, args)?;
    let mut input = |table, side: &str| {
        let plan = context.plan(table)?;
        LogicalPlanBuilder::from(plan).alias(side)?.build()
    };
    let (left, right) = (input(args.left, SIDES[0])?, input(args.right, SIDES[1])?);
    let pair = |column: &str| {
        let side = |side: &str| Column::new(Some(TableReference::bare(side)), column);
        (side(SIDES[0]), side(SIDES[1]))
    };
    let by = match args.by {
        Some(by) => by,
        None => common_tags(left.schema(), right.schema()),
    };
    for column in by.iter().chain([&args.time]) {
        for (plan, side) in [(&left, "first"), (&right, "second")] {
            if plan
                .schema()
                .index_of_column_by_name(None, column)
                .is_none()
            {
                return plan_err!("{name}: the {side} table has no column {column}");
            }
        }
    }
    let times = pair(&args.time);
    let is_number = type_of(&left, &times.0)?.is_integer();
    let rule = match function {
        Function::AsOf => {
            let tolerance = args
                .tolerance
                .map(|tolerance| distance((name, "tolerance"), tolerance, is_number, context));
            let tolerance = tolerance.transpose()?;
            if tolerance.is_some_and(|tolerance| tolerance < 0) {
                return plan_err!("{name}: the tolerance is negative");
            }
            Rule::AsOf(AsOf {
                direction: args.direction,
                is_strict: args.is_strict,
                tolerance,
            })
        }
        Function::Window => {
            let mut ends = args
                .window
                .into_iter()
                .map(|end| distance((name, "end of the window"), end, is_number, context));
            let (from, to) = (
                ends.next().transpose()?.unwrap_or(0),
                ends.next().transpose()?.unwrap_or(0),
            );
            drop(ends);
            if from > to {
                return plan_err!("{name}: the window ends before it begins");
            }
            let mut aggregates = Vec::with_capacity(args.aggregates.len());
            for (column, sql) in args.aggregates {
                let expr = context.sql_to_expr(sql, right.schema())?.unalias();
                if !matches!(expr, Expr::AggregateFunction(_)) {
                    return plan_err!("{name}: {expr} is not an aggregate");
                }
                // Qualified as the right side, so that a left column may have the same name.
                aggregates.push(expr.alias_qualified(Some(SIDES[1]), column));
            }
            Rule::Window(Window { from, to }, aggregates)
        }
    };
    let keys: BTreeSet<&String> = by.iter().collect();
    let pairs = by.iter().map(|column| pair(column)).collect();
    let columns = left.schema().fields().len();
    let is_asof = matches!(rule, Rule::AsOf(_));
    let plan = TimeJoin::plan((left, right), pairs, times, rule)?;
    // The columns of the result, without those right columns that must equal left columns.
    let mut taken = BTreeSet::new();
    let mut exprs = Vec::new();
    for (at, (table, field)) in plan.schema().iter().enumerate() {
        if at >= columns && is_asof && keys.contains(field.name()) {
            continue;
        }
        let mut name = field.name().clone();
        while !taken.insert(name.clone()) {
            name.push_str(SUFFIX);
        }
        exprs.push(Expr::Column(Column::from((table, field))).alias(name));
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}

/// The columns that both tables have as texts, where at least one of the two is a tag.
fn common_tags(left: &DFSchema, right: &DFSchema) -> Vec<String> {
    let is_tag = |ty: &DataType| matches!(ty, DataType::Dictionary(..));
    let is_text = |ty: &DataType| *value_type(ty) == DataType::Utf8;
    let common = left.fields().iter().filter(|field| {
        let other = right
            .fields()
            .iter()
            .find(|other| other.name() == field.name());
        other.is_some_and(|other| {
            let (one, other) = (field.data_type(), other.data_type());
            is_text(one) && is_text(other) && (is_tag(one) || is_tag(other))
        })
    });
    common.map(|field| field.name().clone()).collect()
}

/// Plans a FROM item whose last join is an ASOF JOIN.
fn joined(
    mut tables: TableWithJoins,
    context: &mut dyn RelationPlannerContext,
) -> Result<LogicalPlan> {
    let Some(Join {
        relation,
        join_operator:
            JoinOperator::AsOf {
                match_condition,
                constraint,
            },
        ..
    }) = tables.joins.pop()
    else {
        return plan_err!("ASOF JOIN is not the last join");
    };
    let left = match tables.joins.is_empty() {
        true => tables.relation,
        false => TableFactor::NestedJoin {
            table_with_joins: Box::new(tables),
            alias: None,
        },
    };
    let (left, right) = (context.plan(left)?, context.plan(relation)?);
    let both = left.schema().join(right.schema())?;
    let text = match_condition.to_string();
    let condition = context.sql_to_expr(match_condition, &both)?;
    let Some((operator, times)) = compared(&condition, left.schema()) else {
        return plan_err!("MATCH_CONDITION ({text}) does not compare a column of each table");
    };
    let (direction, is_strict) = match operator {
        Operator::GtEq => (Direction::Backward, false),
        Operator::Gt => (Direction::Backward, true),
        Operator::LtEq => (Direction::Forward, false),
        Operator::Lt => (Direction::Forward, true),
        _ => return plan_err!("MATCH_CONDITION ({text}) has no comparison with <, <=, > or >="),
    };
    let mut by = Vec::new();
    let mut is_using = false;
    match constraint {
        JoinConstraint::On(on) => {
            for condition in split_conjunction_owned(context.sql_to_expr(on, &both)?) {
                match compared(&condition, left.schema()) {
                    Some((Operator::Eq, pair)) => by.push(pair),
                    _ => {
                        return plan_err!(
                            "ASOF JOIN: {condition} does not equate a column of each table"
                        );
                    }
                }
            }
        }
        JoinConstraint::Using(columns) => {
            is_using = true;
            for column in columns {
                let name = column.to_string();
                let name = name.trim_matches('"');
                let find = |schema: &DFSchema| {
                    schema
                        .qualified_field_with_unqualified_name(name)
                        .map(Column::from)
                };
                by.push((find(left.schema())?, find(right.schema())?));
            }
        }
        JoinConstraint::None => {}
        JoinConstraint::Natural => return plan_err!("ASOF JOIN cannot be NATURAL"),
    }
    let rule = Rule::AsOf(AsOf {
        direction,
        is_strict,
        tolerance: None,
    });
    let hidden: Vec<Column> = match is_using {
        true => by.iter().map(|(_, right)| right.clone()).collect(),
        false => Vec::new(),
    };
    let plan = TimeJoin::plan((left, right), by, times, rule)?;
    if hidden.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns().into_iter();
    let shown = columns
        .filter(|column| !hidden.contains(column))
        .map(Expr::Column);
    let shown: Vec<Expr> = shown.collect();
    LogicalPlanBuilder::from(plan).project(shown)?.build()
}

/// The two columns that a condition compares, the left one first.
fn compared(condition: &Expr, left: &DFSchema) -> Option<(Operator, (Column, Column))> {
    let Expr::BinaryExpr(BinaryExpr {
        left: one,
        op,
        right: other,
    }) = condition
    else {
        return None;
    };
    let (Expr::Column(one), Expr::Column(other)) = (&**one, &**other) else {
        return None;
    };
    match (left.has_column(one), left.has_column(other)) {
        (true, false) => Some((*op, (one.clone(), other.clone()))),
        (false, true) => Some((op.swap()?, (other.clone(), one.clone()))),
        _ => None,
    }
}
