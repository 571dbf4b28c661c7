//! How thoroughly a content is read.

/// How thoroughly a content is read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Whether hash tables, buffered tables and relations are asked for the same content again, in other ways: by key,
    /// in reverse, in parts, by counts.
    pub asks_again: bool,
    /// Whether the pinned versions are read, too.
    pub reads_pins: bool,
}

impl Reading {
    /// Everything is read, in every way.
    pub const FULL: Self = Self {
        asks_again: true,
        reads_pins: true,
    };
}
