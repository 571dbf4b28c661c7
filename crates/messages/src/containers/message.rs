//! Messages of containers: the row of a message, and the types that readers receive.
//!
//! ```text
//! 0  u8    flags: 1 the message is protected, 2 it stands for several messages
//! 1  i64   time at which the message was received
//! 9  u32   with flag 2: number of messages for which it stands, at least 2
//! .  the document, encoded
//! ```
//!
//! If a message is thinned again, the number of messages for which it stands is its weight in a mean.

use crate::containers::codec::EncodedDocument;
use crate::containers::keys::{MESSAGE_KEY_BYTES, MessageKey};
use crate::containers::parts::{damaged, shown};
use tidalite_base::{get_i64, get_u32};
use tidalite_pager::Result;
use tidalite_time::Timestamp;

const PROTECTED: u8 = 1;
const SEVERAL: u8 = 2;

/// Length in bytes of the fields before the document, for a message that stands only for itself.
pub(crate) const HEAD_BYTES: usize = 9;
/// Length in bytes of the field with the number of messages for which a message stands.
const SEVERAL_BYTES: usize = 4;

/// A message, borrowed from its page where possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerMessage<'m> {
    /// Container, time and tie.
    pub key: MessageKey,
    /// Time at which the message was received.
    pub received: Timestamp,
    /// Whether the message is protected from expiry and rotation.
    pub is_protected: bool,
    /// Number of messages for which this one stands: 1, or more if it was left by thinning.
    pub stands_for: u32,
    /// The document, encoded with the numbers of its fields.
    pub document: &'m [u8],
}

impl<'m> ContainerMessage<'m> {
    pub(crate) fn decode(key: MessageKey, row: &'m [u8]) -> Result<Self> {
        let head = decode_head(row)?;
        Ok(Self {
            key,
            received: head.received,
            is_protected: head.is_protected,
            stands_for: head.stands_for,
            document: &row[head.len()..],
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
            stands_for: self.stands_for,
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
    pub received: Timestamp,
    /// Whether the message is protected from expiry and rotation.
    pub is_protected: bool,
    /// Number of messages for which this one stands: 1, or more if it was left by thinning.
    pub stands_for: u32,
    /// The document, encoded with the numbers of its fields; [`FieldNames::decode`](crate::FieldNames::decode) decodes
    /// it.
    pub document: Vec<u8>,
}

impl StoredMessage {
    pub(crate) fn decode(key: MessageKey, row: &[u8]) -> Result<Self> {
        Ok(ContainerMessage::decode(key, row)?.to_stored())
    }

    fn head(&self) -> Head {
        Head {
            is_protected: self.is_protected,
            received: self.received,
            stands_for: self.stands_for,
        }
    }

    /// The message's size as counted in limits and totals.
    pub(crate) fn counted_bytes(&self) -> u64 {
        counted_bytes((self.head().len() + self.document.len()) as u64)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let head = self.head();
        let mut row = Vec::with_capacity(head.len() + self.document.len());
        head.put(&mut row);
        row.extend_from_slice(&self.document);
        row
    }
}

/// The size of a message as counted in limits and totals: its key and its row.
pub(crate) fn counted_bytes(row_len: u64) -> u64 {
    MESSAGE_KEY_BYTES as u64 + row_len
}

/// The fields of a row before the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) is_protected: bool,
    pub(crate) received: Timestamp,
    pub(crate) stands_for: u32,
}

impl Head {
    /// Number of bytes before the document.
    pub(crate) fn len(&self) -> usize {
        match self.stands_for > 1 {
            true => HEAD_BYTES + SEVERAL_BYTES,
            false => HEAD_BYTES,
        }
    }

    /// Appends the fields to a row.
    pub(crate) fn put(&self, row: &mut Vec<u8>) {
        let is_several = self.stands_for > 1;
        let protected = if self.is_protected { PROTECTED } else { 0 };
        row.push(protected | if is_several { SEVERAL } else { 0 });
        row.extend_from_slice(&self.received.0.to_le_bytes());
        if is_several {
            row.extend_from_slice(&self.stands_for.to_le_bytes());
        }
    }
}

/// Appends the fields before the document, for a message that stands only for itself.
pub(crate) fn put_head(is_protected: bool, received: Timestamp, row: &mut Vec<u8>) {
    let head = Head {
        is_protected,
        received,
        stands_for: 1,
    };
    head.put(row);
}

/// Reads the fields before the document.
pub(crate) fn decode_head(row: &[u8]) -> Result<Head> {
    read_head(row).ok_or_else(|| damaged("message of a container", shown(row), "a message"))
}

fn read_head(row: &[u8]) -> Option<Head> {
    let (head, rest) = row.split_first_chunk::<HEAD_BYTES>()?;
    let flags = head[0];
    let stands_for = match flags & SEVERAL {
        0 => 1,
        _ => {
            let several = rest.first_chunk::<SEVERAL_BYTES>()?;
            Some(get_u32(several, 0)).filter(|count| *count > 1)?
        }
    };
    (flags <= PROTECTED | SEVERAL).then_some(Head {
        is_protected: flags & PROTECTED != 0,
        received: Timestamp(get_i64(head, 1)),
        stands_for,
    })
}
