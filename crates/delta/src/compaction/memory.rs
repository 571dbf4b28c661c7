//! Memory that compactions and run writers reuse across transactions.

use crate::compaction::batch_merge::BatchMerge;
use crate::limits::TIERS_MAX;
use crate::run::block::Block;
use crate::run::writer::WriterScratch;
use tidalite_codec::Rows;

/// Memory and encoder states that compactions and run writers reuse across transactions.
#[derive(Debug, Default)]
pub(crate) struct CompactionScratch {
    /// Memory of the writer of new runs, followed by the memory of the writer of each tier's compaction.
    writers: Vec<WriterScratch>,
    pub(super) blocks: Vec<Block>,
    pub(super) batch: BatchMerge,
    pub(super) gathered: Rows,
}

impl CompactionScratch {
    /// Index of the memory for the writer of new runs.
    pub(crate) const NEW: usize = 0;

    /// Takes the memory of the writer at index `place`, for use until `return_writer`.
    pub(crate) fn take_writer(&mut self, place: usize) -> WriterScratch {
        self.writers
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Returns the memory of the writer at index `place`; it is empty while it is taken.
    pub(crate) fn writer(&self, place: usize) -> Option<&WriterScratch> {
        self.writers.get(place)
    }

    /// Gives back the memory that `take_writer` returned for index `place`.
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
