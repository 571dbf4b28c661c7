//! `quickstart`: a demonstration for the first minute with the program.
//!
//! ```text
//! mod        the steps, in order
//! files      removes the database of an earlier run
//! questions  five questions, each with the command that answers it
//! speed      ten million generated points
//! ```

mod files;
mod questions;
mod speed;

use crate::args::{Cli, QuickstartArgs};
use crate::database::{failure, open};
use crate::exit::{Exit, Failure, Outcome};
use crate::import::field::Nulls;
use crate::import::layout::Wishes;
use crate::import::load::{Aim, Columns, Loader};
use crate::import::open::{Format, Rows};
use crate::import::readers::Batches;
use crate::output::{bytes_text, grouped, plural, rounded_text};
use crate::terminal::Terminal;
use clap::Parser;
use files::remove_database;
use flate2::read::GzDecoder;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tidalite::{Database, OpenMode, Options};

/// The sample data; `sample/README.md` describes their origin.
const SAMPLE: &[u8] = include_bytes!("../../sample/nyc-weather-2013.csv.gz");

/// Path of the file with the sample data in a clone of the repository.
const SAMPLE_PATH: &str = "crates/cli/sample/nyc-weather-2013.csv.gz";

/// Prefix of the name of every series of the sample.
const PREFIX: &str = "weather.";

const FILE_NAME: &str = "quickstart.tdl";

/// Function that runs a parsed command line, because the demonstration runs commands of the program.
pub(crate) type Dispatch = fn(&Cli, &mut Terminal<'_>) -> Outcome;

/// Runs the command `tidalite quickstart`.
pub(crate) fn run(
    args: &QuickstartArgs,
    dispatch: Dispatch,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let tour = Tour {
        dispatch,
        file: file_in(&args.dir),
        program: program(),
    };
    tour.store(terminal)?;
    for (number, question) in questions::all().iter().enumerate() {
        let heading = format!("{}. {}", number + 1, question.text);
        writeln!(terminal.out, "\n{}", terminal.palette.bold(heading))?;
        tour.command(&question.words(&tour.file), terminal)?;
    }
    writeln!(terminal.out, "\n{}", terminal.palette.bold("And a picture"))?;
    tour.command(&questions::picture(&tour.file), terminal)?;
    speed::run(args, terminal)?;
    tour.farewell(terminal)
}

struct Tour {
    dispatch: Dispatch,
    file: PathBuf,
    program: String,
}

/// Path of the database in this folder, without `./` in front, because it is printed in commands.
fn file_in(folder: &Path) -> PathBuf {
    if folder == Path::new(".") {
        PathBuf::from(FILE_NAME)
    } else {
        folder.join(FILE_NAME)
    }
}

/// The command that starts this program: through cargo in a clone of the repository, otherwise as the user has started
/// it.
fn program() -> String {
    if Path::new("Cargo.toml").exists() && Path::new(SAMPLE_PATH).exists() {
        return "cargo run --release -q --".to_owned();
    }
    std::env::args()
        .next()
        .map_or_else(|| "tidalite".to_owned(), |path| quoted(&path))
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl Tour {
    /// Prints a command in a form that the user can paste, and runs the command.
    fn command(&self, words: &[String], terminal: &mut Terminal<'_>) -> Outcome {
        self.show(words, terminal)?;
        let cli = Cli::try_parse_from(
            ["tidalite"]
                .into_iter()
                .chain(words.iter().map(String::as_str)),
        )
        .map_err(|error| Failure::new(Exit::Failure, error))?;
        (self.dispatch)(&cli, terminal)
    }

    fn show(&self, words: &[String], terminal: &mut Terminal<'_>) -> Outcome {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let line = format!("{} {}", self.program, words.join(" "));
        writeln!(terminal.out, "$ {}", terminal.palette.command(line))?;
        Ok(())
    }

    /// Stores the sample in a new file and prints how much space it takes there.
    fn store(&self, terminal: &mut Terminal<'_>) -> Outcome {
        let palette = terminal.palette;
        writeln!(
            terminal.out,
            "{}\nHourly weather of the three airports of New York in 2013 (EWR, JFK, LGA), real and with its gaps.\n\
             Every measurement becomes a series, one for each airport. By hand:",
            palette.bold("A year of weather"),
        )?;
        let tag = ["--tag".to_owned(), "origin".to_owned()];
        let prefix = ["--prefix".to_owned(), PREFIX.to_owned()];
        let words: Vec<String> = [
            "import".to_owned(),
            self.file.display().to_string(),
            SAMPLE_PATH.to_owned(),
        ]
        .into_iter()
        .chain(tag)
        .chain(prefix)
        .collect();
        self.show(&words, terminal)?;
        let began = Instant::now();
        let database = fresh(&self.file)?;
        let mut csv_bytes = 0;
        let tally = self.load(database, &mut csv_bytes)?;
        let seconds = began.elapsed().as_secs_f64();
        writeln!(
            terminal.out,
            "{}, {} in {} series in {} s, stored in {}:",
            plural(tally.rows, "row", "rows"),
            plural(tally.points, "point", "points"),
            grouped(tally.series),
            rounded_text((seconds * 1000.0).round() / 1000.0),
            palette.bold(self.file.display()),
        )?;
        self.sizes(csv_bytes, tally.points, terminal)
    }

    fn load(&self, database: Database, csv_bytes: &mut u64) -> Outcome<crate::import::load::Tally> {
        let mut text = Vec::new();
        GzDecoder::new(SAMPLE)
            .read_to_end(&mut text)
            .map_err(|error| Failure::new(Exit::Failure, format!("the bundled sample: {error}")))?;
        *csv_bytes = text.len() as u64;
        let wishes = Wishes {
            header: true,
            tags: vec!["origin".to_owned()],
            ..Wishes::default()
        };
        let rows = Rows::open(
            std::io::Cursor::new(text),
            "the bundled sample",
            &Format::default(),
            &wishes,
            Nulls::default(),
        )?;
        let columns = Columns::of(&rows, Vec::new());
        let mut loader = Loader::new(
            database,
            &self.file,
            Aim {
                prefix: PREFIX,
                ..Aim::default()
            },
        );
        let mut batches = Batches::start(rows);
        while let Some(batch) = batches.next()? {
            if let Some((_, bad)) = batch.bad.first() {
                return Err(Failure::new(Exit::Failure, &bad.why));
            }
            loader.meet(&batch, &columns)?;
            for row in 0..batch.times.len() {
                let stored = loader.row(&batch, row, &columns)?;
                stored.map_err(|why| Failure::new(Exit::Failure, why))?;
            }
            batches.recycle(batch);
        }
        loader.commit()?;
        let tally = loader.tally();
        loader.close()?;
        Ok(tally)
    }

    fn sizes(&self, csv_bytes: u64, points: u64, terminal: &mut Terminal<'_>) -> Outcome {
        let stat = open(&self.file)?
            .stat()
            .map_err(|error| failure(&self.file, &error))?;
        let used = stat
            .pages_total
            .saturating_sub(stat.pages_free + stat.pages_pending);
        let in_use = used * stat.page_size as u64;
        let zipped = SAMPLE.len() as u64;
        #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
        let a_point = |bytes: u64| format!("{:.2}", bytes as f64 / points.max(1) as f64);
        let mut line = |what: &str, bytes: u64| {
            writeln!(
                terminal.out,
                "  {what:<28} {:>9}  {:>5} bytes a point",
                bytes_text(bytes),
                a_point(bytes)
            )
        };
        line("the CSV file", csv_bytes)?;
        line("the CSV file, gzipped", zipped)?;
        line(&format!("{FILE_NAME}, in use"), in_use)?;
        line("  with its room to grow", stat.file_bytes)?;
        Ok(())
    }

    fn farewell(&self, terminal: &mut Terminal<'_>) -> Outcome {
        let palette = terminal.palette;
        writeln!(
            terminal.out,
            "\n{}\nThe weather stays in {}. To try next:",
            palette.bold("What now"),
            palette.bold(self.file.display())
        )?;
        for words in questions::to_try(&self.file) {
            self.show(&words, terminal)?;
        }
        writeln!(
            terminal.out,
            "Every command explains itself, with examples, when given --help."
        )?;
        Ok(terminal.out.flush()?)
    }
}

/// Creates a new database at this path. A database of an earlier quickstart is replaced; any other file is left alone.
fn fresh(path: &Path) -> Outcome<Database> {
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
    {
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::file("cannot create", folder, &error))?;
    }
    if path.exists() {
        refuse_what_is_not_ours(path)?;
        remove_database(path)?;
    }
    let options = Options::new().mode(OpenMode::Create);
    options.open(path).map_err(|error| failure(path, &error))
}

fn refuse_what_is_not_ours(path: &Path) -> Outcome {
    let fail = |error: tidalite::Error| failure(path, &error);
    let txn = open(path)?.begin_read().map_err(fail)?;
    let ours = |label: &str| label.starts_with(PREFIX);
    let foreign = txn
        .list("")
        .map_err(fail)?
        .into_iter()
        .find(|info| !ours(&info.label()));
    let table = txn.tables().map_err(fail)?.into_iter().next();
    match foreign.map(|info| info.label()).or(table) {
        None => Ok(()),
        Some(name) => Err(Failure::new(
            Exit::Failure,
            format!(
                "{} holds `{name}`, which is not from the quickstart",
                path.display()
            ),
        )
        .hint("choose another folder: tidalite quickstart --dir FOLDER")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_printed_command_parses() {
        let file = Path::new("quickstart.tdl");
        let commands = questions::all()
            .iter()
            .map(|question| question.words(file))
            .chain([questions::picture(file)])
            .chain(questions::to_try(file));
        for words in commands {
            let line = ["tidalite".to_owned()].into_iter().chain(words);
            Cli::try_parse_from(line).unwrap();
        }
        let mut kinds: Vec<String> = questions::all()
            .iter()
            .map(|question| question.words(file)[0].clone())
            .collect();
        kinds.dedup();
        assert_eq!(kinds.len(), 5, "each question shows another command");
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("quickstart.tdl"), "quickstart.tdl");
        assert_eq!(quoted(r#"a{b="c"}"#), r#"'a{b="c"}'"#);
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(file_in(Path::new(".")), Path::new("quickstart.tdl"));
    }
}
