//! Commands for consumers of queues and their groups.

use super::common::{DurabilityArg, ReportFormatArg};
use super::queue_place::{QueueConsumerArgs, QueueGroupArg, QueuePlace};
use crate::time::{age_nanos, width_nanos};
use clap::{Args, Subcommand, ValueEnum};

/// Limits of a delivery.
#[derive(Debug, Args)]
pub(crate) struct QueueLimitArgs {
    /// Maximum number of messages
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub limit: u32,

    /// Maximum number of bytes of the messages; a larger message is delivered alone
    #[arg(long, value_name = "BYTES", default_value_t = u64::MAX, hide_default_value = true)]
    pub bytes: u64,
}

#[derive(Debug, Args)]
pub(crate) struct QueueLeaseArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub consumer: QueueConsumerArgs,

    /// Duration of the lease
    #[arg(long = "for", value_name = "WIDTH", value_parser = width_nanos, default_value = "1m")]
    pub duration: i64,

    #[command(flatten)]
    pub limits: QueueLimitArgs,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Messages are deleted when they have been written to standard output. If the program is ended between
the two, they are delivered again.

Examples:
  tidalite queue take plant.tdl --raw > job
  tidalite queue take plant.tdl --limit 100 --format json")]
pub(crate) struct QueueTakeArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub group: QueueGroupArg,

    #[command(flatten)]
    pub limits: QueueLimitArgs,

    /// Write the bytes of the payloads unchanged, without line ends
    #[arg(long, conflicts_with = "format")]
    pub raw: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueAnswerArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// Ids of messages
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<u64>,

    #[command(flatten)]
    pub consumer: QueueConsumerArgs,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueNackArgs {
    #[command(flatten)]
    pub answer: QueueAnswerArgs,

    /// Time until the messages can be delivered again
    #[arg(long, value_name = "WIDTH", value_parser = age_nanos, default_value = "0")]
    pub delay: i64,
}

#[derive(Debug, Args)]
pub(crate) struct QueueExtendArgs {
    #[command(flatten)]
    pub answer: QueueAnswerArgs,

    /// Duration of the lease, counted from now
    #[arg(long = "for", value_name = "WIDTH", value_parser = width_nanos, default_value = "1m")]
    pub duration: i64,
}

#[derive(Debug, Args)]
pub(crate) struct QueuePeekArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub group: QueueGroupArg,

    /// Maximum number of messages
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = 10)]
    pub limit: u32,

    /// All stored messages in the order of their ids, whatever their state
    #[arg(long, conflicts_with = "group")]
    pub all: bool,

    /// With --all: the first id
    #[arg(
        long,
        value_name = "ID",
        default_value_t = 0,
        hide_default_value = true,
        requires = "all",
        conflicts_with = "group"
    )]
    pub from: u64,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueDeadArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// Ids of dead letters, for --requeue and --drop
    #[arg(value_name = "ID", conflicts_with = "all")]
    pub ids: Vec<u64>,

    #[command(flatten)]
    pub group: QueueGroupArg,

    /// All dead letters of the group, for --requeue and --drop
    #[arg(long)]
    pub all: bool,

    /// Make dead letters ready again, as if they had never been delivered
    #[arg(long, conflicts_with = "drop")]
    pub requeue: bool,

    /// Remove dead letters from the group
    #[arg(long)]
    pub drop: bool,

    /// Print dead letters from this id on
    #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true, conflicts_with_all = ["requeue", "drop", "all", "ids"])]
    pub from: u64,

    /// Maximum number of dead letters to print
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = 10, conflicts_with_all = ["requeue", "drop"])]
    pub limit: u32,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueGroupArgs {
    #[command(subcommand)]
    pub command: QueueGroupCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueGroupCommand {
    /// Create a group, which gets the stored messages or only later ones
    Create(QueueGroupCreateArgs),
    /// Drop a group, with the messages that only this group needs
    Drop(QueueGroupDropArgs),
    /// List groups with their counters
    List(QueueGroupListArgs),
}

/// The first message of a new group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueStart {
    /// The oldest stored message
    #[default]
    Oldest,
    /// The first message that is pushed later
    Newest,
}

#[derive(Debug, Args)]
pub(crate) struct QueueGroupCreateArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// Name of the group
    #[arg(value_name = "GROUP")]
    pub name: String,

    /// The first message that the group gets
    #[arg(long, value_enum, default_value_t, value_name = "MESSAGE")]
    pub start: QueueStart,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueGroupDropArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// Name of the group
    #[arg(value_name = "GROUP")]
    pub name: String,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueGroupListArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub format: ReportFormatArg,
}
