//! Random operations on a bucket, compared with maps in memory, with small chunks, uploads in between, and an advancing
//! clock.

use super::common::{Bucket, bytes_of, hash_of};
use crate::options::most;
use crate::{
    BucketMaintenance, BucketOptions, BucketOverflow, ListQuery, ObjectAttributes, ObjectChange,
    ObjectCondition, ObjectFilter, ObjectInfo, ObjectOutcome, ObjectPut, UploadAppend,
    UploadCompletion, UploadId, UploadMode, UploadOutcome,
};
use std::collections::BTreeMap;
use tidalite_pager::{Error, Result};
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

#[derive(Clone, Debug)]
struct Object {
    bytes: Vec<u8>,
    chunk_bytes: u32,
    created: Timestamp,
    modified: Timestamp,
    attributes: ObjectAttributes,
}

impl Object {
    fn removed_at(&self) -> Option<Timestamp> {
        self.attributes
            .expires
            .filter(|_| !self.attributes.protected)
    }

    fn is_live(&self, now: i64) -> bool {
        self.removed_at().is_none_or(|time| time.0 > now)
    }

    fn is(&self, name: &str, info: &ObjectInfo) {
        assert_eq!(info.name, name);
        assert_eq!(info.size, self.bytes.len() as u64);
        assert_eq!((info.created, info.modified), (self.created, self.modified));
        assert_eq!(info.attributes, self.attributes);
        assert_eq!(info.hash, hash_of(self.chunk_bytes, &self.bytes));
    }
}

#[derive(Clone, Debug)]
struct Upload {
    name: String,
    chunk_bytes: u32,
    expires: i64,
    attributes: ObjectAttributes,
    /// Bytes of an upload in append mode.
    appended: Vec<u8>,
    /// For an upload in parts: the number of chunks of a part, and the parts.
    parts: Option<(u32, BTreeMap<u32, Vec<u8>>)>,
}

impl Upload {
    fn len(&self) -> u64 {
        match &self.parts {
            Some((_, parts)) => parts.values().map(|part| part.len() as u64).sum(),
            None => self.appended.len() as u64,
        }
    }
}

#[derive(Clone, Debug)]
struct Model {
    options: BucketOptions,
    objects: BTreeMap<String, Object>,
    uploads: BTreeMap<u64, Upload>,
    now: i64,
}

/// The outcome of a put that the model expects.
enum Expected {
    Stored { replaced: bool, removed: u64 },
    Refused,
    Limit,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.objects
            .values()
            .map(|object| object.bytes.len() as u64)
            .sum()
    }

    fn upload_bytes(&self) -> u64 {
        self.uploads.values().map(Upload::len).sum()
    }

    fn live(&self, name: &str) -> Option<&Object> {
        self.objects
            .get(name)
            .filter(|object| object.is_live(self.now))
    }

    fn holds(&self, name: &str, condition: &ObjectCondition) -> bool {
        let hash = self
            .live(name)
            .map(|object| hash_of(object.chunk_bytes, &object.bytes));
        match condition {
            ObjectCondition::Always => true,
            ObjectCondition::Missing => hash.is_none(),
            ObjectCondition::Exists => hash.is_some(),
            ObjectCondition::Hash(wanted) => hash == Some(*wanted),
            ObjectCondition::NotHash(wanted) => hash != Some(*wanted),
        }
    }

    /// Names in the order in which objects are removed to make room.
    fn victims(&self) -> Vec<String> {
        let mut due: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, object)| !object.is_live(self.now))
            .map(|(name, object)| (object.removed_at(), name.clone()))
            .collect();
        due.sort();
        let mut names: Vec<String> = due.into_iter().map(|(_, name)| name).collect();
        if self.options.overflow == BucketOverflow::DropOldest {
            let free = self
                .objects
                .iter()
                .filter(|(_, object)| !object.attributes.protected);
            let mut ages: Vec<_> = free.map(|(name, o)| (o.modified, name.clone())).collect();
            ages.sort();
            for (_, name) in ages {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }

    fn put(
        &mut self,
        name: &str,
        mut object: Object,
        condition: &ObjectCondition,
        keep: &str,
    ) -> Expected {
        if !self.holds(name, condition) {
            return Expected::Refused;
        }
        let size = object.bytes.len() as u64;
        if size > most(self.options.object_bytes_max).min(most(self.options.bytes_max)) {
            return Expected::Limit;
        }
        let replaced = self.live(name).cloned();
        let old = self
            .objects
            .get(name)
            .map_or((0, 0), |old| (1, old.bytes.len() as u64));
        let mut objects = self.objects.len() as u64 - old.0 + 1;
        let mut bytes = self.bytes() - old.1 + size;
        let fits = |objects, bytes| {
            objects <= most(self.options.objects_max) && bytes <= most(self.options.bytes_max)
        };
        let mut gone = Vec::new();
        for victim in self.victims() {
            if fits(objects, bytes) {
                break;
            }
            if victim != name && victim != keep {
                objects -= 1;
                bytes -= self.objects[&victim].bytes.len() as u64;
                gone.push(victim);
            }
        }
        if !fits(objects, bytes) {
            return Expected::Limit;
        }
        for victim in &gone {
            self.objects.remove(victim);
        }
        object.modified = Timestamp(self.now);
        object.created = (replaced.as_ref()).map_or(object.modified, |old| old.created);
        self.objects.insert(name.to_owned(), object);
        Expected::Stored {
            replaced: replaced.is_some(),
            removed: gone.len() as u64,
        }
    }
}

struct Run {
    bucket: Bucket,
    model: Model,
    rng: Rng,
}

impl Run {
    fn name(&mut self) -> String {
        let rng = &mut self.rng;
        let folder = *rng.pick(&["", "a/", "a/b/", "b", "ä/", "a/\u{10ffff}"]);
        format!("{folder}{}", rng.below(6))
    }

    fn attributes(&mut self) -> ObjectAttributes {
        let rng = &mut self.rng;
        let mut attributes = ObjectAttributes {
            content_type: (*rng.pick(&["", "text/plain", "text/html", "video/mp4"])).to_owned(),
            metadata: Vec::new(),
            expires: (rng.one_in(3)).then(|| Timestamp(self.model.now + rng.between(-3, 60))),
            protected: rng.one_in(8),
        };
        for _ in 0..rng.below(3) {
            attributes
                .metadata
                .push((format!("key {}", rng.below(9)), "v".repeat(rng.index(200))));
        }
        attributes
    }

    fn contents(&mut self) -> Vec<u8> {
        let most = *self.rng.pick(&[1, 20, 200, 2000]);
        let len = self.rng.index(most);
        bytes_of(self.rng.u64(), len)
    }

    fn condition(&mut self, name: &str) -> ObjectCondition {
        let object = self.model.objects.get(name);
        let hash = object.map(|object| hash_of(object.chunk_bytes, &object.bytes));
        match (self.rng.below(12), hash) {
            (0, _) => ObjectCondition::Missing,
            (1, _) => ObjectCondition::Exists,
            (2, Some(hash)) => ObjectCondition::Hash(hash),
            (3, Some(hash)) => ObjectCondition::NotHash(hash),
            (4, _) => ObjectCondition::Hash(hash_of(16, b"other")),
            _ => ObjectCondition::Always,
        }
    }

    fn expect_put(&self, found: Result<ObjectOutcome<crate::StoredObject>>, expected: &Expected) {
        match (found, expected) {
            (Ok(ObjectOutcome::Done(stored)), Expected::Stored { replaced, removed }) => {
                assert_eq!(
                    (stored.replaced, stored.removed.objects),
                    (*replaced, *removed)
                );
                self.model.objects[&stored.info.name].is(&stored.info.name, &stored.info);
            }
            (Ok(ObjectOutcome::Refused(_)), Expected::Refused)
            | (Err(Error::Limit { .. }), Expected::Limit) => {}
            (found, _) => panic!("a put gave {found:?}"),
        }
    }

    fn put(&mut self) {
        let (name, attributes, bytes) = (self.name(), self.attributes(), self.contents());
        let condition = self.condition(&name);
        let now = self.model.now;
        let object = Object {
            bytes: bytes.clone(),
            chunk_bytes: self.model.options.chunk_bytes,
            created: Timestamp(now),
            modified: Timestamp(now),
            attributes: attributes.clone(),
        };
        let too_many = bytes.len() > object.chunk_bytes as usize
            && self.model.uploads.len() as u64 >= self.model.options.uploads_max;
        let uploads = self.model.upload_bytes() + bytes.len() as u64;
        if too_many || uploads > most(self.model.options.bytes_max) {
            return;
        }
        let mut writer = self.bucket.writer();
        let found = if self.rng.one_in(2) {
            writer.put(&name, &bytes, attributes, &condition, now)
        } else {
            let mut put = ObjectPut::new(&writer, &name, attributes, condition, now).unwrap();
            let mut rest = &bytes[..];
            let mut error = None;
            while !rest.is_empty() && error.is_none() {
                let most = *self.rng.pick(&[3, 40, 400]);
                let (first, later) = rest.split_at(rest.len().min(1 + self.rng.index(most)));
                error = put.write(&mut writer, first).err();
                rest = later;
            }
            match error {
                Some(error) => {
                    put.abort(&mut writer).unwrap();
                    Err(error)
                }
                None if self.rng.one_in(10) => return put.abort(&mut writer).unwrap(),
                None => put.finish(&mut writer, now),
            }
        };
        let expected = match object.bytes.len() as u64
            > most(self.model.options.object_bytes_max).min(most(self.model.options.bytes_max))
        {
            true => Expected::Limit,
            false => self.model.put(&name, object, &condition, ""),
        };
        self.expect_put(found, &expected);
    }

    fn change(&mut self) {
        let (name, other) = (self.name(), self.name());
        let condition = self.condition(&name);
        let now = self.model.now;
        let is_live = self.model.live(&name).is_some();
        let holds = self.model.holds(&name, &condition);
        match self.rng.below(4) {
            0 => {
                let found = self.bucket.writer().delete(&name, &condition, now).unwrap();
                let was = match is_live && holds {
                    true => self.model.objects.remove(&name),
                    false => None,
                };
                match (found, was) {
                    (ObjectOutcome::Done(info), Some(was)) => was.is(&name, &info),
                    (ObjectOutcome::Refused(Some(_)), None) => assert!(is_live),
                    (ObjectOutcome::NotFound, None) => assert!(!is_live),
                    (found, _) => panic!("a delete gave {found:?}"),
                }
            }
            1 => {
                let found = self
                    .bucket
                    .writer()
                    .rename(&other, &name, &condition, now)
                    .unwrap();
                match self.model.live(&other).cloned() {
                    Some(object) if holds => {
                        object.is(&name, &found.done().unwrap());
                        self.model.objects.remove(&other);
                        self.model.objects.insert(name, object);
                    }
                    Some(_) => assert!(matches!(found, ObjectOutcome::Refused(_))),
                    None => assert_eq!(found, ObjectOutcome::NotFound),
                }
            }
            2 => {
                let attributes = self.rng.one_in(2).then(|| self.attributes());
                let mut writer = self.bucket.writer();
                let found = writer.copy(&other, &name, attributes.clone(), &condition, now);
                let Some(mut object) = self.model.live(&other).cloned() else {
                    return assert_eq!(found.unwrap(), ObjectOutcome::NotFound);
                };
                object.attributes = attributes.unwrap_or(object.attributes);
                let expected = self.model.put(&name, object, &condition, &other);
                self.expect_put(found, &expected);
            }
            _ => {
                let new = self.attributes();
                let rng = &mut self.rng;
                let change = ObjectChange {
                    expires: rng.one_in(2).then_some(new.expires),
                    protected: rng.one_in(2).then_some(new.protected),
                    content_type: rng.one_in(2).then_some(new.content_type),
                    metadata: rng.one_in(2).then_some(new.metadata),
                };
                let mut writer = self.bucket.writer();
                let found = writer
                    .set_attributes(&name, &change, &condition, now)
                    .unwrap();
                if !is_live || !holds {
                    return assert!(found.done().is_none());
                }
                let object = self.model.objects.get_mut(&name).unwrap();
                let old = object.attributes.clone();
                object.attributes = ObjectAttributes {
                    expires: change.expires.unwrap_or(old.expires),
                    protected: change.protected.unwrap_or(old.protected),
                    content_type: change.content_type.unwrap_or(old.content_type),
                    metadata: change.metadata.unwrap_or(old.metadata),
                };
                object.is(&name, &found.done().unwrap());
            }
        }
    }

    fn begin_upload(&mut self) {
        let (name, attributes) = (self.name(), self.attributes());
        let chunks = 1 + self.rng.below(3) as u32;
        let in_parts = self.rng.one_in(2);
        let mode = match in_parts {
            true => UploadMode::Parts { chunks },
            false => UploadMode::Append,
        };
        let times = (self.model.now, self.model.now + self.rng.between(1, 100));
        let mut writer = self.bucket.writer();
        match writer.begin_upload(&name, attributes.clone(), mode, times) {
            Ok(id) => {
                let upload = Upload {
                    name,
                    chunk_bytes: self.model.options.chunk_bytes,
                    expires: times.1,
                    attributes,
                    appended: Vec::new(),
                    parts: in_parts.then(|| (chunks, BTreeMap::new())),
                };
                assert!(self.model.uploads.insert(id.0, upload).is_none());
            }
            Err(Error::Limit { .. }) => {
                assert!(self.model.uploads.len() as u64 >= self.model.options.uploads_max);
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn change_upload(&mut self) {
        let ids: Vec<u64> = self.model.uploads.keys().copied().collect();
        let Some(&id) = ids.get(self.rng.index(ids.len().max(1))) else {
            return self.begin_upload();
        };
        let now = self.model.now;
        let mut upload = self.model.uploads[&id].clone();
        if upload.expires <= now {
            let found = self
                .bucket
                .writer()
                .append(UploadId(id), 0, b"x", now)
                .unwrap();
            return assert_eq!(found, UploadAppend::NotFound);
        }
        match self.rng.below(12) {
            0 => {
                assert!(self.bucket.writer().abort_upload(UploadId(id)).unwrap());
                self.model.uploads.remove(&id);
            }
            1 => {
                upload.expires = now + self.rng.between(1, 100);
                let mut writer = self.bucket.writer();
                assert!(
                    writer
                        .extend_upload(UploadId(id), now, upload.expires)
                        .unwrap()
                );
                self.model.uploads.insert(id, upload);
            }
            2..4 => self.complete(id, &upload),
            _ => self.add_to(id, upload),
        }
    }

    fn add_to(&mut self, id: u64, mut upload: Upload) {
        let (now, options) = (self.model.now, self.model.options);
        let bytes = self.contents();
        let all = self.model.upload_bytes();
        let size_max = most(options.object_bytes_max).min(most(options.bytes_max));
        let mut writer = self.bucket.writer();
        let Some((chunks, parts)) = &mut upload.parts else {
            let offset = upload.appended.len() as u64;
            if self.rng.one_in(5) {
                let wrong = offset + 1 + self.rng.below(5);
                let found = writer.append(UploadId(id), wrong, &bytes, now).unwrap();
                return assert_eq!(found, UploadAppend::Expected { offset });
            }
            let len = offset + bytes.len() as u64;
            match writer.append(UploadId(id), offset, &bytes, now) {
                Ok(found) => assert_eq!(found, UploadAppend::Done { len }),
                Err(Error::Limit { .. }) => {
                    let grown = all + bytes.len() as u64;
                    return assert!(len > size_max || grown > most(options.bytes_max));
                }
                Err(error) => panic!("{error}"),
            }
            upload.appended.extend_from_slice(&bytes);
            self.model.uploads.insert(id, upload);
            return;
        };
        let whole = *chunks as usize * upload.chunk_bytes as usize;
        let number = self.rng.below(parts.len() as u64 + 2) as u32;
        let len = match self.rng.one_in(6) {
            true => 1 + self.rng.index(whole),
            false => whole,
        };
        let bytes = bytes_of(self.rng.u64(), len);
        match writer.put_part(UploadId(id), number, &bytes, now) {
            Ok(found) => assert!(found),
            Err(Error::Limit { .. }) => return,
            Err(error) => panic!("{error}"),
        }
        parts.insert(number, bytes);
        self.model.uploads.insert(id, upload);
    }

    fn complete(&mut self, id: u64, upload: &Upload) {
        let (name, now) = (upload.name.clone(), self.model.now);
        let condition = self.condition(&name);
        let (mut missing, mut bytes) = (None, upload.appended.clone());
        if let Some((chunks, parts)) = &upload.parts {
            let whole = *chunks as usize * upload.chunk_bytes as usize;
            for (place, (number, part)) in (0..).zip(parts) {
                if *number != place || bytes.len() != place as usize * whole {
                    let short = bytes.len() != place as usize * whole;
                    missing = Some(if short { place - 1 } else { place });
                    break;
                }
                bytes.extend_from_slice(part);
            }
        }
        let hash = hash_of(upload.chunk_bytes, &bytes);
        let size = bytes.len() as u64;
        let wrong = self.rng.below(6);
        let completion = UploadCompletion {
            size: self.rng.one_in(2).then_some(size + u64::from(wrong == 0)),
            hash: self
                .rng
                .one_in(2)
                .then(|| hash_of(8 + (wrong == 1) as u32, b"").min(hash)),
            condition,
        };
        let mut writer = self.bucket.writer();
        let found = writer.complete_upload(UploadId(id), &completion, now);
        if let Some(number) = missing {
            return assert_eq!(found.unwrap(), UploadOutcome::MissingPart { number });
        }
        if completion.size.is_some_and(|wanted| wanted != size) {
            return assert_eq!(found.unwrap(), UploadOutcome::WrongSize { found: size });
        }
        if completion.hash.is_some_and(|wanted| wanted != hash) {
            return assert_eq!(found.unwrap(), UploadOutcome::WrongHash { found: hash });
        }
        let object = Object {
            bytes,
            chunk_bytes: upload.chunk_bytes,
            created: Timestamp(now),
            modified: Timestamp(now),
            attributes: upload.attributes.clone(),
        };
        let expected = self.model.put(&name, object, &condition, "");
        let found = match found {
            Ok(UploadOutcome::Done(stored)) => Ok(ObjectOutcome::Done(*stored)),
            Ok(UploadOutcome::Refused(object)) => Ok(ObjectOutcome::Refused(object)),
            Ok(other) => panic!("completing gave {other:?}"),
            Err(error) => Err(error),
        };
        self.expect_put(found, &expected);
        if let Expected::Stored { .. } = expected {
            self.model.uploads.remove(&id);
        }
    }

    fn maintain(&mut self) {
        let limit = *self.rng.pick(&[0, 1, 5, 50, 10_000]);
        let now = self.model.now;
        let was_due = self.bucket.reader().is_maintenance_due(now).unwrap();
        let done = self.bucket.writer().maintain(now, limit).unwrap();
        let is_due = self.bucket.reader().is_maintenance_due(now).unwrap();
        assert_eq!(is_due, done.more);
        assert!(was_due || done == BucketMaintenance::default());
        let mut due: Vec<_> = self
            .model
            .objects
            .iter()
            .filter(|(_, object)| !object.is_live(now))
            .map(|(name, object)| (object.removed_at(), name.clone()))
            .collect();
        due.sort();
        due.truncate(limit as usize);
        assert_eq!(done.expired.objects, due.len() as u64);
        for (_, name) in due {
            self.model.objects.remove(&name);
        }
        let left = limit - done.expired.objects;
        let uploads = self
            .model
            .uploads
            .iter()
            .filter(|(_, upload)| upload.expires <= now);
        let mut uploads: Vec<_> = uploads.map(|(id, upload)| (upload.expires, *id)).collect();
        uploads.sort();
        uploads.truncate(left as usize);
        assert_eq!(done.uploads, uploads.len() as u64);
        for (_, id) in uploads {
            self.model.uploads.remove(&id);
        }
        assert!(done.expired.objects + done.uploads + done.chunks <= limit);
        if limit > 1000 {
            assert!(!done.more);
            assert_eq!(self.bucket.reader().stat().unwrap().orphans, 0);
        }
    }

    fn delete_listed(&mut self) {
        let query = ListQuery {
            limit: 1 + self.rng.index(4),
            ..self.query()
        };
        let now = self.model.now;
        let (removed, next) = self.bucket.writer().delete_listed(&query, now).unwrap();
        let listed = self.model.objects.iter().filter(|(name, object)| {
            name.starts_with(&query.prefix) && object.is_live(now) && passes(&query.filter, object)
        });
        let listed: Vec<String> = listed
            .map(|(name, _)| name.clone())
            .take(query.limit)
            .collect();
        let mut objects = 0;
        for name in listed {
            if !self.model.objects[&name].attributes.protected {
                self.model.objects.remove(&name);
                objects += 1;
            }
        }
        assert_eq!((removed.objects, removed.more), (objects, next.is_some()));
    }

    fn query(&mut self) -> ListQuery {
        let rng = &mut self.rng;
        let prefix = (*rng.pick(&["", "", "a", "a/", "a/b", "b", "ä", "zz"])).to_owned();
        let delimiters = [
            None,
            Some(""),
            Some("/"),
            Some("/"),
            Some("/b/"),
            Some("\u{10ffff}"),
        ];
        let delimiter = rng.pick(&delimiters).map(str::to_owned);
        let mut filter = ObjectFilter::default();
        if rng.one_in(4) {
            filter.content_type = Some((*rng.pick(&["text/*", "text/html"])).to_owned());
        }
        if rng.one_in(4) {
            filter.size = Some(rng.below(50)..rng.below(1000));
        }
        if rng.one_in(4) {
            filter.modified = Some(Timestamp(self.model.now - rng.between(0, 100))..Timestamp::MAX);
        }
        if rng.one_in(6) {
            filter.protected = Some(rng.one_in(2));
        }
        ListQuery {
            prefix,
            delimiter,
            filter,
            after: None,
            limit: 1 + rng.index(20),
        }
    }

    fn compare_list(&mut self) {
        let mut query = self.query();
        let now = self.model.now;
        let (mut objects, mut prefixes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for (name, object) in &self.model.objects {
            let passes = object.is_live(now) && passes(&query.filter, object);
            let Some(behind) = name.strip_prefix(&query.prefix).filter(|_| passes) else {
                continue;
            };
            let delimiter = query.delimiter.as_deref().filter(|text| !text.is_empty());
            match delimiter.and_then(|text| Some(behind.find(text)? + text.len())) {
                Some(end) => prefixes.push(name[..query.prefix.len() + end].to_owned()),
                None => objects.push(name.clone()),
            }
        }
        prefixes.dedup();
        let (mut found, mut groups) = (Vec::new(), Vec::new());
        loop {
            let page = self.bucket.reader().list(&query, now).unwrap();
            assert!(page.objects.len() + page.prefixes.len() <= query.limit);
            for info in &page.objects {
                self.model.objects[&info.name].is(&info.name, info);
            }
            found.extend(page.objects.into_iter().map(|info| info.name));
            groups.extend(page.prefixes);
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        assert_eq!((found, groups), (objects, prefixes));
    }

    fn compare(&mut self) {
        self.compare_list();
        let now = self.model.now;
        for _ in 0..4 {
            let name = self.name();
            let object = self.model.live(&name).cloned();
            let bytes = self.bucket.get(&name, now);
            assert_eq!(bytes.as_ref(), object.as_ref().map(|object| &object.bytes));
            let reader = self.bucket.reader();
            let Some(info) = reader.info(&name, now).unwrap() else {
                continue;
            };
            assert!(reader.verify(&name, now).unwrap().unwrap().is_sound());
            let (offset, len) = (self.rng.below(info.size + 5), self.rng.below(100));
            let mut part = Vec::new();
            let mut add = |slice: &[u8]| {
                part.extend_from_slice(slice);
                Ok(())
            };
            let read = reader.read(&info, offset, len, &mut add).unwrap();
            let bytes = bytes.unwrap();
            let from = (offset as usize).min(bytes.len());
            let to = (from + len as usize).min(bytes.len());
            assert_eq!((&part[..], read), (&bytes[from..to], (to - from) as u64));
        }
        let stat = self.bucket.reader().stat().unwrap();
        assert_eq!(
            (stat.objects, stat.bytes),
            (self.model.objects.len() as u64, self.model.bytes())
        );
        let uploads = (self.model.uploads.len() as u64, self.model.upload_bytes());
        assert_eq!((stat.uploads, stat.upload_bytes), uploads);
        for upload in self.bucket.reader().uploads(UploadId(0), 1000).unwrap() {
            let expected = &self.model.uploads[&upload.id.0];
            assert_eq!((upload.len, &upload.name), (expected.len(), &expected.name));
            let Some((_, parts)) = &expected.parts else {
                continue;
            };
            let found = self
                .bucket
                .reader()
                .upload_parts(upload.id, 0, 1000)
                .unwrap();
            let found: Vec<_> = found.iter().map(|p| (p.number, p.bytes, p.hash)).collect();
            let expected: Vec<_> = parts
                .iter()
                .map(|(n, b)| (*n, b.len() as u64, hash_of(expected.chunk_bytes, b)))
                .collect();
            assert_eq!(found, expected);
        }
        self.bucket.assert_sound();
        self.bucket.pages.commit();
    }
}

fn passes(filter: &ObjectFilter, object: &Object) -> bool {
    let found = &object.attributes.content_type;
    filter
        .content_type
        .as_ref()
        .is_none_or(|wanted| match wanted == "text/*" {
            true => found.starts_with("text/"),
            false => found == wanted,
        })
        && filter
            .size
            .as_ref()
            .is_none_or(|sizes| sizes.contains(&(object.bytes.len() as u64)))
        && filter
            .modified
            .as_ref()
            .is_none_or(|times| times.contains(&object.modified))
        && filter
            .protected
            .is_none_or(|wanted| wanted == object.attributes.protected)
}

fn random_options(rng: &mut Rng) -> BucketOptions {
    let limit = |rng: &mut Rng, most: u64| match rng.one_in(2) {
        true => None,
        false => Some(1 + rng.below(most)),
    };
    BucketOptions {
        chunk_bytes: 8 + rng.below(120) as u32,
        overflow: *rng.pick(&[BucketOverflow::Reject, BucketOverflow::DropOldest]),
        object_bytes_max: limit(rng, 3000),
        objects_max: limit(rng, 20),
        bytes_max: limit(rng, 10_000),
        uploads_max: limit(rng, 10).unwrap_or(u64::MAX),
    }
}

fn random_operations(seed: u64, steps: u64) {
    let mut rng = Rng::new(seed);
    let options = random_options(&mut rng);
    let mut run = Run {
        bucket: Bucket::new(options),
        model: Model {
            options,
            objects: BTreeMap::new(),
            uploads: BTreeMap::new(),
            now: rng.between(-100, 100),
        },
        rng,
    };
    for _ in 0..steps {
        run.model.now += run.rng.between(0, 3);
        match run.rng.below(20) {
            0..8 => run.put(),
            8..13 => run.change(),
            13..17 => run.change_upload(),
            17 => run.begin_upload(),
            18 if run.rng.one_in(4) => run.delete_listed(),
            _ => run.maintain(),
        }
        if run.rng.one_in(5) {
            run.compare();
        }
        if run.rng.one_in(60) {
            run.model.options = random_options(&mut run.rng);
            run.bucket.writer().set_options(run.model.options).unwrap();
        }
    }
    run.compare();
    // All objects can be removed, and then nothing is left.
    let names: Vec<String> = run.model.objects.keys().cloned().collect();
    for name in names {
        let _ = run
            .bucket
            .writer()
            .delete(&name, &ObjectCondition::Always, run.model.now)
            .unwrap();
    }
    while run.bucket.writer().maintain(i64::MAX, 7).unwrap().more {}
    let stat = run.bucket.reader().stat().unwrap();
    assert_eq!(
        (stat.objects, stat.chunks, stat.chunk_bytes, stat.uploads),
        (0, 0, 0, 0)
    );
    run.bucket.assert_sound();
}

#[test]
fn buckets_agree_with_maps() {
    tidalite_testkit::watch();
    for seed in 0..150 {
        println!("seed {seed}");
        random_operations(seed, 300);
    }
}
