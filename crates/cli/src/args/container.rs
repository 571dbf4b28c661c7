//! Commands for containers of messages: `container_options`, `container_read` and `container_changes` have their
//! arguments.

use super::common::{CreatedArg, DurabilityArg, FileArg, FormatArg, ReportFormatArg};
use super::container_changes::{
    ContainerDelArgs, ContainerHandOverArgs, ContainerPutArgs, ContainerThinArgs,
    ContainerUndeleteArgs, ContainerUpkeepArgs,
};
use super::container_options::{ContainerCreateArgs, ContainerOptionsArgs};
use super::container_place::{ContainerNamed, ContainerPlace};
use super::container_read::{
    ContainerAggregateArgs, ContainerFieldsArgs, ContainerFilterTestArgs, ContainerGetArgs,
    ContainerLatestArgs,
};
use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_long_help = "\
A container has the messages of one source, such as a device, in the order of their times. A message is a
JSON object with any fields; integers of 64 bits are exact. The latest value of each field of a container
is kept beside the messages.

The numbers of messages are also in a series of the container, with a column for each field, so that
`tidalite window`, `plot`, `scan` and the other commands for series work on them: the series of the
container pump-3 is 'containers{container=\"pump-3\"}', and position.lat is the column of the field lat in
the object position. Change messages with these commands only, not the series.

Examples:
  tidalite container put plant.tdl pump-3 '{\"level\": 3.5, \"state\": \"on\"}'
  tidalite container put plant.tdl --container-field device devices.jsonl
  tidalite container get plant.tdl pump-3 --from -1d --filter 'level < 3' --fields level,state
  tidalite container latest plant.tdl pump-3
  tidalite container aggregate plant.tdl pump-3 --step 1h --fn 'mean(level),count' --by state
  tidalite window plant.tdl 'containers{container=\"pump-3\"}' --by 1h --fn 'max(level)'
  tidalite container ls plant.tdl pump-
  tidalite container del plant.tdl pump-3 --to 2030-01-01 --dry-run

  tidalite container options plant.tdl --defaults --ttl 90d --keep-deleted 7d
  tidalite container create plant.tdl pump-4 --on-duplicate merge --messages-max 1000000
  tidalite container thin plant.tdl pump-3 --rule 3d:10m --rule 10d:1h --fn 'level=mean,*=last'
  tidalite container maintain plant.tdl
  tidalite container hand-over plant.tdl inbox --container-field device

The table is called `containers` unless --table gives another name; a file can have many. Times are
printed in UTC unless --tz names a zone. Expiry follows the clock of the database, which does not jump
with the clock of the computer.")]
pub(crate) struct ContainerArgs {
    #[command(subcommand)]
    pub command: ContainerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContainerCommand {
    /// Create a container; the table is created if it does not exist
    Create(ContainerCreateArgs),
    /// Show or change the options of a container, or of the table
    Options(ContainerOptionsArgs),
    /// List containers
    Ls(ContainerLsArgs),
    /// List tables of containers, or show the totals of a table or a container
    Stat(ContainerStatArgs),
    /// Rename a container and its series
    Mv(ContainerMvArgs),
    /// Drop a container with its messages and its series
    Rm(ContainerRmArgs),
    /// Restore a dropped container, if its options keep deleted messages
    Restore(ContainerRestoreArgs),
    /// List dropped containers that can be restored
    Dropped(ContainerLsArgs),
    /// Store messages from JSON
    Put(Box<ContainerPutArgs>),
    /// Print messages as JSON lines
    Get(Box<ContainerGetArgs>),
    /// Print the latest value of each field of a container
    Latest(ContainerLatestArgs),
    /// List the names of all fields that messages of the table have had
    Fields(ContainerFieldsArgs),
    /// Aggregate fields of messages, for every step of time and each value of a field
    Aggregate(Box<ContainerAggregateArgs>),
    /// Delete messages of a range of times, or those that match a filter
    Del(Box<ContainerDelArgs>),
    /// Restore deleted messages, if the options of the container keep them
    Undelete(ContainerUndeleteArgs),
    /// Show, set or remove the rules by which older messages become fewer
    Thin(ContainerThinArgs),
    /// Remove expired messages and do all other work that is due, and thin older messages
    Maintain(ContainerUpkeepArgs),
    /// Make the series of the containers anew from the messages, after `check` has found a difference
    Rebuild(ContainerUpkeepArgs),
    /// Move messages of a queue to containers
    HandOver(Box<ContainerHandOverArgs>),
    /// Evaluate an expression on a message
    FilterTest(ContainerFilterTestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ContainerLsArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    /// Only containers whose names begin with this text
    #[arg(
        value_name = "PREFIX",
        default_value = "",
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    pub prefix: String,

    /// Maximum number of containers
    #[arg(long, short = 'n', value_name = "CONTAINERS", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerStatArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Container; the whole table if not given
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    pub name: Option<String>,

    /// Table of containers; if neither it nor a container is given, a line for each. `containers` for a container
    #[arg(long, value_name = "TABLE")]
    pub table: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerMvArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    /// New name, which no other container may have
    #[arg(value_name = "NEW_NAME", allow_negative_numbers = true)]
    pub new_name: String,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerRmArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerRestoreArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    /// Give it this name, if another container has its own
    #[arg(long = "as", value_name = "NEW_NAME")]
    pub new_name: Option<String>,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

impl ContainerCommand {
    /// Durability of the commits of the command, if it writes.
    pub(crate) fn durability(&self) -> Option<&DurabilityArg> {
        match self {
            Self::Create(args) => Some(&args.durability),
            Self::Options(args) => Some(&args.durability),
            Self::Mv(args) => Some(&args.durability),
            Self::Rm(args) => Some(&args.durability),
            Self::Restore(args) => Some(&args.durability),
            Self::Put(args) => Some(&args.durability),
            Self::Del(args) => Some(&args.durability),
            Self::Undelete(args) => Some(&args.durability),
            Self::Thin(args) => Some(&args.durability),
            Self::Maintain(args) => Some(&args.durability),
            Self::Rebuild(args) => Some(&args.durability),
            Self::HandOver(args) => Some(&args.durability),
            Self::Ls(_)
            | Self::Stat(_)
            | Self::Dropped(_)
            | Self::Get(_)
            | Self::Latest(_)
            | Self::Fields(_)
            | Self::Aggregate(_)
            | Self::FilterTest(_) => None,
        }
    }

    /// Properties of a file that the command creates, if it can create one.
    pub(crate) fn created(&self) -> Option<&CreatedArg> {
        match self {
            Self::Create(args) => Some(&args.created),
            Self::Options(args) => Some(&args.created),
            Self::Put(args) => Some(&args.created),
            _ => None,
        }
    }
}
