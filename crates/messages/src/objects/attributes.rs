//! The attributes that a user assigns to an object.
//!
//! ```text
//!  0  i64   expiry, 2^63 - 1 for none
//!  8  u8    flags: 1 = protected
//!  9  u8    length of the content type
//! 10  u16   number of pairs of metadata
//! 12  content type, then for each pair: u16 length of the key, key, u16 length of the value, value
//! ```

use crate::objects::fields::Fields;
use tidalite_pager::{Error, Result};
use tidalite_time::Timestamp;

/// Maximum length in bytes of a content type.
pub const CONTENT_TYPE_BYTES_MAX: usize = 255;

/// Maximum number of key-value pairs in the metadata of an object.
pub const METADATA_PAIRS_MAX: usize = 256;

/// Maximum length in bytes of all keys and values of the metadata of an object.
pub const METADATA_BYTES_MAX: usize = 16 << 10;

const PROTECTED: u8 = 1;
const NO_EXPIRY: Timestamp = Timestamp::MAX;

/// The attributes that a user assigns to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectAttributes {
    /// Type of the contents, such as `video/mp4`; may be empty.
    pub content_type: String,
    /// Pairs of keys and values, in the order in which they were given.
    pub metadata: Vec<(String, String)>,
    /// Time from which on the object no longer exists; `None`, or [`Timestamp::MAX`], for an object that does not
    /// expire.
    pub expires: Option<Timestamp>,
    /// Exempts the object from expiry, rotation and deletion by prefix. It can be replaced and deleted by its name.
    pub protected: bool,
}

impl ObjectAttributes {
    /// The time at which the object is removed; `None` if it does not expire.
    pub(crate) fn removed_at(&self) -> Option<Timestamp> {
        self.expires
            .filter(|time| !self.protected && *time != NO_EXPIRY)
    }

    /// Checks the lengths.
    pub(crate) fn check(&self) -> Result<()> {
        let bytes = self
            .metadata
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        let limits = [
            (
                "bytes of a content type",
                self.content_type.len(),
                CONTENT_TYPE_BYTES_MAX,
            ),
            (
                "pairs of metadata of an object",
                self.metadata.len(),
                METADATA_PAIRS_MAX,
            ),
            ("bytes of metadata of an object", bytes, METADATA_BYTES_MAX),
        ];
        match limits.into_iter().find(|(_, found, limit)| found > limit) {
            None => Ok(()),
            Some((what, found, limit)) => Err(Error::Limit {
                what,
                found: found as u64,
                limit: limit as u64,
            }),
        }
    }

    /// Appends the encoded attributes, whose lengths were checked.
    pub(crate) fn encode_to(&self, bytes: &mut Vec<u8>) {
        debug_assert!(self.check().is_ok(), "the lengths were checked");
        bytes.extend_from_slice(&self.expires.unwrap_or(NO_EXPIRY).0.to_le_bytes());
        bytes.push(u8::from(self.protected) * PROTECTED);
        bytes.push(self.content_type.len() as u8);
        bytes.extend_from_slice(&(self.metadata.len() as u16).to_le_bytes());
        bytes.extend_from_slice(self.content_type.as_bytes());
        for text in self.metadata.iter().flat_map(|(key, value)| [key, value]) {
            bytes.extend_from_slice(&(text.len() as u16).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }

    /// Decodes attributes, which are the last fields of a row.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self> {
        let expires = Some(fields.time()?).filter(|time| *time != NO_EXPIRY);
        let flags = fields.u8()?;
        let type_bytes = usize::from(fields.u8()?);
        let pairs = usize::from(fields.u16()?);
        if flags & !PROTECTED != 0 || pairs > METADATA_PAIRS_MAX {
            let found = format!("flags {flags:#x}, {pairs} pairs of metadata");
            return Err(fields.error(found, "attributes"));
        }
        let content_type = fields.text(type_bytes)?.to_owned();
        let mut metadata = Vec::with_capacity(pairs);
        let mut text = || {
            let len = usize::from(fields.u16()?);
            fields.text(len).map(str::to_owned)
        };
        for _ in 0..pairs {
            metadata.push((text()?, text()?));
        }
        fields.end()?;
        let attributes = Self {
            content_type,
            metadata,
            expires,
            protected: flags & PROTECTED != 0,
        };
        match attributes.check() {
            Ok(()) => Ok(attributes),
            Err(_) => Err(fields.error("too much metadata", "attributes within their limits")),
        }
    }
}
