//! The trait that all kinds of running mean implement.

use super::dot::Dot;
use crate::types::error::Result;

/// An iterator that reports a running mean at each row.
pub trait Mean {
    /// Reads the next row; returns the row and the mean including it.
    fn step(&mut self) -> Option<Result<(Dot, f64)>>;
}
