//! Commands for topics with retained messages.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::messages::{PayloadArgs, When, pair, when};
use crate::time::width_nanos;
use clap::{Args, Subcommand, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A table of topics holds retained messages as an MQTT 5 broker does: one message for each topic, the one
that was set last. Filters have the wildcards of MQTT: + is one level, # at the end is any number of
levels. Wildcards at the beginning do not match topics that begin with $ unless --include-dollar is
given. Quote filters, because the shell interprets # and $.

Examples:
  tidalite topic set plant.tdl hall/1/temp 21.5
  tidalite topic set plant.tdl hall/1/door open --expires 10m --qos 1 --property source=plc-4
  tidalite topic get plant.tdl hall/1/temp
  tidalite topic match plant.tdl 'hall/+/temp' 'hall/1/#'
  tidalite topic match plant.tdl '#' --count
  tidalite topic rm plant.tdl hall/1/door
  tidalite topic rm plant.tdl --matching 'hall/1/#' --dry-run

  tidalite topic create plant.tdl --feed 10000
  tidalite topic watch plant.tdl 'hall/#' --format json
  tidalite topic export plant.tdl 'hall/#' > hall.jsonl
  tidalite topic import other.tdl hall.jsonl

The table is called `topics` unless --table gives another name; a file can have many. Payloads are
stored as typed. A printed payload that is not UTF-8 has \\ and two hex digits for each such byte;
--raw and --format json are exact: JSON has the field `payload_hex` in place of `payload` for bytes
that are not UTF-8. Times without an offset are in UTC. Relative times follow the clock of the
database, which does not jump with the clock of the computer.")]
pub(crate) struct TopicArgs {
    #[command(subcommand)]
    pub command: TopicCommand,
}

/// A table of topics of a file.
#[derive(Debug, Args)]
pub(crate) struct TopicPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Table of topics
    #[arg(long, value_name = "TABLE", default_value = "topics")]
    pub table: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    /// Create a table of topics with limits and a feed of changes, or change its options
    Create(TopicCreateArgs),
    /// Set the message of a topic; the table is created if it does not exist
    Set(Box<TopicSetArgs>),
    /// Print the message of a topic
    Get(TopicGetArgs),
    /// Print the messages whose topics match filters
    Match(TopicMatchArgs),
    /// Remove the message of a topic, or all messages that match a filter
    Rm(TopicRmArgs),
    /// Print the messages that match filters, then each change, until interrupted
    Watch(TopicWatchArgs),
    /// Set messages from JSON lines, as `topic export` writes them
    Import(TopicImportArgs),
    /// Write messages with all properties as JSON lines
    Export(TopicExportArgs),
    /// List tables of topics, or show the messages, the limits and the feed of one
    Stat(TopicStatArgs),
    /// Delete messages that have expired, to free their space
    Purge(TopicPurgeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TopicCreateArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Maximum number of levels of a topic; 128 if not given
    #[arg(long, value_name = "LEVELS", value_parser = clap::value_parser!(u8).range(1..))]
    pub levels_max: Option<u8>,

    /// Maximum length in bytes of a topic; 65535 if not given
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1..))]
    pub topic_bytes_max: Option<u16>,

    /// Maximum length in bytes of a payload; 268435455 if not given
    #[arg(long, value_name = "BYTES")]
    pub payload_bytes_max: Option<u32>,

    /// Maximum number of messages
    #[arg(long, value_name = "MESSAGES")]
    pub messages_max: Option<u64>,

    /// Maximum number of bytes of all messages
    #[arg(long, value_name = "BYTES")]
    pub bytes_max: Option<u64>,

    /// Number of changes that the feed keeps, for `topic watch`; 0 for no feed, as if not given
    #[arg(long, value_name = "CHANGES")]
    pub feed: Option<u64>,

    /// Change the given options of an existing table
    #[arg(long)]
    pub alter: bool,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicSetArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Topic, without wildcards
    #[arg(allow_negative_numbers = true)]
    pub topic: String,

    /// Payload of the message; an empty payload removes the message of the topic, as in MQTT
    #[command(flatten)]
    pub payload: PayloadArgs,

    /// Time until the message expires, such as 10m, or the time at which it does
    #[arg(long, value_name = "TIME", value_parser = when)]
    pub expires: Option<When>,

    /// Quality of service
    #[arg(long, value_name = "0|1|2", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=2))]
    pub qos: u8,

    /// Type of the payload's content, such as application/json
    #[arg(long, value_name = "TYPE")]
    pub content_type: Option<String>,

    /// Topic for a response
    #[arg(long, value_name = "TOPIC")]
    pub response_topic: Option<String>,

    /// Data by which the sender of a request identifies the response
    #[arg(long, value_name = "DATA")]
    pub correlation: Option<String>,

    /// User property; repeat for several
    #[arg(long = "property", value_name = "NAME=VALUE", value_parser = pair)]
    pub properties: Vec<(String, String)>,

    /// Id of the client that publishes the message
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    pub publisher: String,

    /// Mark the payload as UTF-8 text
    #[arg(long)]
    pub text: bool,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicGetArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Topic, without wildcards
    #[arg(allow_negative_numbers = true)]
    pub topic: String,

    /// Write the bytes of the payload unchanged, without a line end
    #[arg(long, conflicts_with = "format")]
    pub raw: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicMatchArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Filters; a topic that several match is printed once
    #[arg(value_name = "FILTER", required = true)]
    pub filters: Vec<String>,

    /// Let wildcards at the beginning of a filter also match topics that begin with $
    #[arg(long)]
    pub include_dollar: bool,

    /// Only messages with a greater sequence number, which changed since
    #[arg(
        long,
        value_name = "SEQUENCE",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub since: u64,

    /// Maximum number of messages; if there are more, a note has the token with which to continue
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    /// Continue after an earlier command with the same filters, whose note has the token
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<String>,

    /// Print only the number of messages
    #[arg(long, conflicts_with_all = ["limit", "token", "topics_only"])]
    pub count: bool,

    /// Print only the topics
    #[arg(long, conflicts_with = "format")]
    pub topics_only: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicRmArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Topic, without wildcards
    #[arg(
        allow_negative_numbers = true,
        required_unless_present = "matching",
        // Also --dry-run: clap does not demand an option that --dry-run requires if another argument excludes it.
        conflicts_with_all = ["matching", "dry_run"]
    )]
    pub topic: Option<String>,

    /// Remove all messages whose topics match this filter
    #[arg(long, value_name = "FILTER")]
    pub matching: Option<String>,

    /// Only print the number of messages that would be removed
    #[arg(long, requires = "matching")]
    pub dry_run: bool,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
With a feed (`topic create --feed CHANGES`) each change is printed once, removals too. If the feed has
lost changes, because more were made than it keeps, a note says so, and the messages that have changed
since are read from the table. Without a feed the command searches the table for newer messages at
each interval: of several messages of a topic within one interval it prints only the last, and it does
not see removals.

With --format json each line has the field `event`: `message`, `removed` or `lost`.

Examples:
  tidalite topic watch plant.tdl 'hall/#'
  tidalite topic watch plant.tdl 'hall/+/door' --skip-retained --count 1
  tidalite topic watch plant.tdl '#' --for 1h --format json")]
pub(crate) struct TopicWatchArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Filters; a topic that several match is printed once
    #[arg(value_name = "FILTER", required = true)]
    pub filters: Vec<String>,

    /// Let wildcards at the beginning of a filter also match topics that begin with $
    #[arg(long)]
    pub include_dollar: bool,

    /// Print only changes from now on, not the messages that are there
    #[arg(long)]
    pub skip_retained: bool,

    /// End when this time has passed
    #[arg(long = "for", value_name = "WIDTH", value_parser = width_nanos)]
    pub duration: Option<i64>,

    /// End after this number of messages and removals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,

    /// Interval between reads of the database
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos, default_value = "500ms")]
    pub every: i64,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
A line is a JSON object with the fields `topic` and `payload` (or `payload_hex`), and if they are set
`time`, `expires`, `qos`, `publisher`, `text`, `content_type`, `response_topic`, `correlation` (or
`correlation_hex`) and `properties`, a list of objects with `name` and `value`. A message without
`time` is published now. The fields `sequence` and `id` are ignored, because the table gives these
numbers. Commits every 32 MiB; if a line is wrong, the note tells how many lines are stored.

Examples:
  tidalite topic import plant.tdl hall.jsonl
  tidalite topic export old.tdl | tidalite topic import plant.tdl")]
pub(crate) struct TopicImportArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// JSON lines, also compressed with gzip or zstd; standard input if not given, or if -
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    pub input: Option<PathBuf>,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicExportArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    /// Filters; if not given #, which matches all topics that do not begin with $
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,

    /// Let wildcards at the beginning of a filter also match topics that begin with $
    #[arg(long)]
    pub include_dollar: bool,

    /// File to write, compressed if its name ends in .gz or .zst; standard output if not given, or if -
    #[arg(long, short = 'o', value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Overwrite an existing file
    #[arg(long)]
    pub replace: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TopicStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Table of topics; a line for each if not given
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct TopicPurgeArgs {
    #[command(flatten)]
    pub place: TopicPlace,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

impl TopicCommand {
    /// Durability of the commits of the command, if it writes.
    pub(crate) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Create(args) => Some(&args.durability),
            Self::Set(args) => Some(&args.durability),
            Self::Rm(args) => Some(&args.durability),
            Self::Import(args) => Some(&args.durability),
            Self::Purge(args) => Some(&args.durability),
            Self::Get(_) | Self::Match(_) | Self::Watch(_) | Self::Export(_) | Self::Stat(_) => {
                None
            }
        }
    }

    /// Properties of a file that the command creates, if it can create one.
    pub(crate) fn created(&self) -> Option<&CreatedArg> {
        match self {
            Self::Create(args) => Some(&args.created),
            Self::Set(args) => Some(&args.created),
            Self::Import(args) => Some(&args.created),
            _ => None,
        }
    }
}
