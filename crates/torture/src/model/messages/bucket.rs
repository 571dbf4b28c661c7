//! A bucket in memory. The bytes of an object follow from a seed, which the object has in its metadata.

use std::collections::{BTreeMap, BTreeSet};
use tidalite::Timestamp;
use tidalite::objects::ObjectAttributes;
use tidalite_testkit::rng::mix;

/// Size in bytes of a chunk: more than a page of 512 bytes, and so little that an object of a few pages has several.
pub(crate) const CHUNK_BYTES: u32 = 700;
/// Number of bytes that are generated at a time.
const WORD: usize = 8;
/// The key of the seed in the metadata of an object.
const SEED: &str = "seed";

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) seed: u64,
    pub(crate) size: u64,
    pub(crate) created: i64,
    pub(crate) modified: i64,
    pub(crate) expires: Option<i64>,
    pub(crate) is_protected: bool,
}

/// An upload that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Upload {
    pub(crate) name: String,
    pub(crate) seed: u64,
    pub(crate) expires: i64,
    /// Number of bytes of an upload by appending.
    pub(crate) appended: u64,
    /// Number of chunks of a part and sizes of the parts, of an upload in parts.
    pub(crate) parts: Option<(u32, BTreeMap<u32, u64>)>,
}

/// The expected content of a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    pub(crate) objects: BTreeMap<String, Object>,
    pub(crate) uploads: BTreeMap<u64, Upload>,
    /// Expiry and number of bytes of puts that were abandoned after some chunks.
    pub(crate) abandoned: Vec<(i64, u64)>,
}

/// The bytes of contents from `offset` on.
pub(crate) fn bytes_of(seed: u64, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len + 2 * WORD);
    let first = offset / WORD as u64;
    for word in first.. {
        bytes.extend_from_slice(&mix(seed ^ mix(word)).to_le_bytes());
        if bytes.len() >= len + WORD {
            break;
        }
    }
    bytes.drain(..(offset % WORD as u64) as usize);
    bytes.truncate(len);
    bytes
}

/// The attributes of an object whose contents have this seed.
pub(crate) fn attributes(seed: u64, expires: Option<i64>, is_protected: bool) -> ObjectAttributes {
    ObjectAttributes {
        content_type: "application/x-noise".to_owned(),
        metadata: vec![(SEED.to_owned(), seed.to_string())],
        expires: expires.map(Timestamp),
        protected: is_protected,
    }
}

/// The seed of the contents of an object with these attributes; 0 if it has none.
pub(crate) fn seed_of(attributes: &ObjectAttributes) -> u64 {
    let seeds = attributes.metadata.iter().filter(|(key, _)| key == SEED);
    let mut seeds = seeds.filter_map(|(_, seed)| seed.parse().ok());
    seeds.next().unwrap_or(0)
}

fn chunks_of(bytes: u64) -> u64 {
    bytes.div_ceil(u64::from(CHUNK_BYTES))
}

impl Object {
    /// Whether the object can be found at `now`.
    pub(crate) fn is_live(&self, now: i64) -> bool {
        self.is_protected || self.expires.is_none_or(|time| time > now)
    }
}

impl Upload {
    /// Number of bytes that are stored.
    pub(crate) fn len(&self) -> u64 {
        match &self.parts {
            Some((_, parts)) => parts.values().sum(),
            None => self.appended,
        }
    }

    /// Size in bytes of a whole part.
    pub(crate) fn part_bytes(chunks: u32) -> u64 {
        u64::from(chunks) * u64::from(CHUNK_BYTES)
    }

    /// The first part that is missing, or shorter than the others without being the last one.
    pub(crate) fn missing(&self) -> Option<u32> {
        let (chunks, parts) = self.parts.as_ref()?;
        let last = parts.keys().next_back().copied();
        let last = last?;
        (0..=last).find(|number| {
            let bytes = parts.get(number).copied().unwrap_or(0);
            bytes == 0 || *number < last && bytes < Self::part_bytes(*chunks)
        })
    }

    /// Number of stored chunks. Appended bytes of an upload that do not fill a chunk yet are stored separately.
    fn chunks(&self) -> u64 {
        match &self.parts {
            Some((_, parts)) => parts.values().map(|bytes| chunks_of(*bytes)).sum(),
            None => self.appended / u64::from(CHUNK_BYTES),
        }
    }
}

impl Bucket {
    /// The object of this name that can be found at `now`.
    pub(crate) fn live(&self, name: &str, now: i64) -> Option<&Object> {
        self.objects.get(name).filter(|object| object.is_live(now))
    }

    /// Puts an object in place of another one; returns whether it has replaced one.
    pub(crate) fn put(&mut self, name: &str, object: Object, now: i64) -> bool {
        let old = self.live(name, now);
        let created = old.map(|old| old.created);
        let object = Object {
            created: created.unwrap_or(now),
            modified: now,
            ..object
        };
        self.objects.insert(name.to_owned(), object);
        created.is_some()
    }

    /// Removes everything that has expired at `now`; returns the numbers of objects and of uploads and puts.
    pub(crate) fn expire(&mut self, now: i64) -> (u64, u64) {
        let (objects, uploads) = (self.objects.len(), self.uploads.len());
        let abandoned = self.abandoned.len();
        self.objects.retain(|_, object| object.is_live(now));
        self.uploads.retain(|_, upload| upload.expires > now);
        self.abandoned.retain(|(expires, _)| *expires > now);
        let removed = uploads + abandoned - self.uploads.len() - self.abandoned.len();
        ((objects - self.objects.len()) as u64, removed as u64)
    }

    /// Number of chunks when none is an orphan. Copies share the chunks of their source, which has the same seed.
    pub(crate) fn chunks(&self) -> u64 {
        let contents = self.objects.values();
        let contents: BTreeSet<_> = contents.map(|object| (object.seed, object.size)).collect();
        let objects: u64 = contents.iter().map(|(_, size)| chunks_of(*size)).sum();
        let uploads: u64 = self.uploads.values().map(Upload::chunks).sum();
        let abandoned = self.abandoned.iter().map(|(_, bytes)| chunks_of(*bytes));
        objects + uploads + abandoned.sum::<u64>()
    }

    /// Number of bytes of all uploads and abandoned puts.
    pub(crate) fn upload_bytes(&self) -> u64 {
        let abandoned = self.abandoned.iter().map(|(_, bytes)| bytes);
        self.uploads.values().map(Upload::len).sum::<u64>() + abandoned.sum::<u64>()
    }
}
