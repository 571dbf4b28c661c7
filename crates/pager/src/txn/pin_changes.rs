//! Changes of a transaction to the pins and to the clock (the list of commit times).

use crate::format::pages::Extent;
use crate::format::pins::Pins;

/// Names of the pins that a transaction adds and removes.
#[derive(Clone, Debug, Default)]
pub(super) struct PinNames {
    pub(super) add: Vec<String>,
    pub(super) remove: Vec<String>,
}

/// Changes of a transaction to the pins and to the clock (the list of commit times).
#[derive(Debug, Default)]
pub(super) struct PinChanges {
    pub(super) names: PinNames,
    /// Extents of the new blocks: the table of pins, the meta records of new pins in the order of `add`, and the
    /// clock.
    pub(super) table_at: Option<Extent>,
    pub(super) records_at: Vec<Extent>,
    pub(super) clock_at: Option<Extent>,
    /// The pins and the clock as they are after the commit.
    pub(super) next: Option<Pins>,
}

impl PinChanges {
    pub(super) fn any(&self) -> bool {
        !self.names.add.is_empty() || !self.names.remove.is_empty()
    }
}
