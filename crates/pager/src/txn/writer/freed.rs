//! Pages freed since the last records: they cannot be reused while these records are the newest ones.

use crate::options::Options;

/// More pages than any limit of waiting pages.
const MUCH: u64 = 1 << 44;

/// Pages freed since the newest record, and between it and the one before.
#[derive(Debug, Default)]
pub(crate) struct Freed([u64; 2]);

impl Freed {
    /// Adds the pages freed by a commit.
    pub(crate) fn add(&mut self, pages: u64) {
        self.0[0] += pages;
    }

    /// Notes a newer record.
    pub(super) fn record(&mut self) {
        self.0 = [0, self.0[0]];
    }

    /// Requests records soon, because no space is left.
    pub(super) fn ask_for_records(&mut self) {
        self.0 = [MUCH; 2];
    }

    /// Whether many pages become free only with the next records.
    pub(crate) fn needs_meta(&self, page_size: usize, options: &Options) -> bool {
        let records = 1 + usize::from(options.keep_older);
        let bytes = self.0[..records].iter().sum::<u64>() * page_size as u64;
        bytes > options.shrink_bytes.max(options.log_bytes)
    }
}
