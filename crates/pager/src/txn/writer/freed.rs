//! Counters of the pages freed since the last records. Such pages cannot be reused while these records are the newest.

use crate::options::Options;

/// A number of pages that exceeds every limit of pages that wait for a record.
const MUCH: u64 = 1 << 44;

/// Number of pages freed since the newest record, and between that record and the one before.
#[derive(Debug, Default)]
pub(crate) struct Freed([u64; 2]);

impl Freed {
    /// Adds the pages freed by a commit.
    pub(crate) fn add(&mut self, pages: u64) {
        self.0[0] += pages;
    }

    /// Notes that a newer record is durable.
    pub(super) fn record(&mut self) {
        self.0 = [0, self.0[0]];
    }

    /// Requests meta records soon, because no space is left.
    pub(super) fn ask_for_records(&mut self) {
        self.0 = [MUCH; 2];
    }

    /// Whether so many pages wait for the next records that a meta record should be written soon.
    pub(crate) fn needs_meta(&self, page_size: usize, options: &Options) -> bool {
        let records = 1 + usize::from(options.keep_older);
        let bytes = self.0[..records].iter().sum::<u64>() * page_size as u64;
        bytes > options.shrink_bytes.max(options.log_bytes)
    }
}
