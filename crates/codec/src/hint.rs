//! What the last vector of a column taught: tried first for the next one.

/// The choice made for the last vector of one column of one series. Wrong hints cost time and
/// bytes, never correctness. Keep one per series and column; `Hint::default()` knows nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    pub(crate) encoding: u8,
    pub(crate) exponent: u8,
    pub(crate) factor: u8,
    pub(crate) width: u8,
}
