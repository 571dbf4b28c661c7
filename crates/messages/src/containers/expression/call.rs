//! The functions of expressions.

use super::arithmetic::{TooLarge, absolute, as_float, rounded, to_integer};
use super::error::ExpressionError;
use super::function::Function;
use super::source::ValueRef;
use super::values::Value;
use crate::containers::codec::EncodedValue;
use crate::containers::document::is_integer;
use crate::containers::value::FieldValue;
use std::cmp::Ordering;

/// The reason why a function has no result. The caller adds the position in the text.
pub(super) struct Problem {
    pub(super) found: String,
    pub(super) expected: &'static str,
    /// True if a number is too large; false if an argument has a wrong kind.
    pub(super) is_range: bool,
}

type Called<'v> = Result<Value<'v>, Problem>;

/// Calls a function. Each argument is evaluated when the function takes it.
///
/// # Errors
/// Outside the errors of the arguments, inside the errors of the function.
pub(super) fn call<'v>(
    function: Function,
    arguments: &mut dyn Iterator<Item = Result<Value<'v>, ExpressionError>>,
) -> Result<Called<'v>, ExpressionError> {
    match function {
        Function::IfNull => {
            for argument in arguments {
                let value = argument?;
                if !matches!(value, Value::Null) {
                    return Ok(Ok(value));
                }
            }
            return Ok(Ok(Value::Null));
        }
        Function::Min => return extreme(arguments, Ordering::Less),
        Function::Max => return extreme(arguments, Ordering::Greater),
        _ => {}
    }
    // The parser has checked the number of arguments.
    let first = arguments.next().unwrap_or(Ok(Value::Null))?;
    if function == Function::Exists {
        return Ok(Ok(Value::Bool(!matches!(first, Value::Null))));
    }
    let second = match function {
        Function::StartsWith | Function::EndsWith | Function::Contains => {
            Some(arguments.next().unwrap_or(Ok(Value::Null))?)
        }
        _ => None,
    };
    if matches!(first, Value::Null) || matches!(second, Some(Value::Null)) {
        return Ok(Ok(Value::Null));
    }
    Ok(match second {
        Some(second) => of_two_texts(function, &first, &second),
        None => of_one(function, first),
    })
}

/// The smallest or largest argument; the first one if several are equal.
fn extreme<'v>(
    arguments: &mut dyn Iterator<Item = Result<Value<'v>, ExpressionError>>,
    better: Ordering,
) -> Result<Called<'v>, ExpressionError> {
    const EXPECTED: &str = "numbers, or texts";
    let mut best = Value::Null;
    for argument in arguments {
        let value = argument?;
        match (&best, &value) {
            (_, Value::Null) => {}
            (Value::Null, Value::Integer(_) | Value::Float(_) | Value::Text(_)) => best = value,
            (Value::Null, _) => return Ok(Err(wrong(value.kind(), EXPECTED))),
            _ => match value.order(&best) {
                Some(order) if order == better => best = value,
                Some(_) => {}
                None => {
                    let found = format!("{} and {}", best.kind(), value.kind());
                    return Ok(Err(wrong(found, EXPECTED)));
                }
            },
        }
    }
    Ok(Ok(best))
}

fn of_two_texts<'v>(function: Function, first: &Value<'_>, second: &Value<'_>) -> Called<'v> {
    let (Value::Text(text), Value::Text(part)) = (first, second) else {
        let found = format!("{} and {}", first.kind(), second.kind());
        return Err(wrong(found, "two texts"));
    };
    let (text, part) = (&**text, &**part);
    Ok(Value::Bool(match function {
        Function::StartsWith => text.starts_with(part),
        Function::EndsWith => text.ends_with(part),
        _ => text.contains(part),
    }))
}

/// Calls a function that has one argument, which is not null.
fn of_one(function: Function, value: Value<'_>) -> Called<'_> {
    match function {
        Function::Abs | Function::Round | Function::Floor | Function::Ceil => {
            let Some(number) = value.number() else {
                return Err(wrong(value.kind(), "a number"));
            };
            let result = match function {
                Function::Abs => absolute(number).map_err(|TooLarge| too_large(&value))?,
                Function::Round => rounded(number, f64::round),
                Function::Floor => rounded(number, f64::floor),
                _ => rounded(number, f64::ceil),
            };
            Ok(Value::of_number(result))
        }
        Function::Lower | Function::Upper => {
            let Value::Text(text) = &value else {
                return Err(wrong(value.kind(), "a text"));
            };
            let text = if function == Function::Lower {
                text.to_lowercase()
            } else {
                text.to_uppercase()
            };
            Ok(Value::Text(text.into()))
        }
        Function::Length => length(&value).map(|len| Value::Integer(len as i128)),
        Function::Int => to_int(&value),
        Function::Float => to_float(&value),
        _ => to_text(value),
    }
}

fn length(value: &Value<'_>) -> Result<usize, Problem> {
    Ok(match value {
        Value::Text(text) => text.chars().count(),
        Value::Nested(ValueRef::Nested(FieldValue::List(items))) => items.len(),
        Value::Nested(ValueRef::Nested(FieldValue::Object(fields))) => fields.len(),
        Value::Nested(ValueRef::Encoded(EncodedValue::List(list))) => list.len(),
        Value::Nested(ValueRef::Encoded(EncodedValue::Object(object))) => object.len(),
        other => return Err(wrong(other.kind(), "a text, a list or an object")),
    })
}

fn to_int<'v>(value: &Value<'_>) -> Called<'v> {
    match value {
        Value::Integer(number) => Ok(Value::Integer(*number)),
        Value::Float(number) => {
            let number = to_integer(*number).ok_or_else(|| too_large(value));
            number.map(Value::Integer)
        }
        Value::Bool(value) => Ok(Value::Integer((*value).into())),
        Value::Text(text) => {
            let number = text.trim().parse().ok();
            let number = number.filter(|&number| is_integer(number));
            Ok(number.map_or(Value::Null, Value::Integer))
        }
        other => Err(wrong(other.kind(), "a number, a boolean or a text")),
    }
}

fn to_float<'v>(value: &Value<'_>) -> Called<'v> {
    if let Some(number) = value.number() {
        return Ok(Value::Float(as_float(number)));
    }
    match value {
        Value::Bool(value) => Ok(Value::Float(f64::from(*value))),
        Value::Text(text) => {
            let number = text.trim().parse().ok();
            let number = number.filter(|number: &f64| number.is_finite());
            Ok(number.map_or(Value::Null, Value::Float))
        }
        other => Err(wrong(other.kind(), "a number, a boolean or a text")),
    }
}

fn to_text(value: Value<'_>) -> Called<'_> {
    Ok(Value::Text(match value {
        Value::Text(text) => text,
        Value::Bool(value) => if value { "true" } else { "false" }.into(),
        Value::Integer(number) => number.to_string().into(),
        Value::Float(number) => format!("{number:?}").into(),
        other => return Err(wrong(other.kind(), "a number, a boolean or a text")),
    }))
}

fn wrong(found: impl Into<String>, expected: &'static str) -> Problem {
    Problem {
        found: found.into(),
        expected,
        is_range: false,
    }
}

fn too_large(value: &Value<'_>) -> Problem {
    Problem {
        found: format!("{} that is too large", value.kind()),
        expected: "a number whose result is an integer from -9223372036854775808 to 18446744073709551615",
        is_range: true,
    }
}
