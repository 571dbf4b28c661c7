//! Messages of containers: the row of a message, and messages as readers get them.
//!
//! ```text
//! 0  u8    flags: 1 the message is protected
//! 1  i64   time at which the message was received
//! 9  the document, encoded
//! ```

use crate::containers::codec::EncodedDocument;
use crate::containers::keys::{MESSAGE_KEY_BYTES, MessageKey};
use crate::containers::parts::{damaged, shown};
use tidalite_base::get_i64;
use tidalite_pager::Result;

const PROTECTED: u8 = 1;

/// Length in bytes of the fields before the document.
pub(crate) const HEAD_BYTES: usize = 9;

/// A message, borrowed from its page where possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerMessage<'m> {
    /// Container, time and tie.
    pub key: MessageKey,
    /// Time at which the message was received.
    pub received: i64,
    /// Whether the message is protected from expiry and rotation.
    pub is_protected: bool,
    /// The document, encoded with the numbers of its fields.
    pub document: &'m [u8],
}

impl<'m> ContainerMessage<'m> {
    pub(crate) fn decode(key: MessageKey, row: &'m [u8]) -> Result<Self> {
        let (is_protected, received) = decode_head(row)?;
        Ok(Self {
            key,
            received,
            is_protected,
            document: &row[HEAD_BYTES..],
        })
    }

    /// The fields of the document.
    ///
    /// # Errors
    /// Bytes that do not begin as a document does.
    pub fn fields(&self) -> Result<EncodedDocument<'m>> {
        EncodedDocument::new(self.document)
    }

    /// The message with a copy of its document.
    #[must_use]
    pub fn to_stored(&self) -> StoredMessage {
        StoredMessage {
            key: self.key,
            received: self.received,
            is_protected: self.is_protected,
            document: self.document.to_vec(),
        }
    }
}

/// A message in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Container, time and tie.
    pub key: MessageKey,
    /// Time at which the message was received.
    pub received: i64,
    /// Whether the message is protected from expiry and rotation.
    pub is_protected: bool,
    /// The document, encoded with the numbers of its fields.
    pub document: Vec<u8>,
}

impl StoredMessage {
    pub(crate) fn decode(key: MessageKey, row: &[u8]) -> Result<Self> {
        Ok(ContainerMessage::decode(key, row)?.to_stored())
    }

    /// The same message with a borrowed document.
    #[must_use]
    pub fn as_message(&self) -> ContainerMessage<'_> {
        ContainerMessage {
            key: self.key,
            received: self.received,
            is_protected: self.is_protected,
            document: &self.document,
        }
    }

    /// Number of bytes that the message counts with.
    pub(crate) fn counted_bytes(&self) -> u64 {
        counted_bytes(HEAD_BYTES as u64 + self.document.len() as u64)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(HEAD_BYTES + self.document.len());
        put_head(self.is_protected, self.received, &mut row);
        row.extend_from_slice(&self.document);
        row
    }
}

/// Number of bytes that a message counts with: its key and its row.
pub(crate) fn counted_bytes(row_len: u64) -> u64 {
    MESSAGE_KEY_BYTES as u64 + row_len
}

/// Appends the fields before the document.
pub(crate) fn put_head(is_protected: bool, received: i64, row: &mut Vec<u8>) {
    row.push(if is_protected { PROTECTED } else { 0 });
    row.extend_from_slice(&received.to_le_bytes());
}

/// Whether a message is protected, and the time at which it was received.
pub(crate) fn decode_head(row: &[u8]) -> Result<(bool, i64)> {
    match row.first_chunk::<HEAD_BYTES>() {
        Some(head) if head[0] <= PROTECTED => Ok((head[0] == PROTECTED, get_i64(head, 1))),
        _ => Err(damaged("message of a container", shown(row), "a message")),
    }
}
