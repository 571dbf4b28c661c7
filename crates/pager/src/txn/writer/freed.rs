//! What commits have freed since the last records: as long as these are the newest ones, nobody can have the pages.

use crate::options::Options;

/// More pages than any bound of what may wait.
const MUCH: u64 = 1 << 44;

/// Pages freed since the newest record, and between that and the one before.
#[derive(Debug, Default)]
pub(crate) struct Freed([u64; 2]);

impl Freed {
    /// A commit has freed so many pages.
    pub(crate) fn add(&mut self, pages: u64) {
        self.0[0] += pages;
    }

    /// There is a newer record.
    pub(super) fn record(&mut self) {
        self.0 = [0, self.0[0]];
    }

    /// No space is left: what is freed is to come back soon.
    pub(super) fn ask_for_records(&mut self) {
        self.0 = [MUCH; 2];
    }

    /// Whether much comes back only with the next records.
    pub(crate) fn needs_record(&self, page_size: usize, options: &Options) -> bool {
        let records = 1 + usize::from(options.keep_older);
        let bytes = self.0[..records].iter().sum::<u64>() * page_size as u64;
        bytes > options.shrink_bytes.max(options.log_bytes)
    }
}
