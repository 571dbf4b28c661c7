//! Expressions: filters of messages, and values computed from them.
//!
//! ```text
//! expression  = any, [ "?", expression, ":", expression ] ;
//! any         = all, { "||", all } ;
//! all         = comparison, { "&&", comparison } ;
//! comparison  = sum, [ operator, sum | "in", "(", expression, { ",", expression }, ")" ] ;
//! operator    = "==" | "!=" | "<" | "<=" | ">" | ">=" | "~" | "!~" ;
//! sum         = product, { ( "+" | "-" ), product } ;
//! product     = unary, { ( "*" | "/" | "%" ), unary } ;
//! unary       = ( "!" | "-" ), unary | primary ;
//! primary     = number | text | "true" | "false" | "null" | "time" | "received" | field
//!             | function, "(", expression, { ",", expression }, ")" | "(", expression, ")" ;
//! number      = digits, [ ".", digits ], [ ( "e" | "E" ), [ "+" | "-" ], digits ] ;
//! text        = '"', characters, '"' | "'", characters, "'" ;
//! field       = name | "$", name | "$", text | "`", characters, "`" ;
//! name        = ( letter | "_" ), { letter | digit | "_" | ".", ( letter | digit | "_" ) } ;
//! ```
//!
//! The name after `$` may begin with a digit. In quotation marks and backticks a backslash begins an escape: `\n`,
//! `\r`, `\t`, `\u{1F600}`, or the next character for `\`, quotation marks and backticks. `in`, `true`, `false`,
//! `null`, `time` and `received` are names of fields only after `$` or in backticks; the name of a function is a
//! function only before `(`.
//!
//! # Fields
//!
//! A field is read by the rule of [`crate::Document::find`]: `battery.level` is the field of this name, otherwise
//! `level` in the object `battery`. A field that a message does not have is null. `time` and `received` are the times
//! of the message in nanoseconds since 1970, or null.
//!
//! # Null
//!
//! Null stands for an unknown value:
//!
//! - Arithmetic, comparisons, `~`, `!` and functions give null if an operand is null. The functions `exists`,
//!   `if_null`, `min` and `max` have their own rules.
//! - `x == null` and `x != null`, with the literal on either side, ask whether `x` is null: true or false.
//! - `a && b` is false if one of them is false, otherwise null if one is null. `a || b` is true if one of them is true,
//!   otherwise null if one is null. Operands after the deciding one are not evaluated.
//! - `x in (a, b)` is true if `x` equals one of them, otherwise null if `x` or one of them is null.
//! - `c ? a : b` gives `b` if `c` is null. Only the result is evaluated, not the other branch.
//! - A message whose filter gives null does not match.
//!
//! # Numbers
//!
//! Integers are exact: arithmetic has 128 bits, and a result that does not fit is an error. `/` of two integers is an
//! integer if the division has no remainder, otherwise a float. Division by zero gives null, also with `%`, whose
//! result has the sign of the dividend. An operation of an integer and a float is done with floats; a float that is too
//! large is an error. Comparisons are exact, also of an integer with a float.
//!
//! # Kinds
//!
//! Values of different kinds are not equal: `1 == "1"` is false. Order (`<`) is defined for two numbers, and for two
//! texts by their bytes. Everything else is an error with its position. Lists and objects are values only for `exists`,
//! `if_null`, `length`, `== null` and as results.
//!
//! `text ~ "pump*"` compares the whole text with a pattern: `*` matches any characters, `?` matches one character, and
//! a character after a backslash matches itself.

mod arithmetic;
mod call;
mod error;
mod evaluate;
mod function;
mod parse;
mod print;
mod source;
mod token;
mod tree;
mod values;
mod wildcard;

use crate::containers::value::FieldValue;
pub use error::ExpressionError;
use evaluate::Evaluation;
pub use parse::{EXPRESSION_BYTES_MAX, EXPRESSION_LEVELS_MAX};
pub use source::{EncodedFields, FieldSource, MessageFields, ValueRef};
use tree::Node;

/// An expression, parsed once and evaluated on many messages.
///
/// Two expressions are equal if they have the same operators, fields and literals; spaces and redundant parentheses do
/// not matter. `to_string` gives a text that parses to an equal expression.
///
/// ```
/// use tidalite_messages::{Document, Expression, FieldValue};
///
/// let filter = Expression::parse("battery.level < 20 && model ~ 'pump*'")?;
/// assert_eq!(filter.fields(), ["battery.level", "model"]);
/// let message = Document::from_json(r#"{"battery": {"level": 12}, "model": "pump 7"}"#)?;
/// assert!(filter.matches(&message)?);
/// let computed = Expression::parse("if_null(voltage, 12) * 1000")?;
/// assert_eq!(computed.evaluate(&message)?, FieldValue::Integer(12_000));
/// # Ok::<(), tidalite_pager::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
    root: Node,
    fields: Vec<String>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root && self.fields == other.fields
    }
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`ExpressionError::Syntax`] with the position, what was found and what was expected there; with a suggestion for
    /// common slips.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        let (root, fields) = parse::parse(text)?;
        let text = text.to_owned();
        Ok(Self { text, root, fields })
    }

    /// The text that was parsed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The paths of the fields that the expression reads, without duplicates, in the order of their first occurrence.
    #[must_use]
    pub fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Evaluates the expression on a message.
    ///
    /// # Errors
    /// [`ExpressionError::Kind`] for operands of a wrong kind, [`ExpressionError::Range`] for numbers that are too
    /// large, both with the position; [`ExpressionError::Source`] for errors of the source.
    ///
    /// # Cost
    /// One step for each operator and each field that the result depends on. Allocates memory only for new texts and
    /// for a result that is a text, list or object.
    pub fn evaluate(&self, source: &dyn FieldSource) -> Result<FieldValue, ExpressionError> {
        let evaluation = Evaluation::new(&self.text, &self.fields, source);
        evaluation.result(&self.root)
    }

    /// Whether a message matches the expression, a filter. Null does not match.
    ///
    /// # Errors
    /// As [`Expression::evaluate`]; [`ExpressionError::Kind`] also for a result that is neither true, false nor null.
    pub fn matches(&self, source: &dyn FieldSource) -> Result<bool, ExpressionError> {
        let evaluation = Evaluation::new(&self.text, &self.fields, source);
        evaluation.is_match(&self.root)
    }
}
