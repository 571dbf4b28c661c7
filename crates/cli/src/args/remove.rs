//! `remove` and `rename`.

use super::common::{FileArg, FormatArg, PatternArg, RangeArgs};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Without --from, --to and --last, whole series are removed with their names and annotations; with
one of these options, the points of that range are removed and the series stay. The removed data is
listed. Later readers no longer see it; pins still do. Its space is reused for new data.

Examples:
  tidalite remove plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02 --dry-run
  tidalite remove plant.tdl 'wind_speed{turbine=\"R80711\"}' --from 2014-06-01 --to 2014-06-02
  tidalite remove plant.tdl 'test.*' --dry-run
  tidalite remove plant.tdl 'test.*'")]
pub(crate) struct RemoveArgs {
    #[command(flatten)]
    pub file: FileArg,

    #[command(flatten)]
    pub which: PatternArg,

    #[command(flatten)]
    pub range: RangeArgs,

    /// Only list the points and series that would be deleted
    #[arg(long)]
    pub dry_run: bool,

    #[command(flatten)]
    pub format: FormatArg,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
The points do not move, and annotations, pins and retention are not affected, except that policies
select by the new name.

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
