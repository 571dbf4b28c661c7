//! Arguments that the commands for objects share: the bucket, attributes, conditions.

use super::common::FileArg;
use super::messages::{When, pair, when};
use clap::Args;
use tidalite::objects::{ContentHash, ObjectCondition};

/// A bucket of a file.
#[derive(Debug, Args)]
pub(crate) struct ObjectPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Bucket
    #[arg(long, value_name = "TABLE", default_value = "objects")]
    pub table: String,
}

/// Attributes of a new object.
#[derive(Debug, Args)]
pub(crate) struct ObjectAttributeArgs {
    /// Content type, such as video/mp4
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "",
        hide_default_value = true
    )]
    pub content_type: String,

    /// Metadata; repeat for several
    #[arg(long = "meta", value_name = "NAME=VALUE", value_parser = pair)]
    pub metadata: Vec<(String, String)>,

    /// Time until the object expires, such as 30d, or the time at which it does
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub expires: Option<When>,

    /// Exempt the object from expiry, rotation and removal by prefix
    #[arg(long)]
    pub protect: bool,
}

/// A condition on the object that has the name now.
#[derive(Debug, Args)]
pub(crate) struct ObjectConditionArgs {
    /// Only if no object has the name
    #[arg(long, conflicts_with_all = ["if_exists", "if_hash", "if_not_hash"])]
    pub if_missing: bool,

    /// Only if an object has the name
    #[arg(long, conflicts_with_all = ["if_hash", "if_not_hash"])]
    pub if_exists: bool,

    /// Only if the object has this hash
    #[arg(long, value_name = "HASH", value_parser = hash, conflicts_with = "if_not_hash")]
    pub if_hash: Option<ContentHash>,

    /// Only if no object with this hash has the name
    #[arg(long, value_name = "HASH", value_parser = hash)]
    pub if_not_hash: Option<ContentHash>,
}

impl ObjectConditionArgs {
    pub(crate) fn condition(&self) -> ObjectCondition {
        match (
            self.if_missing,
            self.if_exists,
            self.if_hash,
            self.if_not_hash,
        ) {
            (true, ..) => ObjectCondition::Missing,
            (_, true, ..) => ObjectCondition::Exists,
            (_, _, Some(hash), _) => ObjectCondition::Hash(hash),
            (.., Some(hash)) => ObjectCondition::NotHash(hash),
            (false, false, None, None) => ObjectCondition::Always,
        }
    }
}

/// Parses a hash as it is printed.
pub(super) fn hash(text: &str) -> Result<ContentHash, String> {
    ContentHash::from_hex(text)
        .ok_or_else(|| "a hash has 64 hex digits; `tidalite object info` prints it".to_owned())
}
