//! The error of a text that is not a time, and of a time out of range.

use std::fmt;

/// A text that is not a timestamp, or a time before 1677 or after 2262.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimestampError {
    /// The text or the number that was given as a timestamp.
    pub text: String,
    /// Description of the problem.
    pub problem: String,
}

impl TimestampError {
    /// The error for a time outside the range of [`Timestamp`](crate::Timestamp).
    pub(crate) fn out_of_range(time: &impl fmt::Debug) -> Self {
        Self {
            text: format!("{time:?}"),
            problem: "outside of the years 1677 to 2262".to_owned(),
        }
    }
}

impl fmt::Display for TimestampError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, problem } = self;
        write!(
            f,
            "`{text}` is not a timestamp: {problem}; write it as 2014-06-01 or 2014-06-01T12:00:00Z"
        )
    }
}

impl std::error::Error for TimestampError {}
