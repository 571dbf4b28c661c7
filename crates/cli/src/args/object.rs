//! Commands for objects in buckets; `object_changes` lists and changes stored objects, `object_uploads` is for uploads
//! and links.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::object_changes::{
    ObjectInfoArgs, ObjectLsArgs, ObjectMvArgs, ObjectRmArgs, ObjectSetArgs, ObjectVerifyArgs,
};
use super::object_place::{ObjectAttributeArgs, ObjectConditionArgs, ObjectPlace};
use super::object_uploads::{ObjectLinkArgs, ObjectUploadArgs};
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A bucket holds objects: bytes of any length under a name, with a content type, metadata and a hash.
Objects are stored in chunks, so they are never in memory as a whole.

Examples:
  tidalite object put plant.tdl video/gate.mp4 gate.mp4 --type video/mp4 --meta camera=7
  tidalite object put plant.tdl video/gate.mp4 gate.mp4 --resume
  tidalite object get plant.tdl video/gate.mp4 --output gate.mp4
  tidalite object get plant.tdl video/gate.mp4 --range 0-1023 > head
  tidalite object ls plant.tdl video/ --delimiter /
  tidalite object info plant.tdl video/gate.mp4
  tidalite object mv plant.tdl video/gate.mp4 old/gate.mp4
  tidalite object rm plant.tdl --prefix old/ --dry-run
  tidalite object verify plant.tdl --all

  tidalite object create plant.tdl --table cache --overflow drop-oldest --bytes-max 1000000000
  tidalite object upload list plant.tdl
  tidalite object link create plant.tdl video/gate.mp4 --expires 1d
  tidalite object maintain plant.tdl

The bucket is called `objects` unless --table gives another name; a file can have many. The hash of an
object is BLAKE3 over the hashes of its chunks: equal hashes mean equal bytes. Times without an offset
are in UTC. Expiry follows the clock of the database, which does not jump with the clock of the
computer.")]
pub(crate) struct ObjectArgs {
    #[command(subcommand)]
    pub command: ObjectCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ObjectCommand {
    /// Create a bucket with limits, or change its options
    Create(ObjectCreateArgs),
    /// Store a file or standard input as an object; the bucket is created if it does not exist
    Put(Box<ObjectPutArgs>),
    /// Write an object, or a part of it, to a file or to standard output
    Get(ObjectGetArgs),
    /// List objects
    Ls(ObjectLsArgs),
    /// Show the size, the hash and the attributes of an object
    Info(ObjectInfoArgs),
    /// Remove an object, or all whose names begin with a text
    Rm(ObjectRmArgs),
    /// Rename an object
    Mv(ObjectMvArgs),
    /// Copy an object; both share their bytes
    Cp(ObjectMvArgs),
    /// Change the content type, the metadata, the expiry or the protection of an object
    Set(ObjectSetArgs),
    /// Read objects and compare them with their hashes
    Verify(ObjectVerifyArgs),
    /// Upload objects piece by piece
    Upload(ObjectUploadArgs),
    /// Create, revoke and list links to objects
    Link(ObjectLinkArgs),
    /// List buckets, or show the objects, the uploads and the options of one
    Stat(ObjectStatArgs),
    /// Remove expired objects, uploads and links, and free their space
    Maintain(ObjectMaintainArgs),
}

/// The treatment of an object that a full bucket has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ObjectOverflow {
    /// A put fails
    Reject,
    /// The oldest objects that are not protected are removed
    DropOldest,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectCreateArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Size in bytes of a chunk of later objects; 1048576 to 8388608
    #[arg(long, value_name = "BYTES")]
    pub chunk_bytes: Option<u32>,

    /// The treatment of an object that a full bucket has no room for; reject if not given
    #[arg(long, value_enum, value_name = "RULE")]
    pub overflow: Option<ObjectOverflow>,

    /// Maximum size in bytes of an object
    #[arg(long, value_name = "BYTES")]
    pub object_bytes_max: Option<u64>,

    /// Maximum number of objects
    #[arg(long, value_name = "OBJECTS")]
    pub objects_max: Option<u64>,

    /// Maximum size in bytes of all objects together
    #[arg(long, value_name = "BYTES")]
    pub bytes_max: Option<u64>,

    /// Maximum number of unfinished uploads; 10000 if not given
    #[arg(long, value_name = "UPLOADS")]
    pub uploads_max: Option<u64>,

    /// Change the given options of an existing bucket
    #[arg(long)]
    pub alter: bool,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectPutArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    /// File to store; standard input if not given, or if -
    #[arg(value_name = "SOURCE", value_hint = ValueHint::FilePath)]
    pub source: Option<PathBuf>,

    #[command(flatten)]
    pub attributes: ObjectAttributeArgs,

    #[command(flatten)]
    pub condition: ObjectConditionArgs,

    /// Store the file as an upload, in commits of 16 MiB, and go on with an interrupted one of the same name
    #[arg(long, requires = "source")]
    pub resume: bool,

    /// No progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

/// A range of bytes, as in HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// From this byte to the end, or to the second byte, inclusive.
    From(u64, Option<u64>),
    /// This number of bytes at the end.
    Last(u64),
}

fn byte_range(text: &str) -> Result<ByteRange, String> {
    let bad = || {
        "write FIRST-LAST, both inclusive and from 0 on, FIRST- for the rest, or -N for the last N bytes"
            .to_owned()
    };
    let (first, last) = text.split_once('-').ok_or_else(bad)?;
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u64>()
            .ok()
            .filter(|_| is_plain)
            .ok_or_else(bad)
    };
    match (first, last) {
        ("", last) => Ok(ByteRange::Last(number(last)?)),
        (first, "") => Ok(ByteRange::From(number(first)?, None)),
        (first, last) => match (number(first)?, number(last)?) {
            (first, last) if first <= last => Ok(ByteRange::From(first, Some(last))),
            _ => Err(bad()),
        },
    }
}

#[derive(Debug, Args)]
pub(crate) struct ObjectGetArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    /// File to write; it has this name only when it is complete. Standard output if not given, or if -
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    pub replace: bool,

    /// Only these bytes: FIRST-LAST (both inclusive, from 0 on), FIRST-, or -N for the last N bytes
    #[arg(long, value_name = "RANGE", value_parser = byte_range)]
    pub range: Option<ByteRange>,

    /// No progress bar
    #[arg(long, short = 'q')]
    pub quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Bucket; a line for each if not given
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectMaintainArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

impl ObjectCommand {
    /// Durability of the commits of the command, if it writes.
    pub(crate) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Create(args) => Some(&args.durability),
            Self::Put(args) => Some(&args.durability),
            Self::Rm(args) => Some(&args.durability),
            Self::Mv(args) | Self::Cp(args) => Some(&args.durability),
            Self::Set(args) => Some(&args.durability),
            Self::Maintain(args) => Some(&args.durability),
            Self::Upload(args) => args.command.durability(),
            Self::Link(args) => args.command.durability(),
            Self::Get(_) | Self::Ls(_) | Self::Info(_) | Self::Verify(_) | Self::Stat(_) => None,
        }
    }

    /// Properties of a file that the command creates, if it can create one.
    pub(crate) fn created(&self) -> Option<&CreatedArg> {
        match self {
            Self::Create(args) => Some(&args.created),
            Self::Put(args) => Some(&args.created),
            Self::Upload(args) => args.command.created(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        assert_eq!(byte_range("0-9"), Ok(ByteRange::From(0, Some(9))));
        assert_eq!(byte_range("5-"), Ok(ByteRange::From(5, None)));
        assert_eq!(byte_range("-5"), Ok(ByteRange::Last(5)));
        for wrong in ["", "-", "5", "9-0", "a-b", "+1-2", "1-2-3", "--5"] {
            assert!(byte_range(wrong).is_err(), "{wrong}");
        }
    }
}
