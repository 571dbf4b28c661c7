//! Memory of compactions and run writers, reused across transactions.

use crate::compaction::batch_merge::BatchMerge;
use crate::limits::TIERS_MAX;
use crate::run::block::Block;
use crate::run::writer::WriterScratch;
use tidalite_codec::Rows;

/// Memory of compactions and run writers, with their encoder states; reused across transactions.
#[derive(Debug, Default)]
pub(crate) struct CompactionScratch {
    /// Scratch memory for new runs, then for each tier.
    writers: Vec<WriterScratch>,
    pub(super) blocks: Vec<Block>,
    pub(super) batch: BatchMerge,
    pub(super) gathered: Rows,
}

impl CompactionScratch {
    /// Index of the scratch memory for new runs.
    pub(crate) const NEW: usize = 0;

    /// Borrows scratch memory.
    pub(crate) fn take_writer(&mut self, place: usize) -> WriterScratch {
        self.writers
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Scratch memory that is not borrowed.
    pub(crate) fn writer(&self, place: usize) -> Option<&WriterScratch> {
        self.writers.get(place)
    }

    /// Returns borrowed scratch memory.
    pub(crate) fn return_writer(&mut self, place: usize, scratch: WriterScratch) {
        assert!(
            place <= TIERS_MAX,
            "one place for new runs, and one for each tier"
        );
        if self.writers.len() <= place {
            self.writers.resize_with(place + 1, WriterScratch::default);
        }
        self.writers[place] = scratch;
    }
}
