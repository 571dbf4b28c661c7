//! Evaluates the tree of an expression on a message. The rules for null and for kinds are in the head of this folder.

use super::arithmetic::{TooLarge, apply, negative};
use super::call::call;
use super::error::{ExpressionError, position};
use super::source::FieldSource;
use super::tree::{Binary, Literal, Node, Place, Unary};
use super::values::Value;
use super::wildcard;
use crate::containers::value::FieldValue;

type Evaluated<'v> = Result<Value<'v>, ExpressionError>;

/// An evaluation of an expression on one message.
pub(super) struct Evaluation<'v> {
    text: &'v str,
    fields: &'v [String],
    source: &'v dyn FieldSource,
}

impl<'v> Evaluation<'v> {
    pub(super) fn new(text: &'v str, fields: &'v [String], source: &'v dyn FieldSource) -> Self {
        Self {
            text,
            fields,
            source,
        }
    }

    /// Evaluates a whole expression.
    pub(super) fn result(&self, root: &'v Node) -> Result<FieldValue, ExpressionError> {
        match self.value(root)?.into_field()? {
            Some(value) => Ok(value),
            None => Err(self.range(
                place_of(root),
                "a result beyond 64 bits".into(),
                format!("an integer from {} to {}", i64::MIN, u64::MAX),
            )),
        }
    }

    /// Evaluates a whole expression as a filter.
    pub(super) fn is_match(&self, root: &'v Node) -> Result<bool, ExpressionError> {
        match self.value(root)? {
            Value::Bool(is_match) => Ok(is_match),
            Value::Null => Ok(false),
            other => Err(self.kind(
                place_of(root),
                format!("a filter whose result is {}", other.kind()),
                "true, false or null",
            )),
        }
    }

    fn value(&self, node: &'v Node) -> Evaluated<'v> {
        match node {
            Node::Literal(literal) => Ok(match literal {
                Literal::Null => Value::Null,
                Literal::Bool(value) => Value::Bool(*value),
                Literal::Integer(number) => Value::Integer((*number).into()),
                Literal::Float(number) => Value::Float(*number),
                Literal::Text(text) => Value::Text(text.as_str().into()),
            }),
            Node::Field(number) => {
                let path = self.fields.get(*number).map_or("", String::as_str);
                Ok(Value::of_field(self.source.field(*number, path)?))
            }
            Node::Time => Ok(Value::of_time(self.source.time())),
            Node::Received => Ok(Value::of_time(self.source.received())),
            Node::Unary(op, place, operand) => self.unary(*op, *place, operand),
            Node::Binary(op, place, operands) => self.binary(*op, *place, operands),
            Node::All(place, operands) => self.joined(false, "&&", *place, operands),
            Node::Any(place, operands) => self.joined(true, "||", *place, operands),
            Node::In(place, value, items) => self.is_in(*place, value, items),
            Node::Conditional(place, parts) => {
                let [condition, yes, no] = &**parts;
                match self.value(condition)? {
                    Value::Bool(true) => self.value(yes),
                    Value::Bool(false) | Value::Null => self.value(no),
                    other => Err(self.kind(
                        *place,
                        format!("{} before \"?\"", other.kind()),
                        "true, false or null",
                    )),
                }
            }
            Node::Call(function, place, arguments) => {
                let mut values = arguments.iter().map(|argument| self.value(argument));
                let called = call(*function, &mut values)?;
                called.map_err(|problem| {
                    let found = format!("{} of {}", function.name(), problem.found);
                    if problem.is_range {
                        self.range(*place, found, problem.expected.to_owned())
                    } else {
                        self.kind(*place, found, problem.expected)
                    }
                })
            }
        }
    }

    fn unary(&self, op: Unary, place: Place, operand: &'v Node) -> Evaluated<'v> {
        let value = self.value(operand)?;
        match (op, &value) {
            (_, Value::Null) => Ok(Value::Null),
            (Unary::Not, Value::Bool(value)) => Ok(Value::Bool(!value)),
            (Unary::Not, other) => {
                Err(self.kind(place, format!("\"!\" of {}", other.kind()), "true or false"))
            }
            (Unary::Negative, other) => {
                let found = || format!("\"-\" of {}", other.kind());
                let Some(number) = other.number() else {
                    return Err(self.kind(place, found(), "a number"));
                };
                let result = negative(number).map(Value::of_number);
                result.map_err(|TooLarge| self.too_large(place, found()))
            }
        }
    }

    fn binary(&self, op: Binary, place: Place, operands: &'v [Node; 2]) -> Evaluated<'v> {
        let [left, right] = operands;
        if matches!(op, Binary::Equal | Binary::NotEqual) && (left.is_null() || right.is_null()) {
            let other = if left.is_null() { right } else { left };
            let is_null = matches!(self.value(other)?, Value::Null);
            return Ok(Value::Bool(is_null == (op == Binary::Equal)));
        }
        let (left, right) = (self.value(left)?, self.value(right)?);
        if matches!(left, Value::Null) || matches!(right, Value::Null) {
            return Ok(Value::Null);
        }
        let found = || format!("{} {} {}", left.kind(), op.symbol(), right.kind());
        match op {
            Binary::Equal | Binary::NotEqual => match left.equals(&right) {
                Some(is_equal) => Ok(Value::Bool(is_equal == (op == Binary::Equal))),
                None => Err(self.kind(place, found(), "numbers, texts or booleans")),
            },
            Binary::Less | Binary::LessOrEqual | Binary::Greater | Binary::GreaterOrEqual => {
                let Some(order) = left.order(&right) else {
                    return Err(self.kind(place, found(), "two numbers or two texts"));
                };
                Ok(Value::Bool(match op {
                    Binary::Less => order.is_lt(),
                    Binary::LessOrEqual => order.is_le(),
                    Binary::Greater => order.is_gt(),
                    _ => order.is_ge(),
                }))
            }
            Binary::Like | Binary::NotLike => match (&left, &right) {
                (Value::Text(text), Value::Text(pattern)) => {
                    let is_match = wildcard::matches(text, pattern);
                    Ok(Value::Bool(is_match == (op == Binary::Like)))
                }
                _ => Err(self.kind(
                    place,
                    found(),
                    "two texts: text(x) makes a text of a number",
                )),
            },
            _ => {
                let (Some(a), Some(b)) = (left.number(), right.number()) else {
                    return Err(self.kind(place, found(), "two numbers"));
                };
                match apply(op, a, b) {
                    Ok(result) => Ok(result.map_or(Value::Null, Value::of_number)),
                    Err(TooLarge) => Err(self.too_large(place, found())),
                }
            }
        }
    }

    /// Evaluates `&&` or `||`: an operand that equals `deciding` determines the result.
    fn joined(
        &self,
        deciding: bool,
        symbol: &str,
        place: Place,
        operands: &'v [Node],
    ) -> Evaluated<'v> {
        let mut is_unknown = false;
        for operand in operands {
            match self.value(operand)? {
                Value::Bool(value) if value == deciding => return Ok(Value::Bool(deciding)),
                Value::Bool(_) => {}
                Value::Null => is_unknown = true,
                other => {
                    let found = format!("{} as operand of {symbol}", other.kind());
                    return Err(self.kind(place, found, "true, false or null"));
                }
            }
        }
        Ok(if is_unknown {
            Value::Null
        } else {
            Value::Bool(!deciding)
        })
    }

    fn is_in(&self, place: Place, value: &'v Node, items: &'v [Node]) -> Evaluated<'v> {
        let value = self.value(value)?;
        if matches!(value, Value::Null) {
            return Ok(Value::Null);
        }
        let mut is_unknown = false;
        for item in items {
            let item = self.value(item)?;
            if matches!(item, Value::Null) {
                is_unknown = true;
                continue;
            }
            match value.equals(&item) {
                Some(true) => return Ok(Value::Bool(true)),
                Some(false) => {}
                None => {
                    let found = format!("{} in {}", value.kind(), item.kind());
                    return Err(self.kind(place, found, "numbers, texts or booleans"));
                }
            }
        }
        Ok(if is_unknown {
            Value::Null
        } else {
            Value::Bool(false)
        })
    }

    #[cold]
    fn kind(&self, place: Place, found: String, expected: &str) -> ExpressionError {
        ExpressionError::Kind {
            at: position(self.text, place.0 as usize),
            found,
            expected: expected.to_owned(),
        }
    }

    #[cold]
    fn range(&self, place: Place, found: String, expected: String) -> ExpressionError {
        ExpressionError::Range {
            at: position(self.text, place.0 as usize),
            found,
            expected,
        }
    }

    #[cold]
    fn too_large(&self, place: Place, found: String) -> ExpressionError {
        let found = format!("{found} with a result that is too large");
        let expected = "integers within 128 bits, or floats up to 1.8e308";
        self.range(place, found, expected.to_owned())
    }
}

/// The position of the operator or function at this node; otherwise the position of its operand.
fn place_of(node: &Node) -> Place {
    match node {
        Node::Unary(_, place, _)
        | Node::Binary(_, place, _)
        | Node::In(place, ..)
        | Node::All(place, _)
        | Node::Any(place, _)
        | Node::Conditional(place, _)
        | Node::Call(_, place, _) => *place,
        Node::Literal(_) | Node::Field(_) | Node::Time | Node::Received => Place(0),
    }
}
