//! Constants and parameters of statements.

use crate::error::{Error, ErrorKind, Result};
use crate::relational::types;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, Expr, UnaryOperator};
use std::fmt::Display;
use tidalite::relation::{Cell, Column};

/// A value of a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Constant(ScalarValue),
    /// A number, as written in the statement.
    Number(String),
    /// The parameter with this number, counted from 0.
    Parameter(usize),
}

impl Value {
    /// The value of an expression; `None` if it must be computed.
    pub(crate) fn of(expr: &Expr) -> Option<Self> {
        match expr {
            Expr::Value(value) => Some(match &value.value {
                ast::Value::Number(number, false) => Self::Number(number.clone()),
                ast::Value::SingleQuotedString(text) => {
                    Self::Constant(ScalarValue::from(text.as_str()))
                }
                ast::Value::Boolean(value) => Self::Constant(ScalarValue::Boolean(Some(*value))),
                ast::Value::Null => Self::Constant(ScalarValue::Null),
                ast::Value::Placeholder(name) => Self::Parameter(number(name)?),
                _ => return None,
            }),
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => match Self::of(expr)? {
                Self::Number(number) if !number.starts_with('-') => {
                    Some(Self::Number(format!("-{number}")))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Converts the value to a type; returns an error if it does not fit.
    pub(crate) fn cast(&self, parameters: &[ScalarValue], ty: &DataType) -> Result<ScalarValue> {
        let cast = |value: &ScalarValue| -> Result<ScalarValue> {
            if value.data_type() == *ty {
                return Ok(value.clone());
            }
            Ok(match value {
                ScalarValue::Null => ScalarValue::try_from(ty)?,
                value => value.cast_to(ty)?,
            })
        };
        match self {
            Self::Constant(value) => cast(value),
            Self::Parameter(number) => cast(parameter(parameters, *number)?),
            // All digits of decimals are kept. A number with an exponent is a float, as in the planner.
            Self::Number(text)
                if matches!(ty, DataType::Decimal128(..)) && !text.contains(['e', 'E']) =>
            {
                cast(&ScalarValue::from(text.as_str()))
            }
            Self::Number(_) => cast(&self.plain(parameters)?),
        }
    }
}

impl Value {
    /// Converts the value to a cell of a column that has this type in Arrow; returns an error if it does not fit.
    pub(crate) fn cell(
        &self,
        parameters: &[ScalarValue],
        (column, ty): (&Column, &DataType),
    ) -> Result<Cell> {
        let known = match self {
            Self::Constant(value) => types::cell(column.kind, value),
            Self::Parameter(number) => types::cell(column.kind, parameter(parameters, *number)?),
            Self::Number(_) => None,
        };
        if let Some(cell) = known {
            return Ok(cell);
        }
        let problem = |error: &dyn Display| format!("column {}: {error}", column.name);
        let value = self
            .cast(parameters, ty)
            .map_err(|error| Error::new(error.kind(), problem(&error)))?;
        types::cell(column.kind, &value).ok_or_else(|| match &value {
            ScalarValue::Utf8(Some(text)) => types::not_a_guid(&column.name, text),
            value => Error::new(
                ErrorKind::Execution,
                problem(&format!("{value} does not fit")),
            ),
        })
    }

    /// The value in its own type.
    pub(crate) fn plain(&self, parameters: &[ScalarValue]) -> Result<ScalarValue> {
        Ok(match self {
            Self::Constant(value) => value.clone(),
            Self::Parameter(number) => parameter(parameters, *number)?.clone(),
            Self::Number(text) => match (text.parse(), text.parse()) {
                (Ok(number), _) => ScalarValue::Int64(Some(number)),
                (_, Ok(number)) => ScalarValue::UInt64(Some(number)),
                _ => ScalarValue::Float64(Some(text.parse().map_err(|_| {
                    Error::new(ErrorKind::Syntax, format!("{text} is not a number"))
                })?)),
            },
        })
    }
}

/// The number of a parameter such as `$1`, counted from 0.
pub(crate) fn number(name: &str) -> Option<usize> {
    let number: usize = name.strip_prefix('$')?.parse().ok()?;
    number.checked_sub(1)
}

/// The parameter with this number.
pub(crate) fn parameter(parameters: &[ScalarValue], number: usize) -> Result<&ScalarValue> {
    parameters.get(number).ok_or_else(|| {
        let problem = format!(
            "parameter ${} has no value: {} are given",
            number + 1,
            parameters.len()
        );
        Error::new(ErrorKind::Plan, problem)
    })
}
