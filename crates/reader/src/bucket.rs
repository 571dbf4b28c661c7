//! Reads buckets (section 9.13 of docs/format.md): the objects, whose contents are compared with their hashes, uploads
//! and links. The rows that are derived from these are checked as well.

use crate::bytes::{Fields, key_time};
use crate::error::Result;
use crate::image::text;
use crate::parts::{Expected, Parts, end, key};
use crate::runs::{broken, require};
use crate::table::Rows;
use std::collections::{BTreeMap, BTreeSet};

const OBJECTS: u8 = 2;
const CHUNKS: u8 = 3;
const HASHES: u8 = 4;
const BY_EXPIRY: u8 = 5;
const BY_AGE: u8 = 6;
const SHARES: u8 = 7;
const ORPHANS: u8 = 8;
const UPLOADS: u8 = 9;
const UPLOADS_BY_EXPIRY: u8 = 10;
const TAILS: u8 = 11;
const LINKS: u8 = 12;
const LINKS_BY_EXPIRY: u8 = 13;

const NEVER: i64 = i64::MAX;
const CONTENTS_MAX: u64 = (1 << 62) - 1;
const CHUNKS_MAX: u64 = u32::MAX as u64;
const PUT: usize = u32::MAX as usize;

/// A BLAKE3 hash.
pub type Hash = [u8; 32];

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The options.
    pub options: Options,
    /// Number of chunks, and their bytes.
    pub chunks: (u64, u64),
    /// Number of contents that were removed, and whose chunks are not all freed yet.
    pub orphans: usize,
    /// The objects, ordered by name.
    pub objects: Vec<Object>,
    /// The uploads, ordered by their content ids.
    pub uploads: Vec<Upload>,
    /// The links, ordered by key.
    pub links: Vec<Link>,
}

/// The options of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// True if a full bucket removes its oldest objects.
    pub rotates: bool,
    /// Maximum number of bytes of an object.
    pub object_bytes_max: u64,
    /// Maximum number of objects.
    pub objects_max: u64,
    /// Maximum number of bytes of all objects.
    pub bytes_max: u64,
    /// Maximum number of uploads.
    pub uploads_max: u64,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// Time at which an object of this name was put first.
    pub created: i64,
    /// Time at which the object got its contents.
    pub modified: i64,
    /// Hash of the contents.
    pub hash: Hash,
    /// The attributes.
    pub attributes: Attributes,
    /// The contents.
    pub contents: Vec<u8>,
}

/// Attributes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Time of expiry.
    pub expires: Option<i64>,
    /// True if the object is protected.
    pub is_protected: bool,
    /// Type of the contents.
    pub content_type: String,
    /// Keys and values.
    pub metadata: Vec<(String, String)>,
}

/// An upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// Content id of the object to be.
    pub id: u64,
    /// Name of the object to be.
    pub name: String,
    /// Number of chunks of a part; 0 for an upload by appending, 2^32 - 1 for a put that is not finished.
    pub part_chunks: usize,
    /// Time at which it began.
    pub began: i64,
    /// Time from which on it does not exist.
    pub expires: i64,
    /// Number of bytes that are stored.
    pub bytes: u64,
    /// Bytes of a chunk.
    pub chunk_bytes: usize,
    /// The attributes of the object to be.
    pub attributes: Attributes,
    /// The parts that are stored: number, bytes, hash.
    pub parts: Vec<(u32, u64, Hash)>,
}

/// A link to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its key.
    pub key: [u8; 16],
    /// Name of the object.
    pub name: String,
    /// Time of expiry.
    pub expires: Option<i64>,
    /// Number of reads, and of bytes that were read.
    pub reads: (u64, u64),
}

/// The chunks of contents, by content id and index: the bytes and their hash.
type Chunks<'r> = BTreeMap<u64, BTreeMap<u32, (&'r [u8], Hash)>>;

impl Bucket {
    /// Reads the rows of the root table.
    ///
    /// # Errors
    /// If the rows break a rule of the format.
    pub fn read(root: &Rows) -> Result<Self> {
        let parts = Parts::new(root, LINKS_BY_EXPIRY)?;
        let options = Options::read(&mut parts.options())?;
        let mut state = parts.state();
        let next_content = state.u64()?;
        let mut totals = [0; 6];
        for total in &mut totals {
            *total = state.u64()?;
        }
        end(&state, "the state of a bucket goes on")?;
        require(
            next_content <= CONTENTS_MAX && totals.iter().all(|total| *total <= 1 << 62),
            "the state of a bucket",
        )?;
        let (chunks, chunk_bytes) = chunks_of(&parts)?;
        let chunk_count = parts.rows(CHUNKS).len() as u64;
        let (objects, owners) = objects_of(&parts, &chunks)?;
        let uploads = uploads_of(&parts, &chunks)?;
        let orphans = orphans_of(&parts)?;
        let uploading: BTreeSet<u64> = uploads.iter().map(|(id, _)| *id).collect();
        let owned = |id: &u64| owners.contains(id) || uploading.contains(id);
        require(
            owners.is_disjoint(&uploading) && !orphans.iter().any(owned),
            "contents with two kinds of owners",
        )?;
        require(
            chunks.keys().all(|id| owned(id) || orphans.contains(id)),
            "chunks of no contents",
        )?;
        let mut used = owners.iter().chain(&uploading).chain(&orphans);
        require(
            used.all(|id| *id < next_content),
            "the next content id of a bucket",
        )?;
        let object_bytes = objects.iter().map(|object| object.contents.len() as u64);
        let upload_bytes = uploads.iter().map(|(_, upload)| upload.bytes);
        let found = [
            objects.len() as u64,
            object_bytes.sum(),
            chunk_count,
            chunk_bytes,
            uploads.len() as u64,
            upload_bytes.sum(),
        ];
        require(found == totals, "the totals of a bucket")?;
        let uploads = uploads.into_iter().map(|(_, upload)| upload);
        Ok(Self {
            options,
            chunks: (chunk_count, chunk_bytes),
            orphans: orphans.len(),
            objects,
            uploads: uploads.collect(),
            links: links_of(&parts)?,
        })
    }
}

/// Reads all chunks and compares them with their hashes; returns the number of their bytes, too.
fn chunks_of<'r>(parts: &Parts<'r>) -> Result<(Chunks<'r>, u64)> {
    let (mut chunks, mut hashes, mut bytes) = (Chunks::new(), Expected::new(), 0);
    for (row, chunk) in parts.rows(CHUNKS) {
        let mut place = Fields::new(row, 0);
        let (content, index) = (place.big(8)?, place.big(4)?);
        end(&place, "the key of a chunk goes on")?;
        require(
            content < CONTENTS_MAX && index < CHUNKS_MAX && !chunk.is_empty(),
            "a chunk",
        )?;
        let hash = *blake3::hash(chunk).as_bytes();
        let length = (chunk.len() as u32).to_le_bytes();
        hashes.insert(row.to_vec(), key(&[&hash, &length]));
        bytes += chunk.len() as u64;
        let of = chunks.entry(content).or_default();
        of.insert(index as u32, (*chunk, hash));
    }
    parts.has(HASHES, &hashes, "the hash of a chunk")?;
    Ok((chunks, bytes))
}

/// The hash of an object whose chunks have these hashes.
fn hash_of<'h>(hashes: impl Iterator<Item = &'h Hash>) -> Hash {
    let mut hasher = blake3::Hasher::new();
    for hash in hashes {
        hasher.update(hash);
    }
    *hasher.finalize().as_bytes()
}

/// Reads the objects, and the ids of their contents.
fn objects_of(parts: &Parts<'_>, chunks: &Chunks<'_>) -> Result<(Vec<Object>, BTreeSet<u64>)> {
    let (mut by_expiry, mut by_age) = (Expected::new(), Expected::new());
    let (mut objects, mut owners) = (Vec::new(), BTreeMap::new());
    for (row, value) in parts.rows(OBJECTS) {
        let (content, size, object) = Object::read(row, value, chunks)?;
        require(
            object.contents.len() as u64 == size,
            "the size of an object",
        )?;
        if !object.attributes.is_protected {
            by_age.insert(key(&[&key_time(object.modified), row]), Vec::new());
            if let Some(expires) = object.attributes.expires {
                by_expiry.insert(key(&[&key_time(expires), row]), Vec::new());
            }
        }
        *owners.entry(content).or_insert(0_u64) += 1;
        objects.push(object);
    }
    parts.has(BY_EXPIRY, &by_expiry, "objects by expiry")?;
    parts.has(BY_AGE, &by_age, "objects by age")?;
    let shared = owners.iter().filter(|(_, objects)| **objects > 1);
    let shares: Expected = shared
        .map(|(id, objects)| {
            (
                id.to_be_bytes().to_vec(),
                (objects - 1).to_le_bytes().to_vec(),
            )
        })
        .collect();
    parts.has(SHARES, &shares, "shared contents")?;
    Ok((objects, owners.into_keys().collect()))
}

impl Object {
    /// Reads an object: its content id, its size, and the object with the chunks that it has.
    fn read(row: &[u8], value: &[u8], chunks: &Chunks<'_>) -> Result<(u64, u64, Self)> {
        let mut fields = Fields::new(value, 0);
        let (content, size) = (fields.u64()?, fields.u64()?);
        let chunk_bytes = chunk_size(&mut fields)?;
        fields.require(content < CONTENTS_MAX, "the content id of an object")?;
        let (created, modified) = (fields.i64()?, fields.i64()?);
        let mut hash = Hash::default();
        hash.copy_from_slice(fields.take(32)?);
        let empty = BTreeMap::new();
        let own = chunks.get(&content).unwrap_or(&empty);
        let count = size.div_ceil(chunk_bytes as u64);
        let last = own.len().saturating_sub(1);
        let mut contents = Vec::new();
        for (place, (index, (bytes, _))) in own.iter().enumerate() {
            let is_whole = bytes.len() == chunk_bytes || place == last;
            fields.require(
                place == *index as usize && is_whole && bytes.len() <= chunk_bytes,
                "the chunks of an object",
            )?;
            contents.extend_from_slice(bytes);
        }
        fields.require(
            own.len() as u64 == count && hash_of(own.values().map(|(_, hash)| hash)) == hash,
            "the contents of an object",
        )?;
        let object = Self {
            name: name_of(row)?,
            chunk_bytes,
            created,
            modified,
            hash,
            attributes: Attributes::read(&mut fields)?,
            contents,
        };
        Ok((content, size, object))
    }
}

impl Attributes {
    /// Reads attributes, which consist of all remaining fields.
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let expires = fields.i64()?;
        let flags = fields.u8()?;
        let type_bytes = usize::from(fields.u8()?);
        let pairs = fields.u16()?;
        fields.require(flags <= 1 && pairs <= 256, "the attributes of an object")?;
        let content_type = text(fields.take(type_bytes)?, fields)?;
        let (mut metadata, mut bytes) = (Vec::new(), 0);
        for _ in 0..pairs {
            let mut word = || -> Result<String> {
                let length = fields.u16()?;
                bytes += length;
                text(fields.take(length)?, fields)
            };
            metadata.push((word()?, word()?));
        }
        end(fields, "the attributes of an object go on")?;
        fields.require(bytes <= 16 << 10, "the metadata of an object")?;
        Ok(Self {
            expires: Some(expires).filter(|time| *time != NEVER),
            is_protected: flags == 1,
            content_type,
            metadata,
        })
    }
}

/// Reads the uploads with their content ids, and checks their chunks and tails.
fn uploads_of(parts: &Parts<'_>, chunks: &Chunks<'_>) -> Result<Vec<(u64, Upload)>> {
    let (mut uploads, mut by_expiry) = (Vec::new(), Expected::new());
    let mut tails: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for (row, value) in parts.rows(TAILS) {
        let mut place = Fields::new(row, 0);
        let (content, offset) = (place.big(8)?, place.big(8)?);
        end(&place, "the key of a tail goes on")?;
        let of = tails.entry(content).or_default();
        of.push((offset, value.len() as u64));
    }
    let empty = BTreeMap::new();
    for (row, value) in parts.rows(UPLOADS) {
        let id = content_of(row)?;
        let mut upload = Upload::read(id, value)?;
        let own = chunks.get(&id).unwrap_or(&empty);
        by_expiry.insert(key(&[&key_time(upload.expires), row]), Vec::new());
        let tails = tails.remove(&id).unwrap_or_default();
        upload.check_bytes(own, &tails)?;
        if (1..PUT).contains(&upload.part_chunks) {
            upload.add_parts(own);
        }
        uploads.push((id, upload));
    }
    require(tails.is_empty(), "tails of no upload")?;
    parts.has(UPLOADS_BY_EXPIRY, &by_expiry, "uploads by expiry")?;
    Ok(uploads)
}

impl Upload {
    fn read(id: u64, value: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(value, 0);
        let (began, expires, bytes) = (fields.i64()?, fields.i64()?, fields.u64()?);
        let chunk_bytes = chunk_size(&mut fields)?;
        let part_chunks = fields.u32()?;
        fields.require(
            part_chunks <= 1024 || part_chunks == PUT,
            "the chunks of a part of an upload",
        )?;
        let name_bytes = fields.u16()?;
        Ok(Self {
            id,
            name: name_of(fields.take(name_bytes)?)?,
            part_chunks,
            began,
            expires,
            bytes,
            chunk_bytes,
            attributes: Attributes::read(&mut fields)?,
            parts: Vec::new(),
        })
    }

    /// Checks that the chunks and the tails (offsets and lengths) are the bytes that are stored.
    fn check_bytes(&self, own: &BTreeMap<u32, (&[u8], Hash)>, tails: &[(u64, u64)]) -> Result<()> {
        let chunk_bytes = self.chunk_bytes as u64;
        let lengths = own.values().map(|(chunk, _)| chunk.len() as u64);
        let stored: u64 = lengths.clone().sum();
        if (1..PUT).contains(&self.part_chunks) {
            let fit = lengths.max() <= Some(chunk_bytes);
            return require(
                stored == self.bytes && fit && tails.is_empty(),
                "the parts of an upload",
            );
        }
        let are_whole = own.keys().copied().eq(0..own.len() as u32)
            && own
                .values()
                .all(|(chunk, _)| chunk.len() as u64 == chunk_bytes);
        require(
            are_whole && stored == self.bytes - self.bytes % chunk_bytes,
            "the whole chunks of an upload",
        )?;
        require(
            self.part_chunks != PUT || tails.is_empty(),
            "the tails of a put",
        )?;
        let mut next = stored;
        for (offset, length) in tails {
            require(*offset == next && *length > 0, "the tails of an upload")?;
            next = next.saturating_add(*length);
        }
        require(next == self.bytes, "the end of an upload")
    }

    fn add_parts(&mut self, own: &BTreeMap<u32, (&[u8], Hash)>) {
        let number = |index: u32| index / self.part_chunks as u32;
        let chunks: Vec<_> = own.iter().collect();
        let parts = chunks.chunk_by(|a, b| number(*a.0) == number(*b.0));
        let parts = parts.map(|part| {
            let bytes = part.iter().map(|(_, (chunk, _))| chunk.len() as u64);
            (
                number(*part[0].0),
                bytes.sum(),
                hash_of(part.iter().map(|(_, (_, hash))| hash)),
            )
        });
        self.parts = parts.collect();
    }
}

fn orphans_of(parts: &Parts<'_>) -> Result<BTreeSet<u64>> {
    let mut orphans = BTreeSet::new();
    for (row, value) in parts.rows(ORPHANS) {
        require(value.is_empty(), "an orphan with a value")?;
        orphans.insert(content_of(row)?);
    }
    Ok(orphans)
}

fn links_of(parts: &Parts<'_>) -> Result<Vec<Link>> {
    let (mut links, mut by_expiry) = (Vec::new(), Expected::new());
    for (row, value) in parts.rows(LINKS) {
        let id: Option<[u8; 16]> = (*row).try_into().ok();
        let mut fields = Fields::new(value, 0);
        let expires = Some(fields.i64()?).filter(|time| *time != NEVER);
        if let Some(expires) = expires {
            by_expiry.insert(key(&[&key_time(expires), row]), Vec::new());
        }
        links.push(Link {
            key: id.ok_or_else(|| broken("the key of a link"))?,
            expires,
            reads: (fields.u64()?, fields.u64()?),
            name: name_of(fields.rest())?,
        });
    }
    parts.has(LINKS_BY_EXPIRY, &by_expiry, "links by expiry")?;
    Ok(links)
}

/// Reads a content id that is the key of a row.
fn content_of(row: &[u8]) -> Result<u64> {
    let mut place = Fields::new(row, 0);
    let content = place.big(8)?;
    end(&place, "a content id goes on")?;
    place.require(content < CONTENTS_MAX, "a content id")?;
    Ok(content)
}

fn chunk_size(fields: &mut Fields<'_>) -> Result<usize> {
    let bytes = fields.u32()?;
    fields.require(
        (1 << 20..=8 << 20).contains(&bytes),
        "the bytes of a chunk of contents",
    )?;
    Ok(bytes)
}

fn name_of(bytes: &[u8]) -> Result<String> {
    let fields = Fields::new(bytes, 0);
    let length = bytes.len();
    fields.require((1..=1024).contains(&length), "the name of an object")?;
    text(bytes, &fields)
}

impl Options {
    fn read(fields: &mut Fields<'_>) -> Result<Self> {
        let chunk_bytes = chunk_size(fields)?;
        let overflow = fields.u32()?;
        fields.require(overflow <= 1, "the rule for a full bucket")?;
        let options = Self {
            chunk_bytes,
            rotates: overflow == 1,
            object_bytes_max: fields.u64()?,
            objects_max: fields.u64()?,
            bytes_max: fields.u64()?,
            uploads_max: fields.u64()?,
        };
        end(fields, "the options of a bucket go on")?;
        Ok(options)
    }
}
