//! Errors of expressions.

use std::fmt;
use tidalite_pager::{Error, Refusal};

/// An error of an expression. Positions count characters of its text, from 1.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum ExpressionError {
    /// The text is not an expression.
    Syntax {
        /// Position of the character where reading stopped.
        at: usize,
        /// The text found there.
        found: String,
        /// The text that would be valid here, with a suggestion for common slips.
        expected: String,
    },
    /// The operator or function does not accept a value of this kind.
    Kind {
        /// Position of the operator or function.
        at: usize,
        /// The operation with the kinds of its operands.
        found: String,
        /// The kinds that it accepts.
        expected: String,
    },
    /// A number is too large.
    Range {
        /// Position of the operator or function.
        at: usize,
        /// The operation.
        found: String,
        /// The range of its result.
        expected: String,
    },
    /// The fields of the message could not be read.
    Source(Box<Error>),
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax {
                at,
                found,
                expected,
            }
            | Self::Kind {
                at,
                found,
                expected,
            }
            | Self::Range {
                at,
                found,
                expected,
            } => write!(
                f,
                "character {at} of the expression: found {found}, expected {expected}"
            ),
            Self::Source(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ExpressionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Source(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<Error> for ExpressionError {
    fn from(error: Error) -> Self {
        Self::Source(Box::new(error))
    }
}

impl From<ExpressionError> for Error {
    fn from(error: ExpressionError) -> Self {
        match error {
            ExpressionError::Syntax {
                at,
                found,
                expected,
            }
            | ExpressionError::Kind {
                at,
                found,
                expected,
            }
            | ExpressionError::Range {
                at,
                found,
                expected,
            } => Self::refused(
                Refusal::InvalidInput,
                format!("{found} at character {at} of the expression"),
                expected,
            ),
            ExpressionError::Source(error) => *error,
        }
    }
}

/// Converts a byte position in the text of an expression to a position in characters, counted from 1.
pub(super) fn position(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or(text).chars().count() + 1
}
