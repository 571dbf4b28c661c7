//! Statements and commands, one after the other.

use super::result::Printer;
use crate::catalog::{self, Names};
use crate::command::{self, Command};
use crate::failure::{Failure, describe};
use crate::interrupt::Interrupt;
use crate::lexer::{Kind, tokens};
use crate::progress::{APPEARS_AFTER, Progress};
use crate::settings::{Explain, Settings};
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

/// Maximum number of files that `.read` each other.
const READ_DEPTH_MAX: usize = 16;

/// Whether a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It goes on.
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
    /// The file of `.output`.
    file: Option<BufWriter<File>>,
    /// The file of the database, which results must not overwrite.
    database: Option<PathBuf>,
    /// Colour errors.
    colors: bool,
    /// A person types the statements, so signals do not end the program between them.
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
            database: None,
            colors: false,
            interactive: false,
        }
    }

    /// Lets Ctrl-C cancel statements.
    #[must_use]
    pub fn interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Refuses to write results to this file, the database.
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

    /// Runs the statements and dot commands of an input, each as soon as it is complete. `name` names the input in
    /// errors.
    ///
    /// # Errors
    /// As [`run_text`](Self::run_text).
    pub fn run_input(&mut self, input: &mut dyn BufRead, name: &str) -> Result<Flow, Failure> {
        self.run(input, Some(name), 0)
    }

    /// Runs an input that is read by `depth` other inputs.
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

    /// Runs a statement, and prints its plan if the user wants to see it.
    fn statement(&mut self, statement: &Statement, name: Option<&str>) -> Result<Flow, Failure> {
        let text = &statement.text;
        let explain = match is_query(text) {
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
            Err(failure) => Err(self.fail_file(failure)),
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
        let interrupt = self.interrupt.clone();
        let printer = Printer {
            settings: &self.settings,
            streams: &mut self.streams,
            file: self.file.as_mut(),
        };
        let schema = rows.schema();
        printer.print(&schema, rows, progress, start, || interrupt.elsewhere())
    }

    /// Prints the result of a command.
    fn print(&mut self, batch: tidalite_sql::Result<RecordBatch>) -> Result<Flow, Failure> {
        let start = Instant::now();
        let printed = batch.map_err(Failure::Sql).and_then(|batch| {
            let printer = Printer {
                settings: &self.settings,
                streams: &mut self.streams,
                file: self.file.as_mut(),
            };
            let (schema, batches) = (batch.schema(), [Ok(batch)].into_iter());
            printer.print(&schema, batches, None, start, || {})
        });
        match printed {
            Ok(()) => Ok(Flow::Continue),
            Err(Failure::Sql(error)) => {
                let text = describe(&error, "", None);
                Err(self.fail(&text, Failure::Sql(error)))
            }
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
                let tables = catalog::tables(&self.connection, pattern.as_deref());
                return self.print(tables);
            }
            Command::Schema(table) => {
                return match catalog::columns(&self.connection, table.as_deref()) {
                    Ok(Ok(columns)) => self.print(Ok(columns)),
                    Ok(Err(text)) => Err(self.fail(&text, Failure::Command(text.clone()))),
                    Err(error) => self.print(Err(error)),
                };
            }
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

    /// Sets the file of results; `None` prints them.
    fn output(&mut self, path: Option<&Path>) -> Result<(), Failure> {
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

    /// Prints the error of a file that the user has named.
    fn fail_path(&mut self, doing: &str, path: &Path, error: io::Error) -> Failure {
        let text = format!("cannot {doing} {}: {error}", path.display());
        self.fail(&text, Failure::File(error))
    }

    /// Prints an error of the file of `.output`.
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
        // Standard error may be closed; the failure is returned as well.
        let _ = writeln!(self.streams.err, "{label} {text}");
        let _ = self.streams.err.flush();
        failure
    }

    /// No statement is running.
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
    pub(crate) fn names(&self) -> Names {
        Names::read(&self.connection)
    }
}

/// True if two paths lead to one file.
fn is_same(a: &Path, b: &Path) -> bool {
    let absolute = |path: &Path| path.canonicalize().ok();
    absolute(a).is_some_and(|a| Some(a) == absolute(b))
}

/// True for a statement that reads only, which EXPLAIN can be put in front of.
fn is_query(sql: &str) -> bool {
    let first = tokens(sql).find(|token| !matches!(token.kind, Kind::Space | Kind::Comment));
    first.is_some_and(|token| {
        let word = sql[token.range].to_ascii_uppercase();
        ["SELECT", "WITH", "VALUES", "TABLE", "FROM", "("].contains(&word.as_str())
    })
}
