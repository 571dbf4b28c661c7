//! `completions` and `man`: prints texts that are generated from the definition of the command line.

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::exit::{Failure, Outcome};
use clap::CommandFactory;
use std::io::Write;

/// Runs the command `tidalite completions`.
pub(crate) fn completions(args: &CompletionsArgs, out: &mut dyn Write) -> Outcome {
    // The script is written to memory first, because the generator panics if it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tidalite", &mut script);
    out.write_all(&script)?;
    Ok(out.flush()?)
}

/// Runs the command `tidalite man`.
pub(crate) fn man(args: &ManArgs, out: &mut dyn Write) -> Outcome {
    let Some(folder) = &args.dir else {
        clap_mangen::Man::new(Cli::command()).render(&mut *out)?;
        return Ok(out.flush()?);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Failure::file("cannot write manual pages to", folder, &error))
}
