//! Commands that change messages of containers: put, hand-over, del, undelete, thin, maintain.

use super::common::{CreatedArg, DurabilityArg, FileArg, ReportFormatArg};
use super::container_place::{ContainerNamed, ContainerPlace, MessageFieldArgs, MessageRangeArgs};
use super::container_read::MessageFilterArg;
use super::messages::{When, instant};
use crate::time::{duration, width_nanos};
use clap::{ArgGroup, Args};
use tidalite::containers::{ThinningFigure, ThinningRule};
use tidalite::queue::DEFAULT_GROUP;

#[derive(Debug, Args)]
#[command(after_long_help = "\
A message is a JSON object with any fields. The time is taken from a field, in the formats that
`tidalite import` knows; a typed message without such a field has the present time. Containers are
created by their first message, unless the options of the table forbid it.

Commits every 16,384 messages or 16 MiB. If a line is wrong, nothing of its batch is stored, and the
error has the number of the line. If messages are rejected, the others are stored, and the exit code is 5.

Examples:
  tidalite container put plant.tdl pump-3 '{\"level\": 3.5, \"state\": \"on\"}'
  tidalite container put plant.tdl pump-3 log.jsonl.gz --time ts --time-format ms
  tidalite container put plant.tdl --container-field device devices.jsonl --key id
  sensors | tidalite container put plant.tdl --container-field device --at now")]
pub(crate) struct ContainerPutArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    /// Container; left out with --container-field
    #[arg(
        value_name = "NAME",
        allow_negative_numbers = true,
        required_unless_present = "container_field"
    )]
    pub name: Option<String>,

    /// Messages: typed objects, which begin with {, and files of JSON lines, also compressed with gzip or zstd;
    /// standard input if not given, or if -
    #[arg(value_name = "INPUT")]
    pub inputs: Vec<String>,

    #[command(flatten)]
    pub fields: MessageFieldArgs,

    /// Field with a text or an integer that is unique for each message of a container: a second message with the same
    /// value stores nothing, within the window of the table
    #[arg(long, value_name = "FIELD")]
    pub key: Option<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub created: CreatedArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Each message of the queue is stored and acknowledged in one commit, so it reaches its container exactly
once. A message whose payload is not a JSON object, or that has no time or container, becomes a dead
letter of the group; one that its container rejects is tried again by a later command. Without --time a
message that has neither `time` nor `timestamp` gets the time at which it was pushed.

Examples:
  tidalite container hand-over plant.tdl inbox --container-field device
  tidalite container hand-over plant.tdl inbox pump-3 --group archive --time ts --time-format s")]
pub(crate) struct ContainerHandOverArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,

    /// Container; left out with --container-field
    #[arg(
        value_name = "NAME",
        allow_negative_numbers = true,
        required_unless_present = "container_field",
        conflicts_with = "container_field"
    )]
    pub name: Option<String>,

    /// Table of containers
    #[arg(long, value_name = "TABLE", default_value = "containers")]
    pub table: String,

    /// Group of consumers of the queue
    #[arg(long, value_name = "GROUP", default_value = DEFAULT_GROUP)]
    pub group: String,

    /// Maximum number of messages; all that are ready if not given
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    #[command(flatten)]
    pub fields: MessageFieldArgs,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("which").args(["from", "to", "filter", "all"]).multiple(true).required(true))]
pub(crate) struct ContainerDelArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    #[command(flatten)]
    pub range: MessageRangeArgs,

    #[command(flatten)]
    pub filter: MessageFilterArg,

    /// All messages; the container and the latest values stay
    #[arg(long, conflicts_with_all = ["from", "to", "filter"])]
    pub all: bool,

    /// Only print the number of messages that would be deleted
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerUndeleteArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    #[command(flatten)]
    pub range: MessageRangeArgs,

    /// Only messages that were deleted at or after this time, such as -10m
    #[arg(long, value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    pub deleted_since: Option<When>,

    /// Print the deletions that can be restored, and restore nothing
    #[arg(long, conflicts_with_all = ["from", "to", "deleted_since"])]
    pub list: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

/// Parses AGE:STEP.
fn rule(text: &str) -> Result<ThinningRule, String> {
    let (age, step) = text
        .split_once(':')
        .ok_or("write AGE:STEP, such as 3d:10m")?;
    Ok(ThinningRule {
        age: duration(width_nanos(age)?),
        step: duration(width_nanos(step)?),
    })
}

/// The names of the figures of thinning.
pub(crate) const THINNING_FIGURES: [(&str, ThinningFigure); 7] = [
    ("first", ThinningFigure::First),
    ("last", ThinningFigure::Last),
    ("min", ThinningFigure::Min),
    ("max", ThinningFigure::Max),
    ("mean", ThinningFigure::Mean),
    ("sum", ThinningFigure::Sum),
    ("drop", ThinningFigure::Drop),
];

/// Parses FIELD=FIGURE.
fn thinned(text: &str) -> Result<(String, ThinningFigure), String> {
    let known = "write FIELD=FIGURE, such as level=mean or *=last; the figures are first, last, min, max, mean, sum and drop";
    let (field, figure) = text.rsplit_once('=').ok_or(known)?;
    let found = THINNING_FIGURES.iter().find(|(name, _)| *name == figure);
    match found {
        Some((_, figure)) if !field.is_empty() => Ok((field.to_owned(), *figure)),
        _ => Err(known.to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without options the command prints the rules. A rule AGE:STEP keeps one message for each step of time
among the messages that are older than AGE; ages and steps ascend from rule to rule. The remaining message
has the figures of --fn, computed from all messages of the step. * stands for all other fields, which keep
their last values if * is not given.
`tidalite container maintain` does the work.

Examples:
  tidalite container thin plant.tdl pump-3 --rule 3d:10m --rule 10d:1h --fn 'level=mean,*=last'
  tidalite container thin plant.tdl pump-3
  tidalite container thin plant.tdl pump-3 --remove")]
pub(crate) struct ContainerThinArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    /// Rule, the youngest age first; repeat for several. They replace the rules that the container had
    #[arg(long = "rule", value_name = "AGE:STEP", value_parser = rule)]
    pub rules: Vec<ThinningRule>,

    /// Figures of fields: first, last, min, max, mean, sum, or drop to leave the field out
    #[arg(
        long = "fn",
        value_name = "FIELD=FIGURE[,FIELD=FIGURE]...",
        value_parser = thinned,
        value_delimiter = ',',
        requires = "rules"
    )]
    pub figures: Vec<(String, ThinningFigure)>,

    /// Remove the rules
    #[arg(long, conflicts_with_all = ["rules", "figures"])]
    pub remove: bool,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerUpkeepArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    #[command(flatten)]
    pub format: ReportFormatArg,

    #[command(flatten)]
    pub durability: DurabilityArg,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn rules_and_figures_are_read() {
        let parsed = rule("3d:10m").unwrap();
        assert_eq!(
            (parsed.age, parsed.step),
            (Duration::from_secs(259_200), Duration::from_secs(600))
        );
        for text in ["", "3d", "3d:", ":10m", "3d:10m:1h", "0d:1m", "1mo:1h"] {
            assert!(rule(text).is_err(), "{text}");
        }
        assert_eq!(
            thinned("a=b=mean"),
            Ok(("a=b".to_owned(), ThinningFigure::Mean))
        );
        for text in ["", "level", "=mean", "level=median"] {
            assert!(thinned(text).is_err(), "{text}");
        }
    }
}
