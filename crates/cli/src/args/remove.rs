//! `remove` and `rename`.

use super::common::{FileArg, FormatArg, PatternArg, RangeArgs};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without --from, --to and --last whole series go, names and annotations too; with one of them the points
of that range, and the series stay. What goes is listed. It is gone for readers that come later; a pin
that has it keeps it, and the space is used again for what is stored next.

Examples:
  tidalite remove plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02 --dry-run
  tidalite remove plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02
  tidalite remove plant.tdl 'test.*' -n
  tidalite remove plant.tdl 'test.*'")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub file: FileArg,

    #[command(flatten)]
    pub which: PatternArg,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Only list the points and series that would be deleted
    #[arg(long, short = 'n')]
    pub dry_run: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The points stay where they are, and annotations, pins and retention go on as before; a policy that
selects by name goes by the new one.

Examples:
  tidalite rename plant.tdl wnd_speed wind_speed
  tidalite rename plant.tdl 'power{turbine=\"A\"}' 'power{turbine=\"R80711\"}'")]
pub(crate) struct RenameArgs {
    #[command(flatten)]
    pub file: FileArg,

    /// Full name of a series with its tags; for a series without a name its GUID
    #[arg(value_name = "OLD")]
    pub from: String,

    /// New name, which no other series may have
    #[arg(value_name = "NEW")]
    pub to: String,
}
