//! Means of rows so far.

use super::dot::Dot;
use crate::types::error::Result;

/// A mean of rows so far, told beside each of them.
pub trait Mean {
    /// The next row, and the mean up to it.
    fn step(&mut self) -> Option<Result<(Dot, f64)>>;
}
