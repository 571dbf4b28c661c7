//! Commands that read messages of containers.

use super::common::{FormatArg, ReportFormatArg};
use super::container_place::{ContainerNamed, ContainerPlace, MessageRangeArgs};
use super::figure_list::{FunctionList, list_parser};
use super::messages::{When, instant};
use crate::time::width_nanos;
use clap::Args;
use tidalite::containers::Expression;

/// Parses an expression.
fn expression(text: &str) -> Result<Expression, String> {
    Expression::parse(text).map_err(|error| error.to_string())
}

/// A filter of messages.
#[derive(Debug, Args)]
pub(crate) struct MessageFilterArg {
    /// Only messages for which this expression is true, such as 'speed > 5 && state in ("on", "idle")'
    #[arg(
        long,
        value_name = "EXPR",
        value_parser = expression,
        allow_hyphen_values = true
    )]
    pub filter: Option<Expression>,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints JSON lines: the time of the message as `time`, with several containers also the name as
`container`, and then its fields. If a message has a field `time` or `container` of its own, the name of
the added one begins with _.

With --limit a note on standard error has the token with which the next command continues. Each message is
printed exactly once, even among messages of the same time and whatever is stored in between.

Examples:
  tidalite container get plant.tdl pump-3 --from 2030-06-01 --to 2030-06-02
  tidalite container get plant.tdl pump-3 --reverse --limit 1
  tidalite container get plant.tdl pump-3 --fields level,position.lat --filter 'level < 3 && exists(position)'
  tidalite container get plant.tdl pump-3 pump-4 pump-5 --from -1h
  tidalite container get plant.tdl pump-3 --filter 'model ~ \"P*\"' --count")]
pub(crate) struct ContainerGetArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    /// Containers; messages of several are merged by their times
    #[arg(value_name = "NAME", required = true, allow_negative_numbers = true)]
    pub names: Vec<String>,

    #[command(flatten)]
    pub range: MessageRangeArgs,

    #[command(flatten)]
    pub filter: MessageFilterArg,

    /// Only these fields, in this order; position.lat is the field lat in the object position
    #[arg(long, value_name = "FIELD[,FIELD]...", value_delimiter = ',')]
    pub fields: Vec<String>,

    /// Maximum number of messages; if there are more, a note has the token with which to continue
    #[arg(long, short = 'n', value_name = "MESSAGES", default_value_t = u64::MAX, hide_default_value = true)]
    pub limit: u64,

    /// The latest messages first
    #[arg(long)]
    pub reverse: bool,

    /// Continue after an earlier command for the same container, whose note has the token
    #[arg(long, value_name = "TOKEN")]
    pub after: Option<String>,

    /// Print only the number of messages
    #[arg(long, conflicts_with_all = ["limit", "after", "fields", "reverse"])]
    pub count: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerLatestArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    /// Fields; all if not given
    #[arg(value_name = "FIELD", allow_negative_numbers = true)]
    pub fields: Vec<String>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
pub(crate) struct ContainerFieldsArgs {
    #[command(flatten)]
    pub place: ContainerPlace,

    #[command(flatten)]
    pub format: ReportFormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Functions: count, min, max, sum, mean, first, last and increase, each with its field, as in max(speed).
first and last take values of any kind; min, max, sum, mean and increase take numbers. Integers are
exact. `count` without a field counts messages. For other functions of numbers, and over long times, use
`tidalite window` on the series of the container: it reads sums of blocks, not messages.

Examples:
  tidalite container aggregate plant.tdl truck-1 --step 1h --fn 'max(speed),increase(km)'
  tidalite container aggregate plant.tdl truck-1 --fn count --by state --filter 'speed > 0'")]
pub(crate) struct ContainerAggregateArgs {
    #[command(flatten)]
    pub of: ContainerNamed,

    /// Length of the steps, which begin at its multiples since 1970; one step for all messages if not given
    #[arg(long, value_name = "WIDTH", value_parser = width_nanos)]
    pub step: Option<i64>,

    /// Functions to compute, separated by commas
    #[arg(
        long = "fn",
        value_parser = list_parser(),
        value_name = "FUNCTIONS",
        default_value = "count"
    )]
    pub functions: Vec<FunctionList>,

    /// Field: a line for each of its values
    #[arg(long, value_name = "FIELD")]
    pub by: Option<String>,

    #[command(flatten)]
    pub filter: MessageFilterArg,

    #[command(flatten)]
    pub range: MessageRangeArgs,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the value of the expression for each message as JSON. A filter finds the messages for which it is
true; null is not true.

  operators   ?: || && == != < <= > >= in ~ (texts: * and ? stand for characters) !~ + - * / % !
  values      1 2.5 \"text\" 'text' true false null, time and received in nanoseconds since 1970
  fields      speed, position.lat, `any name`, $\"any name\", $time for a field of this name
  functions   exists(x) if_null(x, y) and others: the error for a wrong name lists them all

Examples:
  tidalite container filter-test 'speed > 5 && state == \"on\"' '{\"speed\": 7, \"state\": \"on\"}'
  tidalite container filter-test 'if_null(level, 0) * 1000' - < messages.jsonl")]
pub(crate) struct ContainerFilterTestArgs {
    /// Expression
    #[arg(value_name = "EXPR", value_parser = expression, allow_hyphen_values = true)]
    pub expression: Expression,

    /// Message as a JSON object; - reads one from each line of standard input
    #[arg(value_name = "JSON")]
    pub message: String,

    /// Time of the messages, for expressions with `time`
    #[arg(long, value_name = "TIME", value_parser = instant, allow_hyphen_values = true)]
    pub at: Option<When>,

    #[command(flatten)]
    pub format: ReportFormatArg,
}
