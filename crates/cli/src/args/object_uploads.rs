//! Commands for uploads of objects and for links to objects.

use super::common::{CreatedArg, DurabilityArg, ReportFormatArg};
use super::messages::{When, when};
use super::object_place::{ObjectAttributeArgs, ObjectConditionArgs, ObjectPlace, hash};
use crate::time::width_nanos;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;
use tidalite::objects::{ContentHash, PART_CHUNKS_MAX};

#[derive(Debug, Args)]
#[command(after_long_help = "\
The bytes of an upload arrive in several commands, and become an object with the last one. `append` adds
bytes at the end; with `begin --parts` numbered parts arrive in any order instead. An upload that is
not complete when its lifetime has passed is removed by `object maintain`.

Examples:
  tidalite object upload begin plant.tdl logs/today
  tidalite object upload append plant.tdl 1 first.log
  tidalite object upload append plant.tdl 1 second.log
  tidalite object upload complete plant.tdl 1")]
pub(crate) struct ObjectUploadArgs {
    #[command(subcommand)]
    pub command: ObjectUploadCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ObjectUploadCommand {
    /// Begin an upload, and print its id
    Begin(ObjectUploadBeginArgs),
    /// Append bytes to an upload
    Append(ObjectUploadAppendArgs),
    /// Store a numbered part of an upload
    Part(ObjectUploadPartArgs),
    /// Make an upload an object
    Complete(ObjectUploadCompleteArgs),
    /// Give an upload more time
    Extend(ObjectUploadExtendArgs),
    /// Remove an upload and its bytes
    Abort(ObjectUploadAbortArgs),
    /// List uploads
    List(ObjectUploadListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadBeginArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    #[command(flatten)]
    pub attributes: ObjectAttributeArgs,

    /// The bytes arrive in numbered parts, in any order, each of this number of chunks except the last
    #[arg(long, value_name = "CHUNKS", value_parser = clap::value_parser!(u32).range(1..=i64::from(PART_CHUNKS_MAX)))]
    pub parts: Option<u32>,

    /// Time after which the upload is removed if it is not complete
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, default_value = "7d")]
    pub lifetime: i64,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadAppendArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the upload
    pub id: u64,

    /// File with the bytes; standard input if not given, or if -
    #[arg(value_name = "SOURCE", value_hint = ValueHint::FilePath)]
    pub source: Option<PathBuf>,

    /// Only if the upload has this number of bytes
    #[arg(long, value_name = "BYTES")]
    pub offset: Option<u64>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadPartArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the upload
    pub id: u64,

    /// Number of the part, from 0 on
    pub number: u32,

    /// File with the bytes; standard input if not given, or if -
    #[arg(value_name = "SOURCE", value_hint = ValueHint::FilePath)]
    pub source: Option<PathBuf>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadCompleteArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the upload
    pub id: u64,

    /// Size in bytes that the object must have
    #[arg(long, value_name = "BYTES")]
    pub size: Option<u64>,

    /// Hash that the object must have
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub hash: Option<ContentHash>,

    #[command(flatten)]
    pub condition: ObjectConditionArgs,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadExtendArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the upload
    pub id: u64,

    /// Time after which the upload is removed if it is not complete, counted from now
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, default_value = "7d")]
    pub lifetime: i64,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadAbortArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the upload
    pub id: u64,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectUploadListArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Print the stored parts of this upload; of an upload by appending, its whole chunks
    #[arg(long, value_name = "ID")]
    pub parts: Option<u64>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectLinkArgs {
    #[command(subcommand)]
    pub command: ObjectLinkCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ObjectLinkCommand {
    /// Create a link to the name of an object, and print its random id
    Create(ObjectLinkCreateArgs),
    /// Remove a link
    Revoke(ObjectLinkRevokeArgs),
    /// List links with their reads
    List(ObjectLinkListArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ObjectLinkCreateArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object, which must exist
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    /// Time until the link expires, such as 1d, or the time at which it does
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub expires: Option<When>,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectLinkRevokeArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Id of the link: 32 hex digits
    #[arg(value_name = "LINK")]
    pub link: String,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectLinkListArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

impl ObjectUploadCommand {
    /// Durability of the commits of the command, if it writes.
    pub(super) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Begin(args) => Some(&args.durability),
            Self::Append(args) => Some(&args.durability),
            Self::Part(args) => Some(&args.durability),
            Self::Complete(args) => Some(&args.durability),
            Self::Extend(args) => Some(&args.durability),
            Self::Abort(args) => Some(&args.durability),
            Self::List(_) => None,
        }
    }

    /// Properties of a file that the command creates, if it can create one.
    pub(super) fn created(&self) -> Option<&CreatedArg> {
        match self {
            Self::Begin(args) => Some(&args.created),
            _ => None,
        }
    }
}

impl ObjectLinkCommand {
    /// Durability of the commits of the command, if it writes.
    pub(super) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Create(args) => Some(&args.durability),
            Self::Revoke(args) => Some(&args.durability),
            Self::List(_) => None,
        }
    }
}
