//! Random operations on a bucket of objects of up to a few chunks.

use crate::model::clock::UNIT;
use crate::model::messages::bucket::{Bucket, CHUNK_BYTES, Object, attributes, bytes_of};
use tidalite::objects::{
    BucketMut, BucketOptions, BucketOverflow, ObjectChange, ObjectCondition, ObjectOutcome,
    PUT_ABANDONED_AFTER_NS, StoredObject,
};
use tidalite::{Result, Timestamp};
use tidalite_testkit::rng::Rng;

/// Number of different names of objects.
const NAMES: u64 = 6;
/// Maximum number of puts that are abandoned until `maintain` removes them.
const ABANDONED_MAX: usize = 2;
/// The options of the bucket.
pub(crate) const OPTIONS: BucketOptions = BucketOptions {
    chunk_bytes: CHUNK_BYTES,
    overflow: BucketOverflow::Reject,
    object_bytes_max: None,
    objects_max: None,
    bytes_max: None,
    uploads_max: 100,
};

/// The bucket, its model, and the time of the operation.
pub(super) struct One<'o, 't> {
    pub(super) table: BucketMut<'t>,
    pub(super) bucket: &'o mut Bucket,
    pub(super) now: i64,
    pub(super) rng: &'o mut Rng,
}

impl One<'_, '_> {
    pub(super) fn name(&mut self) -> String {
        let folder = *self.rng.pick(&["", "a/"]);
        format!("{folder}file {}", self.rng.below(NAMES))
    }

    /// A new object. Its bytes follow from a seed that no other object has.
    pub(super) fn object(&mut self) -> Object {
        let chunk = u64::from(CHUNK_BYTES);
        let size = match self.rng.below(8) {
            0 => 0,
            1..=3 => self.rng.below(chunk),
            4 => chunk * self.rng.below(4),
            _ => self.rng.below(4 * chunk),
        };
        Object {
            seed: self.rng.u64(),
            size,
            created: self.now,
            modified: self.now,
            expires: (self.rng)
                .one_in(4)
                .then(|| self.now + self.rng.between(-1, 60) * UNIT),
            is_protected: self.rng.one_in(10),
        }
    }

    /// A condition, and whether it holds.
    pub(super) fn condition(&mut self, name: &str) -> (ObjectCondition, bool) {
        let is_there = self.bucket.live(name, self.now).is_some();
        match self.rng.below(8) {
            0 => (ObjectCondition::Missing, !is_there),
            1 => (ObjectCondition::Exists, is_there),
            _ => (ObjectCondition::Always, true),
        }
    }

    /// Compares the outcome of a put with the model, and puts the object there.
    pub(super) fn stored(
        &mut self,
        name: &str,
        object: Object,
        holds: bool,
        found: &ObjectOutcome<StoredObject>,
    ) {
        match (found, holds) {
            (ObjectOutcome::Done(stored), true) => {
                assert_eq!(stored.info.size, object.size, "size of {name}");
                let replaced = self.bucket.put(name, object, self.now);
                assert_eq!(stored.replaced, replaced, "{name} replaces an object");
            }
            (ObjectOutcome::Refused(_), false) => {}
            (found, _) => panic!("the put of {name} gave {found:?}"),
        }
    }

    pub(super) fn put(&mut self) -> Result<()> {
        let (name, object) = (self.name(), self.object());
        let (condition, holds) = self.condition(&name);
        let bytes = bytes_of(object.seed, 0, object.size as usize);
        let given = attributes(object.seed, object.expires, object.is_protected);
        let found = match self.rng.below(3) {
            0 => self.table.put(&name, &bytes, given, &condition)?,
            1 => {
                let from = &mut &bytes[..];
                self.table.put_from(&name, from, given, condition)?
            }
            _ => {
                let mut put = self.table.begin_put(&name, given, condition)?;
                for slice in bytes.chunks(1 + self.rng.index(900)) {
                    self.table.write_put(&mut put, slice)?;
                }
                if self.rng.one_in(6) {
                    return self.table.abort_put(put);
                }
                self.table.finish_put(put)?
            }
        };
        self.stored(&name, object, holds, &found);
        Ok(())
    }

    /// Writes some chunks of a put that is never finished: `maintain` removes them after a day.
    pub(super) fn abandon(&mut self) -> Result<()> {
        if self.bucket.abandoned.len() >= ABANDONED_MAX {
            return self.maintain();
        }
        let (name, seed) = (self.name(), self.rng.u64());
        let chunks = 1 + self.rng.below(2);
        let whole = chunks * u64::from(CHUNK_BYTES);
        // The last bytes are in memory only.
        let bytes = bytes_of(seed, 0, whole as usize + 1 + self.rng.index(100));
        let given = attributes(seed, None, false);
        let mut put = self
            .table
            .begin_put(&name, given, ObjectCondition::Always)?;
        self.table.write_put(&mut put, &bytes)?;
        let expires = self.now + PUT_ABANDONED_AFTER_NS;
        self.bucket.abandoned.push((expires, whole));
        Ok(())
    }

    pub(super) fn delete(&mut self) -> Result<()> {
        let name = self.name();
        let there = self.bucket.live(&name, self.now).is_some();
        let found = self.table.delete(&name, &ObjectCondition::Always)?;
        assert_eq!(found.done().is_some(), there, "delete tells what was there");
        if there {
            self.bucket.objects.remove(&name);
        }
        Ok(())
    }

    pub(super) fn copy(&mut self) -> Result<()> {
        let (from, to) = (self.name(), self.name());
        let (condition, holds) = self.condition(&to);
        let found = self.table.copy(&from, &to, None, &condition)?;
        match self.bucket.live(&from, self.now).cloned() {
            Some(object) => self.stored(&to, object, holds, &found),
            None => assert_eq!(found, ObjectOutcome::NotFound, "copy of {from}"),
        }
        Ok(())
    }

    pub(super) fn rename(&mut self) -> Result<()> {
        let (from, to) = (self.name(), self.name());
        let (condition, holds) = self.condition(&to);
        let found = self.table.rename(&from, &to, &condition)?;
        let Some(object) = self.bucket.live(&from, self.now).cloned() else {
            assert_eq!(found, ObjectOutcome::NotFound, "rename of {from}");
            return Ok(());
        };
        assert_eq!(found.done().is_some(), holds, "rename of {from} to {to}");
        if holds {
            self.bucket.objects.remove(&from);
            self.bucket.objects.insert(to, object);
        }
        Ok(())
    }

    pub(super) fn change(&mut self) -> Result<()> {
        let name = self.name();
        let expires = self
            .rng
            .one_in(2)
            .then(|| self.now + self.rng.between(1, 60) * UNIT);
        let is_protected = self.rng.one_in(3);
        let change = ObjectChange {
            expires: Some(expires.map(Timestamp)),
            protected: Some(is_protected),
            ..ObjectChange::default()
        };
        let found = (self.table).set_attributes(&name, &change, &ObjectCondition::Always)?;
        let there = self.bucket.live(&name, self.now).is_some();
        assert_eq!(found.done().is_some(), there, "attributes of {name}");
        if let Some(object) = self.bucket.objects.get_mut(&name).filter(|_| there) {
            (object.expires, object.is_protected) = (expires, is_protected);
        }
        Ok(())
    }

    pub(super) fn maintain(&mut self) -> Result<()> {
        let done = self.table.maintain(1_000)?;
        let known = self.bucket.expire(self.now);
        assert_eq!((done.expired.objects, done.uploads), known, "what is due");
        assert!(!done.more, "everything is done");
        let stat = self.table.view()?.stat()?;
        assert_eq!((stat.orphans, stat.chunks), (0, self.bucket.chunks()));
        Ok(())
    }

    /// Checks that a transaction sees its own objects.
    pub(super) fn ask(&mut self) -> Result<()> {
        let name = self.name();
        let view = self.table.view()?;
        let (found, known) = (view.info(&name)?, self.bucket.live(&name, self.now));
        assert_eq!(found.is_some(), known.is_some(), "{name} is there");
        if let (Some(info), Some(object)) = (found, known) {
            let offset = self.rng.below(object.size + 1);
            let len = self.rng.below(1_500).min(object.size - offset);
            let bytes = view.read(&info, offset, len)?;
            assert!(
                bytes == bytes_of(object.seed, offset, len as usize),
                "bytes of {name}"
            );
        }
        Ok(())
    }
}
