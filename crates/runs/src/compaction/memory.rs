//! Memory of merges and run writers, reused across transactions.

use crate::compaction::batch::Batch;
use crate::run::block::Block;
use crate::run::writer::Kit;
use tidalite_codec::Rows;

/// Memory of merges and run writers, with their encoder hints; reused across transactions.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// The kit for new runs, then one kit per tier.
    kits: Vec<Kit>,
    pub(super) blocks: Vec<Block>,
    pub(super) batch: Batch,
    pub(super) gathered: Rows,
}

impl Merging {
    /// Index of the kit for new runs.
    pub(crate) const NEW: usize = 0;

    /// Borrows a kit.
    pub(crate) fn take_kit(&mut self, place: usize) -> Kit {
        self.kits
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// A kit that is not borrowed.
    pub(crate) fn kit(&self, place: usize) -> Option<&Kit> {
        self.kits.get(place)
    }

    /// Returns a kit.
    pub(crate) fn give_kit(&mut self, place: usize, kit: Kit) {
        if self.kits.len() <= place {
            self.kits.resize_with(place + 1, Kit::default);
        }
        self.kits[place] = kit;
    }
}
