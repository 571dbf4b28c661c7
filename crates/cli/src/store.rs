//! What the command line says about the file that a command works on, whatever the command: where its lock file is, and
//! how its commits become durable.

use crate::args::{Cli, Command, DurabilityArg, DurabilityName, KvCommand};
use std::path::PathBuf;
use std::sync::OnceLock;
use tidalite::{Durability, Options, WriteTxn};

#[derive(Debug)]
struct Said {
    lock_path: Option<PathBuf>,
    durability: Durability,
}

/// Said once, before any command runs.
static SAID: OnceLock<Said> = OnceLock::new();

/// Keeps what was said for all that is opened from now on.
pub(crate) fn listen(cli: &Cli) {
    let durability =
        match said_of(&cli.command).map_or(DurabilityName::Durable, |said| said.durability) {
            DurabilityName::Durable => Durability::Durable,
            DurabilityName::OneFlush => Durability::OneFlush,
            DurabilityName::Lazy => Durability::Lazy,
        };
    let lock_path = cli.lock_path.clone();
    // The program has one command line.
    let _ = SAID.set(Said {
        lock_path,
        durability,
    });
}

fn said_of(command: &Command) -> Option<&DurabilityArg> {
    match command {
        Command::Import(args) => Some(&args.durability),
        Command::Load(args) => Some(&args.durability),
        Command::Kv(args) => match &args.command {
            KvCommand::Put { durability, .. } | KvCommand::Del { durability, .. } => {
                Some(durability)
            }
            _ => None,
        },
        _ => None,
    }
}

/// Options for the file that the command names. (Not for a second one, such as a copy: that has its lock file beside it.)
pub(crate) fn options() -> Options {
    match SAID.get().and_then(|said| said.lock_path.as_ref()) {
        Some(lock_path) => Options::new().lock_path(lock_path),
        None => Options::new(),
    }
}

/// Commits as was said.
pub(crate) fn commit(txn: WriteTxn) -> tidalite::Result<()> {
    let said = SAID
        .get()
        .map_or(Durability::Durable, |said| said.durability);
    txn.commit_with(said).map(drop)
}
