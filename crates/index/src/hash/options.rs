//! The options of a hash table. They are fixed when the table is created.
//!
//! ```text
//!  0  u8    form of keys: 0 whole, 1 hashed to 128 bits, 2 hashed to 64 bits
//!  1  u8    flags: 1 duplicates, 2 case of letters is ignored
//!  2  u16   maximum length in bytes of a key, for whole keys; else 0
//!  4  u32   history: 0 none, 0xffffffff all versions, else the number of older versions
//!  8  u64   seed of the hash
//! ```

use std::borrow::Cow;
use tidalite_base::{Corrupt, get_u16, get_u32, get_u64};
use tidalite_pager::{Error, Refusal, Result};
use xxhash_rust::xxh3::{xxh3_64_with_seed, xxh3_128_with_seed};

/// Maximum length in bytes of a key that the index stores as a whole.
pub const WHOLE_KEY_MAX: u16 = 1024;

/// Maximum length in bytes of a key that the index stores as a hash.
pub const HASHED_KEY_MAX: usize = 16 << 20;

const BYTES: usize = 16;
const DUPLICATES: u8 = 1;
const FOLD_CASE: u8 = 2;

/// The form in which the index of a hash table stores keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// The whole key: the index is ordered by the keys.
    Whole {
        /// Maximum length in bytes of a key, up to [`WHOLE_KEY_MAX`].
        bytes_max: u16,
    },
    /// A hash of 128 bits; the key itself is compared in the record.
    Hashed,
    /// A hash of 64 bits, which gives the smallest index; the key itself is compared in the record.
    Compact,
}

/// The number of older versions of a record that are kept when it is replaced or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    /// No older versions are kept.
    None,
    /// This number of the newest versions is kept.
    Last(u32),
    /// All versions are kept.
    All,
}

/// Options of a hash table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashOptions {
    /// The form in which the index stores keys.
    pub key: KeyForm,
    /// Whether a key can have several records.
    pub duplicates: bool,
    /// Whether keys that differ only in the case of letters are the same key. The stored bytes of keys must then be
    /// UTF-8, and texts must not contain a NUL.
    pub fold_case: bool,
    /// The number of older versions that are kept. A table with duplicates keeps none.
    pub history: History,
    /// Seed of the hash.
    pub seed: u64,
}

impl HashOptions {
    /// Returns a text that says why the options cannot be combined; `None` if they can.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match self.key {
            KeyForm::Whole { bytes_max } if !(1..=WHOLE_KEY_MAX).contains(&bytes_max) => {
                return Some(format!(
                    "keys of {bytes_max} bytes, 1 to {WHOLE_KEY_MAX} can be"
                ));
            }
            _ => {}
        }
        if self.history == History::Last(0) || self.history == History::Last(u32::MAX) {
            return Some("a history of no versions, or of 2^32 - 1: choose none or all".into());
        }
        (self.duplicates && self.history != History::None)
            .then(|| "a history of duplicates: all records of a key are kept anyway".into())
    }

    pub(crate) fn encode(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (form, most) = match self.key {
            KeyForm::Whole { bytes_max } => (0, bytes_max),
            KeyForm::Hashed => (1, 0),
            KeyForm::Compact => (2, 0),
        };
        bytes[0] = form;
        bytes[1] = u8::from(self.duplicates) * DUPLICATES + u8::from(self.fold_case) * FOLD_CASE;
        bytes[2..4].copy_from_slice(&most.to_le_bytes());
        let history = match self.history {
            History::None => 0,
            History::Last(versions) => versions,
            History::All => u32::MAX,
        };
        bytes[4..8].copy_from_slice(&history.to_le_bytes());
        bytes[8..].copy_from_slice(&self.seed.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || -> Error {
            let found = bytes.escape_ascii().to_string();
            Corrupt::new("options of a hash table", 0, found, "options").into()
        };
        if bytes.len() != BYTES || bytes[1] & !(DUPLICATES | FOLD_CASE) != 0 {
            return Err(damaged());
        }
        let bytes_max = get_u16(bytes, 2);
        let options = Self {
            key: match (bytes[0], bytes_max) {
                (0, _) => KeyForm::Whole { bytes_max },
                (1, 0) => KeyForm::Hashed,
                (2, 0) => KeyForm::Compact,
                _ => return Err(damaged()),
            },
            duplicates: bytes[1] & DUPLICATES != 0,
            fold_case: bytes[1] & FOLD_CASE != 0,
            history: match get_u32(bytes, 4) {
                0 => History::None,
                u32::MAX => History::All,
                versions => History::Last(versions),
            },
            seed: get_u64(bytes, 8),
        };
        match options.problem() {
            Some(_) => Err(damaged()),
            None => Ok(options),
        }
    }

    /// Whether the index holds hashes, so that the keys of records must be compared.
    pub(crate) fn is_hashed(&self) -> bool {
        !matches!(self.key, KeyForm::Whole { .. })
    }

    /// Whether the main table of the index may have several entries of one index key.
    pub(crate) fn may_repeat(&self) -> bool {
        self.duplicates || self.is_hashed()
    }

    /// The form in which keys are compared.
    #[must_use]
    pub fn folded<'k>(&self, key: &'k [u8]) -> Cow<'k, [u8]> {
        match self.fold_case.then(|| std::str::from_utf8(key)) {
            Some(Ok(text)) => Cow::Owned(text.to_lowercase().into_bytes()),
            // The database accepts only UTF-8 here. For a damaged record the form does not matter.
            Some(Err(_)) | None => Cow::Borrowed(key),
        }
    }

    /// The key of the index for a record whose folded key is `folded`.
    pub(crate) fn index_key<'k>(&self, folded: &'k [u8]) -> IndexKey<'k> {
        match self.key {
            KeyForm::Whole { .. } => IndexKey::Whole(folded),
            KeyForm::Hashed => {
                let hash = xxh3_128_with_seed(folded, self.seed) & self.hash_mask();
                IndexKey::Hash(hash.to_be_bytes(), 16)
            }
            KeyForm::Compact => {
                let hash = xxh3_64_with_seed(folded, self.seed) & self.hash_mask() as u64;
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&hash.to_be_bytes());
                IndexKey::Hash(bytes, 8)
            }
        }
    }

    /// The bits of the hash that are used. These are all bits; but in tests, with every third seed, only a few, so that
    /// many keys have the same hash.
    fn hash_mask(&self) -> u128 {
        match cfg!(test) && self.seed.is_multiple_of(3) {
            true => 0x1f,
            false => u128::MAX,
        }
    }

    /// Checks the length of a key, and that it is UTF-8 if the table ignores case.
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let limit = match self.key {
            KeyForm::Whole { bytes_max } => usize::from(bytes_max),
            _ => HASHED_KEY_MAX,
        };
        if key.len() > limit {
            return Err(Error::Limit {
                what: "bytes of a key of the hash table",
                found: key.len() as u64,
                limit: limit as u64,
            });
        }
        if self.fold_case && std::str::from_utf8(key).is_err() {
            return Err(Error::refused(
                Refusal::InvalidInput,
                format!("the key {}", key.escape_ascii()),
                "UTF-8 (of a text, without NUL), because the table ignores the case of letters",
            ));
        }
        Ok(())
    }
}

/// A key in the form in which the index stores it.
pub(crate) enum IndexKey<'k> {
    Whole(&'k [u8]),
    Hash([u8; 16], usize),
}

impl std::ops::Deref for IndexKey<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Whole(key) => key,
            Self::Hash(hash, len) => &hash[..*len],
        }
    }
}
