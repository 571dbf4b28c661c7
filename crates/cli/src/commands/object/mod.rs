//! `object`: commands for objects in buckets.
//!
//! ```text
//! line      objects as JSON, and outcomes of conditional changes
//! source    the bytes of a file or of standard input
//! create    a new bucket, and its options
//! put       put
//! resume    put --resume
//! get       get
//! list      ls, info
//! change    rm, mv, cp, set
//! upload    uploads
//! link      links
//! stat      stat, verify, maintain
//! ```

mod change;
mod create;
mod get;
mod line;
mod link;
mod list;
mod put;
mod resume;
mod source;
mod stat;
mod upload;

use super::messages::Place;
use crate::args::{
    ObjectArgs, ObjectAttributeArgs, ObjectCommand, ObjectLinkCommand, ObjectPlace,
    ObjectUploadCommand,
};
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use tidalite::objects::{ObjectAttributes, ObjectInfo};
use tidalite::{Bucket, BucketMut, ErrorKind, ReadTxn, TableLayout, WriteTxn};

impl ObjectPlace {
    fn place(&self) -> Place<'_> {
        Place {
            path: &self.file.file,
            table: &self.table,
            layout: TableLayout::Bucket,
        }
    }
}

impl ObjectAttributeArgs {
    /// The attributes, if it is `now`.
    fn attributes(&self, now: i64) -> ObjectAttributes {
        ObjectAttributes {
            content_type: self.content_type.clone(),
            metadata: self.metadata.clone(),
            expires: self.expires.map(|expires| expires.at(now)),
            protected: self.protect,
        }
    }
}

/// The bucket of a snapshot, which must exist.
fn bucket<'s>(place: &Place<'_>, snap: &'s ReadTxn) -> Outcome<Bucket<'s>> {
    let bucket = snap.bucket(place.table);
    let bucket = bucket.map_err(|error| place.fail(&error))?;
    bucket.ok_or_else(|| place.missing())
}

/// The bucket of a transaction; it is created if it does not exist.
fn bucket_mut<'t>(place: &Place<'_>, tx: &'t mut WriteTxn) -> Outcome<BucketMut<'t>> {
    tx.bucket(place.table).map_err(|error| place.fail(&error))
}

/// Converts an error like `Place::fail`; for a name that objects cannot have, with advice.
fn name_failure(place: &Place<'_>, error: &tidalite::Error) -> Failure {
    let failure = place.fail(error);
    match error.kind() {
        ErrorKind::Unsupported => Failure {
            hint: Some("the name of an object has at least one byte".to_owned()),
            ..failure
        },
        _ => failure,
    }
}

/// The failure for an object that does not exist.
fn no_object(place: &Place<'_>, name: &str) -> Failure {
    Failure::not_found(format!("there is no object {name} in {}", place.table)).hint(format!(
        "`tidalite object ls {} --table {}` lists the objects",
        place.path.display(),
        place.table
    ))
}

/// An object, which must exist.
fn info(place: &Place<'_>, bucket: &Bucket<'_>, name: &str) -> Outcome<ObjectInfo> {
    let info = bucket.info(name);
    let info = info.map_err(|error| name_failure(place, &error))?;
    info.ok_or_else(|| no_object(place, name))
}

/// Runs the command `tidalite object`.
pub(crate) fn run(args: &ObjectArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        ObjectCommand::Create(args) => create::run(args, terminal),
        ObjectCommand::Put(args) if args.resume => resume::run(args, terminal),
        ObjectCommand::Put(args) => put::run(args, terminal),
        ObjectCommand::Get(args) => get::run(args, terminal),
        ObjectCommand::Ls(args) => list::ls(args, terminal),
        ObjectCommand::Info(args) => list::info(args, terminal),
        ObjectCommand::Rm(args) => change::rm(args, terminal),
        ObjectCommand::Mv(args) => change::mv(args, terminal),
        ObjectCommand::Cp(args) => change::cp(args, terminal),
        ObjectCommand::Set(args) => change::set(args, terminal),
        ObjectCommand::Verify(args) => stat::verify(args, terminal),
        ObjectCommand::Upload(args) => match &args.command {
            ObjectUploadCommand::Begin(args) => upload::begin(args, terminal),
            ObjectUploadCommand::Append(args) => upload::append(args, terminal),
            ObjectUploadCommand::Part(args) => upload::part(args, terminal),
            ObjectUploadCommand::Complete(args) => upload::complete(args, terminal),
            ObjectUploadCommand::Extend(args) => upload::extend(args, terminal),
            ObjectUploadCommand::Abort(args) => upload::abort(args, terminal),
            ObjectUploadCommand::List(args) => upload::list(args, terminal),
        },
        ObjectCommand::Link(args) => match &args.command {
            ObjectLinkCommand::Create(args) => link::create(args, terminal),
            ObjectLinkCommand::Revoke(args) => link::revoke(args, terminal),
            ObjectLinkCommand::List(args) => link::list(args, terminal),
        },
        ObjectCommand::Stat(args) => stat::run(args, terminal),
        ObjectCommand::Maintain(args) => stat::maintain(args, terminal),
    }
}
