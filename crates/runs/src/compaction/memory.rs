//! Memory of merges and run writers, kept from one transaction to the next.

use crate::compaction::batch::Batch;
use crate::run::block::Block;
use crate::run::writer::Kit;
use tidalite_codec::Rows;

/// Memory of merges and of the writers of runs, and what these have learned; kept from one transaction to the next.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// That of new runs, then one a tier.
    kits: Vec<Kit>,
    pub(super) blocks: Vec<Block>,
    pub(super) batch: Batch,
    pub(super) gathered: Rows,
}

impl Merging {
    /// For who writes new runs.
    pub(crate) const NEW: usize = 0;

    /// Lends a kit.
    pub(crate) fn take_kit(&mut self, place: usize) -> Kit {
        self.kits
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// A kit that is not lent.
    pub(crate) fn kit(&self, place: usize) -> Option<&Kit> {
        self.kits.get(place)
    }

    /// Takes it back.
    pub(crate) fn give_kit(&mut self, place: usize, kit: Kit) {
        if self.kits.len() <= place {
            self.kits.resize_with(place + 1, Kit::default);
        }
        self.kits[place] = kit;
    }
}
