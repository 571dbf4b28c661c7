//! Commands about the program itself.

use clap::{Args, ValueHint};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct QuickstartArgs {
    /// Folder for quickstart.tdl
    #[arg(long, default_value = ".", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,

    /// Number of points for the speed measurement
    #[arg(long, default_value_t = 10_000_000, value_name = "POINTS",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000_000))]
    pub points: u64,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite completions bash > ~/.local/share/bash-completion/completions/tidalite
  tidalite completions zsh > ~/.zfunc/_tidalite
  tidalite completions fish > ~/.config/fish/completions/tidalite.fish")]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  tidalite man | man -l -
  tidalite man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write one page for the program and one for each command into this folder
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}
