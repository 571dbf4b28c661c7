//! A bucket on pages in memory.

use crate::{
    BucketOptions, BucketReader, BucketWriter, ContentHash, ContentHasher, ObjectAttributes,
    ObjectCondition, StoredObject,
};
use tidalite_kv::Tree;
use tidalite_pager::Result;
use tidalite_testkit::ScratchPages;

/// Options with chunks of 16 bytes.
pub(super) const SMALL: BucketOptions = BucketOptions {
    chunk_bytes: 16,
    overflow: crate::BucketOverflow::Reject,
    object_bytes_max: None,
    objects_max: None,
    bytes_max: None,
    uploads_max: u64::MAX,
};

pub(super) struct Bucket {
    pub(super) root: Tree,
    pub(super) pages: ScratchPages,
}

impl Bucket {
    pub(super) fn new(options: BucketOptions) -> Self {
        let (mut root, mut pages) = (Tree::new(20), ScratchPages::new(512));
        BucketWriter::create(&mut root, &mut pages, options).unwrap();
        Self { root, pages }
    }

    pub(super) fn writer(&mut self) -> BucketWriter<'_, ScratchPages> {
        BucketWriter::open(&mut self.root, &mut self.pages).unwrap()
    }

    pub(super) fn reader(&self) -> BucketReader<&ScratchPages> {
        BucketReader::open(&self.root, &self.pages).unwrap()
    }

    pub(super) fn put(&mut self, name: &str, bytes: &[u8], now: i64) -> StoredObject {
        let attributes = ObjectAttributes::default();
        self.put_with(name, bytes, attributes, now).unwrap()
    }

    pub(super) fn put_with(
        &mut self,
        name: &str,
        bytes: &[u8],
        attributes: ObjectAttributes,
        now: i64,
    ) -> Result<StoredObject> {
        let condition = ObjectCondition::Always;
        let stored = self
            .writer()
            .put(name, bytes, attributes, &condition, now)?;
        Ok(stored.done().unwrap())
    }

    /// All bytes of an object.
    pub(super) fn get(&self, name: &str, now: i64) -> Option<Vec<u8>> {
        let reader = self.reader();
        let info = reader.info(name, now).unwrap()?;
        let mut bytes = Vec::new();
        let mut add = |slice: &[u8]| {
            bytes.extend_from_slice(slice);
            Ok(())
        };
        assert_eq!(
            reader.read(&info, 0, u64::MAX, &mut add).unwrap(),
            info.size
        );
        Some(bytes)
    }

    pub(super) fn problems(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        BucketReader::open(&self.root, &self.pages)?
            .check(&mut |problem| problems.push(problem))?;
        Ok(problems)
    }

    /// Expects that all rules of the format hold and that no page has leaked.
    pub(super) fn assert_sound(&mut self) {
        assert_eq!(self.problems().unwrap(), Vec::<String>::new());
        self.root.seal(&mut self.pages).unwrap();
        let mut claims = Vec::new();
        let mut claim = |used: tidalite_kv::UsedPages| claims.push((used.addr, used.pages));
        self.root.check(&self.pages, &mut claim).unwrap();
        self.pages.assert_all_claimed(&claims);
    }
}

pub(super) fn hash_of(chunk_bytes: u32, bytes: &[u8]) -> ContentHash {
    let mut hasher = ContentHasher::new(chunk_bytes);
    for slice in bytes.chunks(7) {
        hasher.update(slice);
    }
    hasher.finish()
}

/// Bytes that depend on their position and on the seed.
pub(super) fn bytes_of(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    tidalite_testkit::rng::Rng::new(seed).fill(&mut bytes);
    bytes
}
