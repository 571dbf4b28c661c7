//! What a transaction changes about pins and clock.

use crate::format::pages::Extent;
use crate::format::pins::Pins;

/// Names to pin, and to unpin.
#[derive(Clone, Debug, Default)]
pub(super) struct PinNames {
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
}

/// What a transaction changes about pins and clock.
#[derive(Debug, Default)]
pub(super) struct PinChanges {
    pub(super) names: PinNames,
    /// Where the new blocks go: the table, the records in the order of `add`, the clock.
    pub(super) table_at: Option<Extent>,
    pub(super) records_at: Vec<Extent>,
    pub(super) clock_at: Option<Extent>,
    /// What is true once the commit is done.
    pub(super) next: Option<Pins>,
}

impl PinChanges {
    pub(super) fn any(&self) -> bool {
        !self.names.add.is_empty() || !self.names.remove.is_empty()
    }
}
