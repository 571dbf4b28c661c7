//! The value of a column between two rows.

/// The value of a column at a time between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// The value of the row before: for states, set points, and prices, which hold until they change.
    Previous,
    /// A straight line from the row before to the row after: for quantities that vary steadily, such as temperatures.
    Linear,
}
