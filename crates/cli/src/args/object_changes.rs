//! Commands that list, verify, rename, change and remove stored objects.

use super::common::{DurabilityArg, FormatArg, ReportFormatArg};
use super::messages::{When, pair, when_or_never};
use super::object_place::{ObjectConditionArgs, ObjectPlace, hash};
use clap::Args;
use tidalite::objects::ContentHash;

#[derive(Debug, Args)]
pub(crate) struct ObjectLsArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Only objects whose names begin with this text
    #[arg(
        allow_negative_numbers = true,
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,

    /// Print names only up to this text behind the prefix, each beginning once, such as / for folders
    #[arg(long, value_name = "TEXT")]
    pub delimiter: Option<String>,

    /// Only objects of this content type; a * at the end stands for any rest
    #[arg(long = "type", value_name = "TYPE")]
    pub content_type: Option<String>,

    /// Only objects of at least this size in bytes
    #[arg(long, value_name = "BYTES")]
    pub bytes_min: Option<u64>,

    /// Only objects of at most this size in bytes
    #[arg(long, value_name = "BYTES")]
    pub bytes_max: Option<u64>,

    /// Only objects whose bytes were put at or after this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// Only objects whose bytes were put before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,

    /// Only protected objects
    #[arg(long, conflicts_with = "unprotected")]
    pub protected: bool,

    /// Only objects that are not protected
    #[arg(long)]
    pub unprotected: bool,

    /// Maximum number of lines
    #[arg(long, short = 'n', value_name = "OBJECTS", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectInfoArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectRmArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "prefix",
        // Also --dry-run: clap does not demand an option that --dry-run requires if another argument excludes it.
        conflicts_with_all = ["prefix", "dry_run"]
    )]
    pub name: Option<String>,

    /// Remove all objects whose names begin with this text, except protected ones
    #[arg(long, value_name = "TEXT")]
    pub prefix: Option<String>,

    /// Only print the number of objects that would be removed
    #[arg(long, requires = "prefix")]
    pub dry_run: bool,

    /// Only if the object has this hash
    #[arg(long, value_name = "HASH", value_parser = hash, conflicts_with = "prefix")]
    pub if_hash: Option<ContentHash>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectMvArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(value_name = "FROM", allow_negative_numbers = true)]
    pub from: String,

    /// New name; an object that has it is replaced
    #[arg(value_name = "TO", allow_negative_numbers = true)]
    pub to: String,

    #[command(flatten)]
    pub condition: ObjectConditionArgs,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectSetArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(allow_negative_numbers = true)]
    pub name: String,

    /// New content type
    #[arg(long = "type", value_name = "TYPE")]
    pub content_type: Option<String>,

    /// New metadata, in place of all pairs; repeat for several
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,

    /// Remove the metadata
    #[arg(long, conflicts_with = "metadata")]
    pub no_meta: bool,

    /// Time until the object expires, such as 30d, or the time at which it does, or never
    // Written as a path, because clap treats `Option<Option<T>>` as an option whose value may be missing.
    #[arg(long, value_name = "TIME", value_parser = when_or_never)]
    pub expires: Option<std::option::Option<When>>,

    /// Protect the object from expiry, rotation and removal by prefix
    #[arg(long, conflicts_with = "unprotect")]
    pub protect: bool,

    /// End the protection of the object
    #[arg(long)]
    pub unprotect: bool,

    /// Only if the object has this hash
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub if_hash: Option<ContentHash>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ObjectVerifyArgs {
    #[command(flatten)]
    pub place: ObjectPlace,

    /// Name of the object
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub name: Option<String>,

    /// All objects of the bucket
    #[arg(long)]
    pub all: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,
}
