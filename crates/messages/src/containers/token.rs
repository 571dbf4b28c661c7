//! Positions in the order of messages, as values and as bytes.
//!
//! ```text
//! 0  u8    version: 1
//! 1  u32   container
//! 5  i64   time
//! 13 u32   tie
//! ```

use crate::containers::keys::MessageKey;
use crate::containers::parts::shown;
use tidalite_base::{get_i64, get_u32};
use tidalite_pager::{Error, Refusal, Result};

const VERSION: u8 = 1;

/// Length in bytes of an encoded token.
pub const MESSAGE_TOKEN_BYTES: usize = 17;

/// The position after a message, at which a later query continues. It remains valid when messages are added or deleted,
/// including the message itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageToken {
    pub(crate) key: MessageKey,
}

impl MessageToken {
    /// The position after a message.
    #[must_use]
    pub fn behind(key: MessageKey) -> Self {
        Self { key }
    }

    /// The token as bytes.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; MESSAGE_TOKEN_BYTES] {
        let mut bytes = [0; MESSAGE_TOKEN_BYTES];
        bytes[0] = VERSION;
        bytes[1..5].copy_from_slice(&self.key.container.to_le_bytes());
        bytes[5..13].copy_from_slice(&self.key.time.0.to_le_bytes());
        bytes[13..].copy_from_slice(&self.key.tie.to_le_bytes());
        bytes
    }

    /// Reads a token from its bytes.
    ///
    /// # Errors
    /// `InvalidInput` for bytes that are not a token.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != MESSAGE_TOKEN_BYTES || bytes[0] != VERSION {
            return Err(Error::refused(
                Refusal::InvalidInput,
                format!("a token of {}", shown(bytes)),
                "a token of a query of messages",
            ));
        }
        let key = MessageKey::new(get_u32(bytes, 1), get_i64(bytes, 5), get_u32(bytes, 13));
        Ok(Self { key })
    }
}
