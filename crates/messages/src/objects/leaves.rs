//! Determines to which part of a bucket the rows of an unreferenced leaf belong.

use crate::objects::chunks::ChunkHash;
use crate::objects::keys::{CHUNK_BYTES_MAX, chunk_of, id_of};
use crate::objects::manifest::ObjectInfo;
use crate::objects::parts::Part;
use crate::objects::upload::UploadInfo;

/// The key, in the root table, of the nested table to which the rows of a leaf belong, if the rows are manifests or
/// chunks; `None` for all other rows. A value is `None` if it is lost, or large; only chunks have large values.
#[must_use]
pub fn part_of_bucket_rows(rows: &[(Vec<u8>, Option<Vec<u8>>)]) -> Option<[u8; 1]> {
    type Row = (Vec<u8>, Option<Vec<u8>>);
    let is_manifest = |(key, value): &Row| {
        let value = value.as_ref();
        value.is_some_and(|value| ObjectInfo::decode(key, value).is_ok())
    };
    let is_upload = |(key, value): &Row| {
        let id = id_of(key);
        let value = value.as_ref();
        value.is_some_and(|value| id.is_ok_and(|id| UploadInfo::decode(id, value).is_ok()))
    };
    if rows.iter().all(is_manifest) {
        return (!rows.iter().all(is_upload)).then_some(Part::Objects.key());
    }
    let is_chunk = |(key, value): &Row| {
        let is_long = |value: &Vec<u8>| (1..=CHUNK_BYTES_MAX as usize).contains(&value.len());
        chunk_of(key).is_ok() && value.as_ref().is_none_or(is_long)
    };
    let is_hash = |(_, value): &Row| {
        let value = value.as_ref();
        value.is_some_and(|value| ChunkHash::decode(value).is_ok())
    };
    let are_chunks = rows.iter().all(is_chunk) && !rows.iter().all(is_hash);
    are_chunks.then_some(Part::Chunks.key())
}
