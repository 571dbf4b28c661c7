//! Changes of a transaction to pins and clock.

use crate::format::pages::Extent;
use crate::format::pins::Pins;

/// Names of pins to add and to remove.
#[derive(Clone, Debug, Default)]
pub(super) struct PinNames {
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
}

/// Changes of a transaction to pins and clock.
#[derive(Debug, Default)]
pub(super) struct PinChanges {
    pub(super) names: PinNames,
    /// Extents of the new blocks: the table, the records in the order of `add`, the clock.
    pub(super) table_at: Option<Extent>,
    pub(super) records_at: Vec<Extent>,
    pub(super) clock_at: Option<Extent>,
    /// State of pins and clock after the commit.
    pub(super) next: Option<Pins>,
}

impl PinChanges {
    pub(super) fn any(&self) -> bool {
        !self.names.add.is_empty() || !self.names.remove.is_empty()
    }
}
