//! Commands for queues of jobs.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::messages::{PayloadArgs, When, pair, when};
use crate::time::{age_nanos, width_nanos};
use clap::{Args, Subcommand, ValueEnum};
use tidalite::queue::DEFAULT_GROUP;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A queue holds messages until consumers have acknowledged them. A consumer leases a message for a time,
works on it, and acknowledges it; if it does not, the message is delivered again. Each group of
consumers gets every message; a queue without groups has the group `default`.

Examples:
  tidalite queue push plant.tdl 'resize 17.jpg'
  tidalite queue push plant.tdl 'send report' --delay 10m --priority 200 --header user=ana
  tidalite queue push plant.tdl --lines < jobs.txt
  tidalite queue lease plant.tdl --for 5m --format json
  tidalite queue ack plant.tdl 1
  tidalite queue nack plant.tdl 2 --delay 30s
  tidalite queue take plant.tdl --limit 10
  tidalite queue peek plant.tdl

  tidalite queue create plant.tdl --table mail --deliveries-max 5 --idempotency-window 1h
  tidalite queue dead plant.tdl --table mail
  tidalite queue dead plant.tdl --table mail --all --requeue
  tidalite queue group create plant.tdl audit
  tidalite queue stat plant.tdl

The queue is called `jobs` unless --table gives another name; a file can have many. Payloads are stored
as typed. A printed payload that is not UTF-8 has \\ and two hex digits for each such byte; --raw and
--format json are exact: JSON has the field `payload_hex` in place of `payload` for bytes that are not
UTF-8. Leases, delays and expiry follow the clock of the database, which does not jump with the
clock of the computer.")]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub command: QueueCommand,
}

/// A queue of a file.
#[derive(Debug, Args)]
pub(crate) struct QueuePlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Queue
    #[arg(long, value_name = "TABLE", default_value = "jobs")]
    pub table: String,
}

/// The group of a consumer.
#[derive(Debug, Args)]
pub(crate) struct QueueGroupArg {
    /// Group of consumers
    #[arg(long, value_name = "GROUP", default_value = DEFAULT_GROUP)]
    pub group: String,
}

/// A consumer of a group.
#[derive(Debug, Args)]
pub(crate) struct QueueConsumerArgs {
    #[command(flatten)]
    pub group: QueueGroupArg,

    /// Name of the consumer; only the consumer that leases a message can acknowledge it
    #[arg(long, value_name = "NAME", default_value = "tidalite")]
    pub consumer: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Create a queue with limits, retention and dead letters, or change its options
    Create(QueueCreateArgs),
    /// Push a message, or one for each line of standard input; the queue is created if it does not exist
    Push(Box<QueuePushArgs>),
    /// Lease messages for a time: they are delivered again if they are not acknowledged
    Lease(QueueLeaseArgs),
    /// Read and delete messages
    Take(QueueTakeArgs),
    /// Acknowledge leased messages: the group does not get them again
    Ack(QueueAnswerArgs),
    /// Give leased messages back: they are delivered again
    Nack(QueueNackArgs),
    /// Make leased messages dead letters
    Reject(QueueAnswerArgs),
    /// Extend leases
    Extend(QueueExtendArgs),
    /// Print the messages that would be delivered next, without leasing them
    Peek(QueuePeekArgs),
    /// Print dead letters, deliver them again, or drop them
    Dead(QueueDeadArgs),
    /// Create, drop and list groups of consumers
    Group(QueueGroupArgs),
    /// List queues, or show the messages, the groups and the options of one
    Stat(QueueStatArgs),
    /// Delete all messages, or those of a group
    Purge(QueuePurgeArgs),
    /// Delete expired and old messages, and end lapsed leases
    Maintain(QueueMaintainArgs),
}

/// The rule for messages that a full queue has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum QueueOverflow {
    /// A push fails
    Reject,
    /// The oldest messages are deleted, whatever their state
    DropOldest,
    /// The new message is not stored
    DropNewest,
}

#[derive(Debug, Args)]
pub(crate) struct QueueCreateArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// The rule for a full queue; reject if not given
    #[arg(long, value_enum, value_name = "RULE")]
    pub overflow: Option<QueueOverflow>,

    /// Number of deliveries after which a message becomes a dead letter; 0 for never, as if not given
    #[arg(long, value_name = "DELIVERIES")]
    pub deliveries_max: Option<u32>,

    /// Maximum number of messages; 0 for no maximum
    #[arg(long, value_name = "MESSAGES")]
    pub messages_max: Option<u64>,

    /// Maximum number of bytes of all messages; 0 for no maximum
    #[arg(long, value_name = "BYTES")]
    pub bytes_max: Option<u64>,

    /// Age at which messages are deleted, such as 7d; 0 for never
    #[arg(long, value_name = "AGE", value_parser = age_nanos)]
    pub retention: Option<i64>,

    /// Time in which a second push with the same idempotency key stores nothing; 0 to ignore the keys, as if not given
    #[arg(long, value_name = "WIDTH", value_parser = age_nanos)]
    pub idempotency_window: Option<i64>,

    /// Change the given options of an existing queue
    #[arg(long)]
    pub alter: bool,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueuePushArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub payload: PayloadArgs,

    /// Push each line of standard input as a message
    #[arg(long, conflicts_with_all = ["payload", "payload_file", "hex", "idempotency_key"])]
    pub lines: bool,

    /// Ordering key: messages with the same key are delivered one after the other
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,

    /// Priority: higher ones are delivered first
    #[arg(long, value_name = "0-255", default_value_t = tidalite::queue::PRIORITY_DEFAULT)]
    pub priority: u8,

    /// Time until the message can be delivered, such as 10m, or the time from which on it can
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub delay: Option<When>,

    /// Time until the message expires, such as 1d, or the time at which it does
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub expires: Option<When>,

    /// Header; repeat for several
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = pair)]
    pub headers: Vec<(String, String)>,

    /// A second push with this key stores nothing, within the window of the queue
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

/// How many messages a delivery has.
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

    /// Make dead letters ready again, with no deliveries
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

#[derive(Debug, Args)]
pub(crate) struct QueueStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Queue; a line for each if not given
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueuePurgeArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    /// Delete only the messages of this group
    #[arg(long, value_name = "GROUP")]
    pub group: Option<String>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct QueueMaintainArgs {
    #[command(flatten)]
    pub place: QueuePlace,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

impl QueueCommand {
    /// Durability of the commits of the command, if it writes.
    pub(crate) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Create(args) => Some(&args.durability),
            Self::Push(args) => Some(&args.durability),
            Self::Lease(args) => Some(&args.durability),
            Self::Take(args) => Some(&args.durability),
            Self::Ack(args) | Self::Reject(args) => Some(&args.durability),
            Self::Nack(args) => Some(&args.answer.durability),
            Self::Extend(args) => Some(&args.answer.durability),
            Self::Dead(args) => Some(&args.durability),
            Self::Group(args) => match &args.command {
                QueueGroupCommand::Create(args) => Some(&args.durability),
                QueueGroupCommand::Drop(args) => Some(&args.durability),
                QueueGroupCommand::List(_) => None,
            },
            Self::Purge(args) => Some(&args.durability),
            Self::Maintain(args) => Some(&args.durability),
            Self::Peek(_) | Self::Stat(_) => None,
        }
    }

    /// Properties of a file that the command creates, if it can create one.
    pub(crate) fn created(&self) -> Option<&CreatedArg> {
        match self {
            Self::Create(args) => Some(&args.created),
            Self::Push(args) => Some(&args.created),
            _ => None,
        }
    }
}
