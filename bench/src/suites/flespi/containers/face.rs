//! The interface of the stores of messages.

use super::answer::{Answer, Form, Hour, Reading, Source, Span};
use super::feed::Telemetry;
use crate::engine::Result;

/// A store that is open for writing.
pub(super) trait Writer {
    /// Prepares messages for the form `Prepared`. This is not measured.
    fn prepare(&mut self, messages: &[Telemetry]) -> Result<()>;
    /// Stores messages in one durable transaction: the messages prepared last, if the form is `Prepared`.
    fn append(&mut self, messages: &[Telemetry], form: Form) -> Result<()>;
    /// Number of waits for the disk so far that are not calls of `fsync` or similar functions.
    fn silent_syncs(&self) -> u64;
}

/// A snapshot of a store.
pub(super) trait Reader {
    /// Reads messages in the order of their times.
    fn read(&self, span: Span, reading: Reading) -> Result<Answer>;
    /// The latest values of a device. The value of the answer is the speed.
    fn latest(&self, device: usize) -> Result<Answer>;
    /// The figures of each hour that has messages.
    fn hours(&self, span: Span, source: Source) -> Result<Vec<Hour>>;
}
