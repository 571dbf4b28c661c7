//! Runs statements and commands one after the other.

use super::import;
use super::result::Printer;
use crate::catalog::{self, Names};
use crate::command::{self, Command};
use crate::failure::{Failure, describe};
use crate::interrupt::Interrupt;
use crate::lexer::{Kind, tokens};
use crate::progress::{APPEARS_AFTER, Progress};
use crate::settings::{Explain, Mode, Settings};
use crate::splitter::{Piece, Splitter, Statement};
use crate::streams::Streams;
use indicatif::ProgressDrawTarget;
use nu_ansi_term::Color;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tidalite_sql::Connection;
use tidalite_sql::arrow::array::RecordBatch;

/// Maximum nesting depth of files that `.read` other files.
const READ_DEPTH_MAX: usize = 16;

/// Whether a session continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The session continues.
    Continue,
    /// The user has ended it with `.quit`.
    Quit,
}

/// A session on a database.
pub struct Shell<'a> {
    connection: Connection,
    settings: Settings,
    streams: Streams<'a>,
    interrupt: Interrupt,
    /// The file selected by `.output`.
    file: Option<BufWriter<File>>,
    /// The mode of the last result in the current destination, if it already has one: a file of Parquet or Arrow can
    /// contain only a single result.
    written: Option<Mode>,
    /// The mode of the last result on standard output, while results go to a file.
    printed: Option<Mode>,
    /// The file of the database, which results must not overwrite.
    database: Option<PathBuf>,
    /// Whether errors are coloured.
    colors: bool,
    /// Whether a user types the statements. If so, signals do not end the program between statements.
    pub(crate) interactive: bool,
}

impl<'a> Shell<'a> {
    /// Creates a session.
    #[must_use]
    pub fn new(connection: Connection, settings: Settings, streams: Streams<'a>) -> Self {
        Self {
            connection,
            settings,
            streams,
            interrupt: Interrupt::default(),
            file: None,
            written: None,
            printed: None,
            database: None,
            colors: false,
            interactive: false,
        }
    }

    /// Makes Ctrl-C cancel statements.
    #[must_use]
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Prevents results from being written to this file, the database.
    #[must_use]
    pub fn database(mut self, path: &Path) -> Self {
        self.database = Some(path.to_owned());
        self
    }

    /// Colours errors, and the input of the editor.
    #[must_use]
    pub fn colors(mut self, colors: bool) -> Self {
        self.colors = colors;
        self
    }

    /// Runs the statements and dot commands of a text.
    ///
    /// # Errors
    /// The first failure. Later statements run only with [`Settings::keep_going`].
    pub fn run_text(&mut self, text: &str) -> Result<Flow, Failure> {
        self.run(&mut text.as_bytes(), None, 0)
    }

    /// Rolls back an open transaction, and reports this on standard error. Call it at the end of a session.
    pub fn end(&mut self) {
        if self.connection.is_in_transaction() {
            // Dropping a connection rolls back, too.
            let _ = self.connection.execute("ROLLBACK");
            let _ = writeln!(
                self.streams.err,
                "note: the session ended without COMMIT; its open transaction was rolled back"
            );
            let _ = self.streams.err.flush();
        }
    }

    /// Runs the statements and dot commands of an input, each as soon as it is complete. `name` is the name of the
    /// input in errors.
    ///
    /// # Errors
    /// As for [`run_text`](Self::run_text).
    pub fn run_input(&mut self, input: &mut dyn BufRead, name: &str) -> Result<Flow, Failure> {
        self.run(input, Some(name), 0)
    }

    /// Runs an input at nesting depth `depth`: the number of inputs that are reading it.
    fn run(
        &mut self,
        input: &mut dyn BufRead,
        name: Option<&str>,
        depth: usize,
    ) -> Result<Flow, Failure> {
        let mut splitter = Splitter::new();
        let mut first: Option<Failure> = None;
        let mut line = String::new();
        loop {
            line.clear();
            let bytes = input.read_line(&mut line);
            let bytes = bytes.map_err(|error| {
                let text = format!("cannot read {}: {error}", name.unwrap_or("the input"));
                self.fail(&text, Failure::File(error))
            })?;
            splitter.push(&line);
            while let Some(piece) = splitter.next(bytes == 0) {
                let done = match piece {
                    Piece::Statement(statement) => self.statement(&statement, name),
                    Piece::Command(line) => self.command(&line, depth),
                };
                match done {
                    Ok(Flow::Continue) => {}
                    Ok(Flow::Quit) => return first.map_or(Ok(Flow::Quit), Err),
                    Err(failure @ Failure::Output(_)) => return Err(failure),
                    Err(failure) if !self.settings.keep_going => return Err(failure),
                    Err(failure) => drop(first.get_or_insert(failure)),
                }
            }
            if bytes == 0 {
                return first.map_or(Ok(Flow::Continue), Err);
            }
        }
    }

    /// Runs a statement. Also prints its plan if the user has requested plans.
    fn statement(&mut self, statement: &Statement, name: Option<&str>) -> Result<Flow, Failure> {
        let text = &statement.text;
        // A file of Parquet or Arrow cannot contain a plan.
        let explain = match is_query(text) && self.settings.mode.file_format().is_none() {
            true => self.settings.explain,
            false => Explain::Off,
        };
        let done = match explain {
            Explain::Off => self.query(text),
            Explain::On => {
                let plan = self.query(&format!("EXPLAIN {text}"));
                plan.and_then(|()| self.query(text))
            }
            Explain::Full => self.query(&format!("EXPLAIN ANALYZE {text}")),
        };
        self.at_rest();
        match done {
            Ok(()) => Ok(Flow::Continue),
            Err(Failure::Sql(error)) => {
                let place = name.map(|name| (name, statement.line));
                let text = describe(&error, text, place);
                Err(self.fail(&text, Failure::Sql(error)))
            }
            Err(Failure::Command(text)) => Err(self.fail(&text, Failure::Command(text.clone()))),
            Err(failure) => Err(self.fail_file(failure)),
        }
    }

    /// Refuses a result that its destination cannot take. A file of Parquet or Arrow takes only one result, and no
    /// text.
    fn expect_room(&mut self) -> Result<(), Failure> {
        let is_binary = |mode: Mode| mode.file_format().is_some();
        let mode = self.settings.mode;
        if is_binary(mode) && self.file.is_none() && (self.streams.screen)().is_some() {
            return Err(Failure::Command(format!(
                "the mode {mode} needs a file: `.output FILE`, or redirect the output"
            )));
        }
        let is_full = |last: Mode| is_binary(last) || is_binary(mode);
        if let Some(last) = self.written.filter(|last| is_full(*last)) {
            let mode = if is_binary(last) { last } else { mode };
            return Err(Failure::Command(format!(
                "a file in the mode {mode} has one result: name another with `.output FILE`"
            )));
        }
        self.written = Some(mode);
        Ok(())
    }

    /// Returns an error if the mode writes files that cannot contain text.
    fn expect_text(&self) -> Result<(), Failure> {
        let mode = self.settings.mode;
        match mode.file_format() {
            None => Ok(()),
            Some(_) => Err(Failure::Command(format!(
                "the mode {mode} cannot show statements: choose another with `.mode`"
            ))),
        }
    }

    /// Runs one statement of SQL and prints its result.
    fn query(&mut self, sql: &str) -> Result<(), Failure> {
        let start = Instant::now();
        self.interrupt.running(self.connection.cancel_handle());
        let target = ProgressDrawTarget::stderr;
        let progress = self.streams.progress;
        let progress = progress.then(|| Progress::start(APPEARS_AFTER, target()));
        let rows = self.connection.query(sql).map_err(Failure::Sql)?;
        if !rows.schema().fields().is_empty() {
            self.expect_room()?;
        }
        let interrupt = self.interrupt.clone();
        let printer = Printer {
            settings: &self.settings,
            streams: &mut self.streams,
            file: self.file.as_mut(),
        };
        let (schema, affected) = (rows.schema(), rows.affected_rows());
        printer.print((&schema, affected), rows, progress, start, || {
            interrupt.elsewhere();
        })
    }

    /// Prints the result of a command.
    fn print(&mut self, batch: tidalite_sql::Result<RecordBatch>) -> Result<Flow, Failure> {
        let start = Instant::now();
        let printed = batch.map_err(Failure::Sql).and_then(|batch| {
            self.expect_room()?;
            let printer = Printer {
                settings: &self.settings,
                streams: &mut self.streams,
                file: self.file.as_mut(),
            };
            let (schema, batches) = (batch.schema(), [Ok(batch)].into_iter());
            printer.print((&schema, None), batches, None, start, || {})
        });
        match printed {
            Ok(()) => Ok(Flow::Continue),
            Err(Failure::Sql(error)) => {
                let text = describe(&error, "", None);
                Err(self.fail(&text, Failure::Sql(error)))
            }
            Err(Failure::Command(text)) => Err(self.fail(&text, Failure::Command(text.clone()))),
            Err(failure) => Err(self.fail_file(failure)),
        }
    }

    /// Runs a dot command.
    fn command(&mut self, line: &str, depth: usize) -> Result<Flow, Failure> {
        let command = match Command::parse(line) {
            Ok(command) => command,
            Err(text) => return Err(self.fail(&text, Failure::Command(text.clone()))),
        };
        match command {
            Command::Help => self.say(&command::help())?,
            Command::Tables(pattern) => {
                let tables = catalog::tables(&mut self.connection, pattern.as_deref());
                return self.print(tables);
            }
            Command::Schema(table) => return self.schema(table.as_deref()),
            Command::Import(file, table) => return self.import(&file, &table),
            Command::Mode(Some(mode)) => self.settings.mode = mode,
            Command::Mode(None) => self.say(&format!("{}\n", self.settings.mode))?,
            Command::Output(path) => self.output(path.as_deref())?,
            Command::Timer(timer) => self.settings.timer = timer,
            Command::Read(path) => return self.read(&path, depth),
            Command::Explain(explain) => self.settings.explain = explain,
            Command::NullValue(text) => self.settings.null_text = Some(text),
            Command::Width(width) => self.settings.width = width,
            Command::Headers(headers) => self.settings.headers = headers,
            Command::Quit => return Ok(Flow::Quit),
        }
        Ok(Flow::Continue)
    }

    /// Prints the statements that create tables again, and the columns of all other tables.
    fn schema(&mut self, table: Option<&str>) -> Result<Flow, Failure> {
        let found = match catalog::schema(&mut self.connection, table) {
            Ok(Ok(found)) => found,
            Ok(Err(text)) => return Err(self.fail(&text, Failure::Command(text.clone()))),
            Err(error) => return self.print(Err(error)),
        };
        if !found.statements.is_empty() {
            if let Err(failure) = self.expect_text() {
                return Err(self.fail_file(failure));
            }
            let printed = match &mut self.file {
                Some(file) => file
                    .write_all(found.statements.as_bytes())
                    .and_then(|()| file.flush())
                    .map_err(Failure::File),
                None => self.say(&found.statements),
            };
            printed.map_err(|failure| self.fail_file(failure))?;
        }
        match found.columns {
            Some(columns) => self.print(Ok(columns)),
            None => Ok(Flow::Continue),
        }
    }

    /// Copies a file into a table, which is created with the columns of the file if it does not exist.
    fn import(&mut self, file: &str, table: &str) -> Result<Flow, Failure> {
        let done = import::statement(&mut self.connection, file, table);
        let done = done.and_then(|sql| self.query(&sql));
        self.at_rest();
        match done {
            Ok(()) => Ok(Flow::Continue),
            Err(Failure::Sql(error)) => {
                let text = describe(&error, "", None);
                Err(self.fail(&text, Failure::Sql(error)))
            }
            Err(Failure::Command(text)) => Err(self.fail(&text, Failure::Command(text.clone()))),
            Err(failure) => Err(self.fail_file(failure)),
        }
    }

    /// Sets the file for results; `None` prints them.
    fn output(&mut self, path: Option<&Path>) -> Result<(), Failure> {
        // Standard output continues in the state in which it was.
        if self.file.take().is_none() {
            self.printed = self.written;
        }
        self.written = if path.is_none() { self.printed } else { None };
        self.file = match path {
            None => None,
            Some(path)
                if self
                    .database
                    .as_deref()
                    .is_some_and(|own| is_same(own, path)) =>
            {
                let text = format!("{} is the database itself", path.display());
                return Err(self.fail(&text, Failure::Command(text.clone())));
            }
            Some(path) => match File::create(path) {
                Ok(file) => Some(BufWriter::new(file)),
                Err(error) => return Err(self.fail_path("write", path, error)),
            },
        };
        Ok(())
    }

    /// Runs the statements and commands of a file.
    fn read(&mut self, path: &Path, depth: usize) -> Result<Flow, Failure> {
        if depth == READ_DEPTH_MAX {
            let text = format!("{READ_DEPTH_MAX} files read each other: {}", path.display());
            return Err(self.fail(&text, Failure::Command(text.clone())));
        }
        match File::open(path) {
            Ok(file) => {
                let name = path.display().to_string();
                self.run(&mut BufReader::new(file), Some(&name), depth + 1)
            }
            Err(error) => Err(self.fail_path("read", path, error)),
        }
    }

    /// Writes a text to the stream of results.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Failure> {
        let out = &mut self.streams.out;
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        written.map_err(Failure::Output)
    }

    /// Prints the error for a file that the user has named.
    fn fail_path(&mut self, doing: &str, path: &Path, error: io::Error) -> Failure {
        let text = format!("cannot {doing} {}: {error}", path.display());
        self.fail(&text, Failure::File(error))
    }

    /// Prints an error for the file selected by `.output`.
    fn fail_file(&mut self, failure: Failure) -> Failure {
        match failure {
            Failure::File(error) => {
                let text = format!("cannot write the output file: {error}");
                self.fail(&text, Failure::File(error))
            }
            failure => failure,
        }
    }

    /// Prints an error and returns its failure.
    fn fail(&mut self, text: &str, failure: Failure) -> Failure {
        let label = match self.colors {
            true => Color::Red.bold().paint("error:").to_string(),
            false => "error:".to_owned(),
        };
        // Standard error may be closed, but the failure is also returned.
        let _ = writeln!(self.streams.err, "{label} {text}");
        let _ = self.streams.err.flush();
        failure
    }

    /// Called while no statement is running.
    pub(crate) fn at_rest(&self) {
        match self.interactive {
            true => self.interrupt.elsewhere(),
            false => self.interrupt.idle(),
        }
    }

    /// True if errors and input are coloured.
    pub(crate) fn has_colors(&self) -> bool {
        self.colors
    }

    /// The names that the editor completes.
    pub(crate) fn names(&mut self) -> Names {
        Names::read(&mut self.connection)
    }

    /// True if a transaction is open, which the prompt shows.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.connection.is_in_transaction()
    }
}

/// True if two paths refer to the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    let absolute = |path: &Path| path.canonicalize().ok();
    absolute(a).is_some_and(|a| Some(a) == absolute(b))
}

/// True for a statement that only reads and can be prefixed with EXPLAIN.
fn is_query(sql: &str) -> bool {
    let first = tokens(sql).find(|token| !matches!(token.kind, Kind::Space | Kind::Comment));
    first.is_some_and(|token| {
        let word = sql[token.range].to_ascii_uppercase();
        ["SELECT", "WITH", "VALUES", "TABLE", "FROM", "("].contains(&word.as_str())
    })
}
