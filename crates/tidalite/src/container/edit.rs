//! Replacing, deleting and restoring messages of containers.

use crate::container::append::ContainersMut;
use crate::container::follow::spans_of;
use crate::types::error::Result;
use tidalite_messages::{
    ContainerMessage, DeleteRange, Deleted, Document, EncodedDocument, EncodedFields, EncodedPath,
    Expression, RestoreRange, Restored, StoredMessage,
};
use tidalite_time::Timestamp;

/// Changed times that are at most this many nanoseconds apart are handled as one range.
const NEAR_NS: i64 = 60_000_000_000;

impl ContainersMut<'_> {
    /// Replaces the document of the message with this time and tie. Returns the message as it was before; `None`, with
    /// nothing changed, if it does not exist.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; `Limit`, `InvalidName` and `InvalidInput` for a document that
    /// cannot be stored. A damaged page, a full disk.
    pub fn replace_message(
        &mut self,
        container: &str,
        (time, tie): (Timestamp, u32),
        document: &Document,
    ) -> Result<Option<StoredMessage>> {
        self.change(
            |containers, now| containers.replace_message(now, container, (time.0, tie), document),
            |containers, old| {
                if old.is_some() {
                    containers.remake(container, (time.0, time.0))?;
                }
                Ok(old)
            },
        )
    }

    /// Deletes the message with this time and tie. Returns it; `None` if it does not exist.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    pub fn delete_message(
        &mut self,
        container: &str,
        (time, tie): (Timestamp, u32),
    ) -> Result<Option<StoredMessage>> {
        self.txn.free_space();
        self.change(
            |containers, now| containers.delete_message(now, container, (time.0, tie)),
            |containers, old| {
                if old.is_some() {
                    containers.remake(container, (time.0, time.0))?;
                }
                Ok(old)
            },
        )
    }

    /// Deletes the messages in a range of times, all of them or the ones that match a filter. Each call deletes a
    /// bounded number. With `dry_run` the messages are only counted. If the options of the container keep deleted
    /// messages, they can be [restored](Self::restore_messages). The latest values of fields do not change.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist, `InvalidInput` for operands of the filter that do not fit:
    /// nothing has changed then. A damaged page, a full disk.
    ///
    /// # Cost
    /// Reads up to `examined_max` messages of the range.
    pub fn delete_messages(
        &mut self,
        container: &str,
        range: &DeleteRange,
        filter: Option<&Expression>,
    ) -> Result<Deleted> {
        self.txn.free_space();
        let paths: Option<Vec<EncodedPath>> = match filter {
            Some(filter) => {
                let view = self.view()?;
                Some(EncodedPath::all(filter.fields(), &view.numbers()?))
            }
            None => None,
        };
        let mut times = Vec::new();
        let mut select = |message: &ContainerMessage<'_>| {
            if let (Some(filter), Some(paths)) = (filter, &paths) {
                let source = EncodedFields {
                    document: EncodedDocument::new(message.document)?,
                    paths,
                    time: Some(message.key.time),
                    received: Some(message.received),
                };
                if !filter.matches(&source)? {
                    return Ok(false);
                }
            }
            times.push(message.key.time.0);
            Ok(true)
        };
        let deleted = self.change_only(|containers, now| {
            containers.delete_messages(now, container, range, &mut select)
        })?;
        if !range.dry_run {
            let index = self.index;
            self.txn.changing_containers(|txn| {
                let mut containers = ContainersMut { txn, index };
                let mut spans = spans_of(times, NEAR_NS).into_iter();
                spans.try_for_each(|span| containers.remake(container, span))
            })?;
        }
        Ok(deleted)
    }

    /// Restores deleted messages of a container, a bounded number in one call, beginning with the last deletion.
    ///
    /// # Errors
    /// `NotFound` for a container that does not exist; a damaged page, a full disk.
    ///
    /// # Cost
    /// Reads up to `examined_max` deleted messages, with one lookup for each, and keeps them in memory.
    pub fn restore_messages(&mut self, container: &str, range: &RestoreRange) -> Result<Restored> {
        self.change(
            |containers, now| containers.restore_messages(now, container, range),
            |containers, restored| {
                let times = restored.messages.iter();
                let times = times.map(|message| message.key.time.0);
                for span in spans_of(times, NEAR_NS) {
                    containers.remake(container, span)?;
                }
                Ok(restored)
            },
        )
    }
}
