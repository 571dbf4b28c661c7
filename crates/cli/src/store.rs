//! Options of the command line that apply to every command's database file: the places of its lock file and of its
//! second file, and the durability of commits.

use crate::args::{
    Cli, Command, CreatedArg, DurabilityArg, DurabilityName, HashCommand, KvCommand,
};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tidalite::{Database, Durability, Options, WriteTxn};

#[derive(Debug)]
struct Said {
    exclusive: bool,
    lock_path: Option<PathBuf>,
    accept_lost_commits: bool,
    /// Path of the second file, and the minimum length in bytes of values that are stored there.
    large: Option<(PathBuf, u64)>,
    durability: Durability,
    /// Page size in bytes for a file that is created.
    page_size: Option<usize>,
}

/// The options of the command line; set once, before any command runs.
static SAID: OnceLock<Said> = OnceLock::new();

/// Stores the options of the command line for all files that are opened later.
pub(crate) fn listen(cli: &Cli) {
    let durability =
        match said_of(&cli.command).map_or(DurabilityName::Durable, |said| said.durability) {
            DurabilityName::Durable => Durability::Durable,
            DurabilityName::OneFlush => Durability::OneFlush,
            DurabilityName::Lazy => Durability::Lazy,
        };
    let lock_path = cli.lock_path.clone();
    // The options are not set yet, because this function is called only once.
    let _ = SAID.set(Said {
        exclusive: cli.exclusive,
        lock_path,
        accept_lost_commits: cli.accept_lost_commits,
        large: cli.large.clone().map(|large| (large, cli.large_from)),
        durability,
        page_size: created_by(&cli.command).and_then(|said| said.page_size),
    });
}

fn said_of(command: &Command) -> Option<&DurabilityArg> {
    match command {
        Command::Import(args) => Some(&args.durability),
        Command::Put(args) => Some(&args.durability),
        Command::Load(args) => Some(&args.durability),
        Command::Kv(args) => match &args.command {
            KvCommand::Put { durability, .. }
            | KvCommand::Del { durability, .. }
            | KvCommand::Clear { durability, .. }
            | KvCommand::Create { durability, .. }
            | KvCommand::Drop { durability, .. }
            | KvCommand::Compact { durability, .. }
            | KvCommand::Rename { durability, .. } => Some(durability),
            _ => None,
        },
        Command::Hash(args) => match &args.command {
            HashCommand::Set(args) => Some(&args.durability),
            HashCommand::Del(args) => Some(&args.durability),
            HashCommand::Rebuild(args) => Some(&args.durability),
            _ => None,
        },
        Command::Topic(args) => args.command.durability(),
        Command::Queue(args) => args.command.durability(),
        Command::Object(args) => args.command.durability(),
        Command::Container(args) => args.command.durability(),
        _ => None,
    }
}

fn created_by(command: &Command) -> Option<&CreatedArg> {
    match command {
        Command::Import(args) => Some(&args.created),
        Command::Load(args) => Some(&args.created),
        Command::Kv(args) => match &args.command {
            KvCommand::Put { created, .. } | KvCommand::Create { created, .. } => Some(created),
            _ => None,
        },
        Command::Hash(args) => match &args.command {
            HashCommand::Set(args) => Some(&args.created),
            _ => None,
        },
        Command::Topic(args) => args.command.created(),
        Command::Queue(args) => args.command.created(),
        Command::Object(args) => args.command.created(),
        Command::Container(args) => args.command.created(),
        _ => None,
    }
}

/// Options for opening the file that the command names. (They are not for a second file, such as a copy, whose lock
/// file has the default path.)
pub(crate) fn options() -> Options {
    let said = |flag: fn(&Said) -> bool| SAID.get().is_some_and(flag);
    let mut options = Options::new()
        .accept_lost_commits(said(|said| said.accept_lost_commits))
        .exclusive(said(|said| said.exclusive));
    if let Some(lock_path) = SAID.get().and_then(|said| said.lock_path.as_ref()) {
        options = options.lock_path(lock_path);
    }
    if let Some((large, from)) = SAID.get().and_then(|said| said.large.as_ref()) {
        options = options.large_values(large, *from);
    }
    if let Some(bytes) = SAID.get().and_then(|said| said.page_size) {
        options = options.page_size(bytes);
    }
    options
}

/// Path of the second file, if the user has given it on the command line.
pub(crate) fn second_file() -> Option<&'static Path> {
    let said = SAID.get()?.large.as_ref();
    said.map(|(path, _)| path.as_path())
}

fn durability() -> Durability {
    SAID.get()
        .map_or(Durability::Durable, |said| said.durability)
}

/// Commits with the durability that the user has selected.
pub(crate) fn commit(txn: WriteTxn) -> tidalite::Result<()> {
    txn.commit_with(durability()).map(drop)
}

/// Closes the database at the end of a command that has written to it. The redo log is empty afterwards: the data file
/// alone is the whole database. With --durability lazy nothing is synced, as the user has requested.
pub(crate) fn close(database: Database) -> tidalite::Result<()> {
    match durability() {
        Durability::Durable | Durability::OneFlush => database.close(),
        _ => {
            database.close_without_sync();
            Ok(())
        }
    }
}
