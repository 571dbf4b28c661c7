//! Knowledge of the writer about the log of small commits.

use crate::commit::redo::Recorder;

#[derive(Debug)]
pub(crate) struct LogState {
    /// Pages in use when this handle made the log.
    pub(crate) made_at: u64,
    /// Maximum length of the log; lowered to half of a length for which there was no room.
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
