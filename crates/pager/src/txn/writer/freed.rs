//! Counters of the pages freed since the newest two durable meta records. Such pages cannot be reused while these
//! meta records are the newest.

use crate::options::Options;

/// Number of pages that is greater than every limit for pages that wait for a meta record.
const MUCH: u64 = 1 << 44;

/// Number of pages freed since the newest durable meta record, and between that meta record and the one before.
#[derive(Debug, Default)]
pub(crate) struct Freed([u64; 2]);

impl Freed {
    /// Adds the pages that a commit has freed.
    pub(crate) fn add(&mut self, pages: u64) {
        self.0[0] += pages;
    }

    /// Records that a newer meta record is durable.
    pub(super) fn record(&mut self) {
        self.0 = [0, self.0[0]];
    }

    /// Makes the next commits write meta records soon, because no space is left.
    pub(super) fn ask_for_records(&mut self) {
        self.0 = [MUCH; 2];
    }

    /// Whether so many freed pages wait for the next meta records that a meta record should be written soon.
    pub(crate) fn needs_meta(&self, page_size: usize, options: &Options) -> bool {
        let records = 1 + usize::from(options.keep_older);
        let bytes = self.0[..records].iter().sum::<u64>() * page_size as u64;
        bytes > options.shrink_bytes.max(options.log_bytes)
    }
}
