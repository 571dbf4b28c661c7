//! Opens the database, runs the shell, and converts its failures to exit codes.

use crate::args::{SqlArgs, SqlMode};
use crate::database::{failure, open, open_or_create, open_to_query};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::printable;
use crate::store;
use crate::terminal::Terminal;
use std::io::{self, IsTerminal};
use std::path::Path;
use tidalite_shell::sql::{Connection, Error, ErrorKind};
use tidalite_shell::{
    Flow, History, Interrupt, Mode, Screen, Settings, Shell, Streams, interact,
    pager_of_environment,
};

/// Runs the command `tidalite sql`.
pub(super) fn run(args: &SqlArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file;
    let database = match args.readonly {
        true => open(path)?,
        false if args.create && !path.exists() => open_or_create(path)?,
        false => open_to_query(path)?,
    };
    let connection = Connection::new(&database).map_err(|error| failed(path, &error))?;
    let mut stderr = io::stderr();
    let (has_screen, colors) = (screen().is_some(), terminal.messages.is_on());
    let streams = Streams {
        out: &mut *terminal.out,
        err: &mut stderr,
        screen,
        pager: pager_of_environment().filter(|_| has_screen),
        progress: io::stderr().is_terminal(),
    };
    let mut shell = Shell::new(connection, settings(args), streams)
        .database(path)
        .colors(colors)
        .interrupt(interrupt());
    let done = converse(args, &mut shell);
    shell.end();
    drop(shell);
    let closed = store::close(database).map_err(|error| failure(path, &error));
    done.and(closed)
}

/// Runs the statements from the command line or from standard input; on a terminal, starts the editor.
fn converse(args: &SqlArgs, shell: &mut Shell<'_>) -> Outcome {
    let failed = |error| failure_of(&args.file, error);
    if !args.commands.is_empty() {
        let mut first = None;
        for text in &args.commands {
            match shell.run_text(text) {
                Ok(Flow::Continue) => {}
                Ok(Flow::Quit) => break,
                Err(error @ tidalite_shell::Failure::Output(_)) => return Err(failed(error)),
                Err(error) if !args.keep_going => return Err(failed(error)),
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        return first.map_or(Ok(()), |error| Err(failed(error)));
    }
    // The editor draws on standard error, so both streams must be terminals.
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        let greeting = greeting(&args.file);
        return interact(shell, &greeting, &History::of_environment()).map_err(failed);
    }
    let ran = shell.run_input(&mut io::stdin().lock(), "standard input");
    ran.map(drop).map_err(failed)
}

fn greeting(path: &Path) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let path = printable(&path.display().to_string());
    format!(
        "Tidalite {version}, {path}\nA statement ends with a semicolon. `.help` lists commands, Ctrl-D ends the shell.\n"
    )
}

fn settings(args: &SqlArgs) -> Settings {
    let mut settings = Settings::default();
    settings.mode = match args.mode {
        SqlMode::Box => Mode::Box,
        SqlMode::Csv => Mode::Csv,
        SqlMode::Json => Mode::Json,
        SqlMode::Jsonl => Mode::JsonLines,
        SqlMode::Markdown => Mode::Markdown,
        SqlMode::Line => Mode::Line,
        SqlMode::Parquet => Mode::Parquet,
        SqlMode::Arrow => Mode::Arrow,
    };
    settings.headers = !args.no_header;
    settings.keep_going = args.keep_going;
    settings
}

/// The size of the terminal that shows standard output; `None` if it is a file or a pipe.
fn screen() -> Option<Screen> {
    let (width, height) = terminal_size::terminal_size_of(io::stdout())?;
    Some(Screen {
        width: width.0,
        height: height.0,
    })
}

/// Makes Ctrl-C cancel statements, unless the parent of this process has made it ignore the signal.
fn interrupt() -> Interrupt {
    #[cfg(target_os = "linux")]
    if crate::commands::unfinished::is_ignored(signal_hook::consts::SIGINT) {
        return Interrupt::default();
    }
    Interrupt::listen()
}

/// The failure for an error that the shell has already printed: the exit code and the suggested next step.
fn failure_of(path: &Path, error: tidalite_shell::Failure) -> Failure {
    use tidalite_shell::Failure as Shell;
    match error {
        Shell::Output(error) => Failure::from(error),
        Shell::Sql(error) => Failure {
            message: String::new(),
            ..failed(path, &error)
        },
        Shell::Command(_) => Failure::usage(""),
        Shell::File(error) => match error.kind() {
            io::ErrorKind::NotFound => Failure::not_found("").hint("check the path of the file"),
            io::ErrorKind::InvalidData => Failure::bad_input("").hint("statements are UTF-8 text"),
            _ => Failure::new(Exit::Failure, ""),
        },
        _ => Failure::new(Exit::Failure, ""),
    }
}

/// Converts an error of a statement.
fn failed(path: &Path, error: &Error) -> Failure {
    let shown = printable(&path.display().to_string());
    match error.kind() {
        ErrorKind::Syntax => Failure::usage(error)
            .hint("check the statement; `.help` in the shell lists the dot commands"),
        ErrorKind::Plan => Failure::not_found(error).hint(format!(
            "`tidalite sql {shown} -c .tables` lists the tables, and .schema TABLE the columns"
        )),
        ErrorKind::Execution => Failure::bad_input(error)
            .hint("TRY_CAST(value AS type) returns NULL for a value that cannot be converted"),
        ErrorKind::Memory => Failure::new(Exit::Failure, error)
            .hint("select fewer rows or columns, or a shorter range of time"),
        ErrorKind::Transaction => Failure::usage(error)
            .hint("BEGIN opens a transaction that may write; COMMIT ends it, ROLLBACK discards its changes"),
        ErrorKind::File => Failure::bad_input(error).hint(
            "check the path; the end of its name or (FORMAT csv), jsonl, parquet or arrow tells the format",
        ),
        ErrorKind::Database => match error.database() {
            Some(error) => failed_in_database(path, error),
            None => Failure::new(Exit::Failure, error),
        },
        _ => Failure::new(Exit::Failure, error),
    }
}

/// Converts an error of the database that ended a statement.
fn failed_in_database(path: &Path, error: &tidalite::Error) -> Failure {
    use tidalite::ErrorKind as Kind;
    let shown = printable(&path.display().to_string());
    match error.kind() {
        // The database is already open for reading, so access to its file was not denied.
        Kind::PermissionDenied if error.path().is_none() => Failure::new(Exit::Failure, error)
            .hint(format!(
                "{shown} is open for reading only; without --readonly, and if its permissions allow it, statements may write"
            )),
        Kind::UniqueViolation => Failure::bad_input(error).hint(
            "INSERT ... ON CONFLICT DO NOTHING keeps the existing row, ON CONFLICT (column) DO UPDATE changes it",
        ),
        Kind::NotNullViolation => Failure::bad_input(error)
            .hint(format!("`tidalite sql {shown} -c .schema` shows the columns that need a value")),
        _ => failure(path, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_a_quiet_end() {
        let error = io::Error::from(io::ErrorKind::BrokenPipe);
        let failure = failure_of(Path::new("a.tdl"), tidalite_shell::Failure::Output(error));
        assert_eq!(failure.exit, Exit::Ok);
    }
}
