//! `find` and `tags`.

use super::common::{AnyPatternArg, FormatArg, VersionArgs};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints only names, which an index answers; `tidalite series` also prints counts, spans and sizes.

Examples:
  tidalite find plant.tdl 'wind.speed{farm=\"hb\",turbine=~\"R8.*\"}'
  tidalite find plant.tdl '{site!=\"\"}' --count")]
pub(crate) struct FindArgs {
    #[command(flatten)]
    pub version: VersionArgs,

    #[command(flatten)]
    pub which: AnyPatternArg,

    /// Print only the number of series, which may be 0
    #[arg(long)]
    pub count: bool,

    /// Maximum number of series to print
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "count")]
    pub limit: Option<usize>,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without KEY, lists the keys of all tags, with the number of series that have each and of their
values. --set, --drop and --rename change the names of the series that --series selects: all of them,
or none if two series would get the same name.

Examples:
  tidalite tags plant.tdl
  tidalite tags plant.tdl turbine --prefix R80 -n 10
  tidalite tags plant.tdl --metrics
  tidalite tags plant.tdl --set site=north --series 'wind*{farm=\"hb\"}'
  tidalite tags plant.tdl --rename farm=plant
  tidalite tags plant.tdl --drop run --series 'test.*'")]
pub(crate) struct TagsArgs {
    #[command(flatten)]
    pub version: VersionArgs,

    /// List the values of this tag
    #[arg(value_name = "KEY", conflicts_with = "metrics")]
    pub key: Option<String>,

    /// List the metrics
    #[arg(long)]
    pub metrics: bool,

    /// List only keys, values or metrics that begin with this text
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub prefix: String,

    /// Maximum number of rows to print
    #[arg(long, short = 'n', value_name = "N")]
    pub limit: Option<usize>,

    /// Give the selected series this value of a tag, in place of the value that they have
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, group = "change", conflicts_with_all = CHANGES)]
    pub set: Option<(String, String)>,

    /// Drop a tag of the selected series
    #[arg(long, value_name = "KEY", group = "change", conflicts_with_all = CHANGES)]
    pub drop: Option<String>,

    /// Give a tag of the selected series another key
    #[arg(long, value_name = "OLD=NEW", value_parser = pair, group = "change", conflicts_with_all = CHANGES)]
    pub rename: Option<(String, String)>,

    /// Series that --set, --drop or --rename changes; all if not given
    #[arg(long, value_name = "SERIES", requires = "change")]
    pub series: Option<String>,

    #[command(flatten)]
    pub format: FormatArg,
}

/// Options that have no meaning for a change.
const CHANGES: [&str; 5] = ["key", "metrics", "prefix", "limit", "pin"];

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("two texts with = between them, such as site=north".to_owned()),
    }
}
