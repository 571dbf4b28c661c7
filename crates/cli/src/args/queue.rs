//! Commands for queues of jobs; `queue_consumers` has those for consumers and their groups.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::messages::{PayloadArgs, When, pair, when};
use super::queue_consumers::{
    QueueAnswerArgs, QueueDeadArgs, QueueExtendArgs, QueueGroupArgs, QueueGroupCommand,
    QueueLeaseArgs, QueueNackArgs, QueuePeekArgs, QueueTakeArgs,
};
use super::queue_place::QueuePlace;
use crate::time::age_nanos;
use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_long_help = "\
A queue holds messages until consumers have acknowledged them. A consumer leases a message for a time,
works on it, and acknowledges it; if it does not, the message is delivered again. Each group of
consumers gets every message; a queue without groups has the group `default`.

Examples:
  tidalite queue push plant.tdl 'resize 17.jpg'
  tidalite queue push plant.tdl 'send report' --delay 10m --priority 200 --header user=ana
  cat jobs.txt | tidalite queue push plant.tdl --lines
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
    /// Delete all messages, or all of a group
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
