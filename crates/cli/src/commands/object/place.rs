//! The bucket and the object that a command refers to, and their errors.

use crate::args::{ObjectAttributeArgs, ObjectPlace};
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use tidalite::objects::{Bucket, BucketMut, ObjectAttributes, ObjectInfo};
use tidalite::{ErrorKind, ReadTxn, TableLayout, Timestamp, WriteTxn};

impl ObjectPlace {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Bucket,
        }
    }
}

impl ObjectAttributeArgs {
    /// The attributes that the user has given; `now` is the current time.
    pub(super) fn attributes(&self, now: Timestamp) -> ObjectAttributes {
        ObjectAttributes {
            content_type: self.content_type.clone(),
            metadata: self.metadata.clone(),
            expires: self.expires.map(|expires| expires.at(now)),
            protected: self.protect,
        }
    }
}

/// The bucket of a snapshot, which must exist.
pub(super) fn bucket<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Bucket<'s>> {
    let bucket = snap.bucket(place.table);
    let bucket = bucket.map_err(|error| place.fail(&error))?;
    bucket.ok_or_else(|| place.missing())
}

/// The bucket of a transaction; it is created if it does not exist.
pub(super) fn bucket_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<BucketMut<'t>> {
    tx.bucket(place.table).map_err(|error| place.fail(&error))
}

/// Converts an error like `Place::fail`. For a name that objects cannot have, the failure contains advice.
pub(super) fn name_failure(place: &Place<'_>, error: &tidalite::Error) -> Failure {
    let failure = place.fail(error);
    match error.kind() {
        ErrorKind::InvalidName => Failure {
            hint: Some("the name of an object has at least one byte".to_owned()),
            ..failure
        },
        _ => failure,
    }
}

/// The failure for an object that does not exist.
pub(super) fn no_object(place: &Place<'_>, name: &str) -> Failure {
    Failure::not_found(format!("there is no object {name} in {}", place.table)).hint(format!(
        "`tidalite object ls {} --table {}` lists the objects",
        place.path.display(),
        place.table
    ))
}

/// An object, which must exist.
pub(super) fn info(place: &Place<'_>, bucket: &Bucket<'_>, name: &str) -> Outcome<ObjectInfo> {
    let info = bucket.info(name);
    let info = info.map_err(|error| name_failure(place, &error))?;
    info.ok_or_else(|| no_object(place, name))
}
