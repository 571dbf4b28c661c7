//! Arguments that the commands for containers share: the table, the container, the range of times, the source of names
//! and times.

use super::common::{FileArg, ZoneArg};
use super::messages::{When, instant};
use crate::time::TimeFormat;
use clap::Args;

/// A table of containers of a file.
#[derive(Debug, Args)]
pub(crate) struct ContainerPlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Table of containers
    #[arg(long, value_name = "TABLE", default_value = "containers")]
    pub table: String,
}

/// A container of a table.
#[derive(Debug, Args)]
pub(crate) struct ContainerNamed {
    #[command(flatten)]
    pub place: ContainerPlace,

    /// Container
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    pub name: String,
}

/// Selects messages by their times, and the zone in which times are parsed and shown.
#[derive(Debug, Args)]
pub(crate) struct MessageRangeArgs {
    /// Start time, inclusive: 2014-06-01, '2014-06-01 12:30', an RFC 3339 time, a number since 1970, or relative to the
    /// present: now, today, -1d, now-6h, today+8h
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,

    /// End time, exclusive
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,

    #[command(flatten)]
    pub zone: ZoneArg,
}

/// The time of a message, and the container of one whose name is in a field.
#[derive(Debug, Args)]
pub(crate) struct MessageFieldArgs {
    /// Field with the time, such as ts or meta.sent; if not given, `time` or else `timestamp`
    #[arg(long, value_name = "FIELD")]
    pub time: Option<String>,

    /// Format of times: iso; s, ms, us, ns, min, h or d since 1970; excel for its day numbers; or a pattern such as
    /// '%d.%m.%Y %H:%M'. Detected from the first messages if not given
    #[arg(long, value_name = "FORMAT", value_parser = TimeFormat::named)]
    pub time_format: Option<TimeFormat>,

    #[command(flatten)]
    pub zone: ZoneArg,

    /// Time of all messages, in place of a field: now, -5m, or a time such as 2030-06-01T12:00:00Z
    #[arg(
        long,
        value_name = "TIME",
        value_parser = instant,
        allow_hyphen_values = true,
        conflicts_with_all = ["time", "time_format"]
    )]
    pub at: Option<When>,

    /// Field with the name of the container, in place of NAME: messages for many containers
    #[arg(long, value_name = "FIELD")]
    pub container_field: Option<String>,

    /// Store the fields of the time and of the container with the message, too; if not given they are taken out
    #[arg(long)]
    pub keep_fields: bool,
}
