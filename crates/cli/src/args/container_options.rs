//! `container create` and `container options`.

use super::common::{CreatedArg, DurabilityArg, ReportFormatArg};
use super::container_place::{ContainerNamed, ContainerPlace};
use crate::time::age_nanos;
use clap::{Args, ValueEnum};

/// The rule for a message with the time of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DuplicateRule {
    /// Both are kept, in the order of their arrival
    KeepAll,
    /// The earlier message stays
    KeepFirst,
    /// The new message replaces the earlier one
    Replace,
    /// The fields of the new message are set in the earlier one
    Merge,
}

/// The rule for messages that a full container has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContainerFull {
    /// The message is not stored
    Reject,
    /// The oldest messages are removed
    DropOldest,
}

/// An age at which messages expire.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ttl {
    Never,
    /// The age in nanoseconds.
    At(i64),
}

/// Parses an age, or `never`.
fn ttl(text: &str) -> Result<Ttl, String> {
    match text {
        "never" => Ok(Ttl::Never),
        text => age_nanos(text).map(Ttl::At),
    }
}

/// Options of a container.
#[derive(Debug, Default, Args)]
pub(crate) struct ContainerOptionArgs {
    /// The rule for a message with the time of an earlier one; keep-all if not given
    #[arg(long, value_enum, value_name = "RULE")]
    pub on_duplicate: Option<DuplicateRule>,

    /// Age at which messages expire, such as 30d, or never, as if not given; with 0 messages only set the latest values
    /// and are not stored
    #[arg(long, value_name = "AGE", value_parser = ttl)]
    pub ttl: Option<Ttl>,

    /// Maximum number of messages; 0 for no maximum, as if not given
    #[arg(long, value_name = "MESSAGES")]
    pub messages_max: Option<u64>,

    /// Maximum number of bytes of all messages; 0 for no maximum, as if not given
    #[arg(long, value_name = "BYTES")]
    pub bytes_max: Option<u64>,

    /// The rule for a full container; drop-oldest if not given
    #[arg(long, value_enum, value_name = "RULE")]
    pub overflow: Option<ContainerFull>,

    /// Time for which deleted messages and dropped containers can be restored; 0 for not at all, as if not given
    #[arg(long, value_name = "WIDTH", value_parser = age_nanos)]
    pub keep_deleted: Option<i64>,

    /// Field that protects a message from expiry and rotation if its value is true; '' for none
    #[arg(long, value_name = "FIELD")]
    pub protect: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerCreateArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    #[command(flatten)]
    pub options: ContainerOptionArgs,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without options to change, the command prints the current ones. A container that was created without options, or by
a message, has the default options of the table: --defaults changes them for all such containers, and
they apply to stored messages, too. The first option that a container gets of its own copies the defaults.

Examples:
  tidalite container options plant.tdl --defaults --ttl 90d --keep-deleted 7d
  tidalite container options plant.tdl --defaults --idempotency-window 1h --on-message-create no
  tidalite container options plant.tdl pump-3 --messages-max 1000000 --overflow reject
  tidalite container options plant.tdl pump-3 --inherit
  tidalite container options plant.tdl pump-3")]
pub(crate) struct ContainerOptionsArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    /// Container
    #[arg(
        value_name = "NAME",
        allow_negative_numbers = true,
        required_unless_present = "defaults",
        conflicts_with = "defaults"
    )]
    pub name: Option<String>,

    /// The options of the table, and the default ones of its containers; the table is created if it does not exist
    #[arg(long)]
    pub defaults: bool,

    #[command(flatten)]
    pub options: ContainerOptionArgs,

    // Conflicts, not `requires`: clap does not demand an argument that another one excludes.
    /// Give the container the default options of the table again
    #[arg(
        long,
        conflicts_with_all = ["defaults", "on_duplicate", "ttl", "messages_max", "bytes_max", "overflow", "keep_deleted", "protect"]
    )]
    pub inherit: bool,

    /// With --defaults: time in which a second message with the same idempotency key stores nothing; 0 to ignore the
    /// keys
    #[arg(long, value_name = "WIDTH", value_parser = age_nanos, conflicts_with = "name")]
    pub idempotency_window: Option<i64>,

    /// With --defaults: whether a message creates its container
    #[arg(long, value_enum, value_name = "WHETHER", conflicts_with = "name")]
    pub on_message_create: Option<YesNo>,

    /// With --defaults: maximum number of containers
    #[arg(long, value_name = "CONTAINERS", conflicts_with = "name")]
    pub containers_max: Option<u32>,

    /// With --defaults: maximum number of names of fields that all messages have had
    #[arg(long, value_name = "FIELDS", conflicts_with = "name")]
    pub fields_max: Option<u32>,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum YesNo {
    /// It does
    Yes,
    /// It does not
    No,
}
