//! `annotate`.

use super::MergeName;
use super::common::{AnyPatternArg, FileArg, FormatArg};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_long_help = "\
Annotations are texts about a series that are not part of its name. Copies and backups include them.

Examples:
  tidalite annotate plant.tdl
  tidalite annotate plant.tdl wind_speed --set unit=m/s --set 'installed by=Kim'
  tidalite annotate plant.tdl 'raw.*' --remove unit
  tidalite annotate plant.tdl 'raw.*' --merge keep-first")]
pub(crate) struct AnnotateArgs {
    #[command(flatten)]
    pub file: FileArg,

    #[command(flatten)]
    pub which: AnyPatternArg,

    /// Set an annotation of each of these series, replacing one with the same key. Repeatable
    #[arg(long, value_name = "KEY=TEXT", value_parser = pair)]
    pub set: Vec<(String, String)>,

    /// Remove the annotation with this key. Repeatable
    #[arg(long, value_name = "KEY")]
    pub remove: Vec<String>,

    /// Policy of these series, from now on, for a point at a time that already has one
    #[arg(long, value_enum, value_name = "POLICY")]
    pub merge: Option<MergeName>,

    #[command(flatten)]
    pub format: FormatArg,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, text)) if !key.is_empty() => Ok((key.to_owned(), text.to_owned())),
        _ => Err("a key and its text, such as unit=m/s".to_owned()),
    }
}
