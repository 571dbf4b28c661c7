//! State of the writer for the redo log.

use crate::commit::redo::Recorder;

#[derive(Debug)]
pub(crate) struct LogState {
    /// Number of pages in use when this handle created the log.
    pub(crate) made_at: u64,
    /// Maximum length of the log. If there was no room for a log, this is lowered to half of the length that was tried.
    pub(crate) bytes_most: u64,
    /// Encoder of log records.
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
