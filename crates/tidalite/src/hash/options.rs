//! Options of a hash table.

use std::hash::{BuildHasher, Hasher, RandomState};
use tidalite_index::{HashOptions, History, KeyForm};

/// Options with which a hash table is created.
///
/// ```
/// use tidalite::hash_table::{HashTableOptions, History, KeyForm};
///
/// // Paths of files: long, unordered, and the case of letters does not matter. The last two contents are kept.
/// let options = HashTableOptions::new()
///     .key_form(KeyForm::Hashed)
///     .fold_case(true)
///     .history(History::Last(2));
/// ```
///
/// Two options are equal if tables created with them behave alike: seeds are not compared.
#[derive(Clone, Copy, Debug)]
pub struct HashTableOptions(HashOptions);

impl PartialEq for HashTableOptions {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for HashTableOptions {}

/// The options of an existing table, to create another table like it.
impl From<HashOptions> for HashTableOptions {
    fn from(stored: HashOptions) -> Self {
        Self(stored)
    }
}

impl Default for HashTableOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl HashTableOptions {
    /// The default options: whole keys of up to 255 bytes, one record for each key, no history.
    #[must_use]
    pub fn new() -> Self {
        Self(HashOptions {
            key: KeyForm::Whole { bytes_max: 255 },
            duplicates: false,
            fold_case: false,
            history: History::None,
            // A random seed prevents attackers from preparing many keys with the same hash.
            seed: RandomState::new().build_hasher().finish(),
        })
    }

    /// The form in which the index holds keys. Lengths refer to the stored form of a key: a text needs two bytes more
    /// than its UTF-8; in tables of plain bytes a key needs its own length.
    #[must_use]
    pub fn key_form(mut self, key: KeyForm) -> Self {
        self.0.key = key;
        self
    }

    /// Whether a key can have several records.
    #[must_use]
    pub fn duplicates(mut self, duplicates: bool) -> Self {
        self.0.duplicates = duplicates;
        self
    }

    /// Whether keys that differ only in the case of letters are the same key. Keys must then be of the type `str` or
    /// `String` without NUL, or plain bytes that are valid UTF-8. The record keeps the key as it was set.
    #[must_use]
    pub fn fold_case(mut self, fold_case: bool) -> Self {
        self.0.fold_case = fold_case;
        self
    }

    /// Number of older versions of a key that are kept when it is set again or removed. The removal of a key is a
    /// version, too.
    #[must_use]
    pub fn history(mut self, history: History) -> Self {
        self.0.history = history;
        self
    }

    /// Seed of the hash of keys. The default is random, which prevents attackers from preparing many keys with the same
    /// hash; with a given seed the same calls write the same bytes. The seed is used only when the table is created.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.0.seed = seed;
        self
    }

    pub(crate) fn stored(self) -> HashOptions {
        self.0
    }

    /// Whether a table with the options `stored` was created with these options, apart from the seed.
    pub(crate) fn matches(self, stored: &HashOptions) -> bool {
        let seed = stored.seed;
        HashOptions { seed, ..self.0 } == *stored
    }
}
