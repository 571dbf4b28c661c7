//! State of the writer that concerns the redo log.

use crate::commit::redo::Recorder;

#[derive(Debug)]
pub(crate) struct LogState {
    /// Number of pages in use when this handle created the redo log.
    pub(crate) made_at: u64,
    /// Maximum length in bytes of the redo log. If there was no room for a log, the maximum is lowered to half of the
    /// length that was tried.
    pub(crate) bytes_most: u64,
    /// Encoder of entries for the redo log.
    pub(crate) recorder: Option<Recorder>,
}

impl Default for LogState {
    fn default() -> Self {
        Self {
            made_at: 0,
            bytes_most: u64::MAX,
            recorder: None,
        }
    }
}
