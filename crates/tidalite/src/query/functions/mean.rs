//! Running means.

use super::dot::Dot;
use crate::types::error::Result;

/// A running mean, reported at each row.
pub trait Mean {
    /// The next row, and the mean including it.
    fn step(&mut self) -> Option<Result<(Dot, f64)>>;
}
