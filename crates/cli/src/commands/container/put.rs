//! `container put`: stores typed messages, and messages from files of JSON lines.

use super::lines::{Batch, Lines};
use super::outcomes::Outcomes;
use super::place::{check_name, containers_mut};
use super::source::{Source, check_fields, name_and_inputs};
use crate::args::ContainerPutArgs;
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::import::source;
use crate::output::plural;
use crate::terminal::Terminal;
use std::io::BufReader;
use std::path::Path;
use tidalite::containers::Append;
use tidalite::{Database, Timestamp};

/// Whether an argument of the command line is a message instead of a file name.
fn is_typed(input: &str) -> bool {
    input.trim_start().starts_with('{')
}

/// Runs the command `tidalite container put`.
pub(super) fn run(args: &ContainerPutArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    check_fields(&args.fields, args.key.as_deref())?;
    let (name, mut inputs) = name_and_inputs(&args.fields, args.name.as_deref(), &args.inputs);
    if let Some(name) = name {
        check_name(&place, name)?;
    }
    if inputs.is_empty() {
        inputs.push("-");
    }
    // A missing file is reported before anything is stored.
    for file in inputs
        .iter()
        .filter(|input| !is_typed(input) && **input != "-")
    {
        let file = Path::new(file);
        std::fs::metadata(file).map_err(|error| {
            let failure = Failure::file("cannot read", file, &error);
            match error.kind() {
                std::io::ErrorKind::NotFound => {
                    failure.hint("check the path; a message on the command line begins with {")
                }
                _ => failure,
            }
        })?;
    }
    let (db, _) = place.open_or_create()?;
    let now = place.begin(&db)?.clock().now();
    let mut source = Source::new(&args.fields, place.table, name, now);
    source.key = args.key.as_deref();
    let mut putter = Putter {
        place,
        db: &db,
        outcomes: Outcomes::default(),
    };
    putter
        .inputs(&inputs, &mut source, now)
        .map_err(|failure| {
            let done = match putter.outcomes.total() {
                0 => "nothing was stored".to_owned(),
                done => format!("the messages before it, {done} in number, are stored"),
            };
            let hint = match &failure.hint {
                Some(hint) => format!("{hint}; {done}"),
                None => format!("{done}; `tidalite container put --help` shows the options"),
            };
            failure.hint(hint)
        })?;
    let outcomes = putter.outcomes;
    if args.key.is_some() {
        mention_keys(&place, &db, terminal)?;
    }
    place.close(db)?;
    match args.format.is_json() {
        true => {
            writeln!(terminal.out, "{}", outcomes.json())?;
            terminal.out.flush()?;
        }
        false => told(&outcomes.text(place.table), terminal)?,
    }
    outcomes.check(place.table)
}

/// Prints a note that the table ignores idempotency keys.
fn mention_keys(place: &Place<'_>, db: &Database, terminal: &Terminal<'_>) -> Outcome {
    let mut tx = place.begin(db)?;
    let options = containers_mut(place, &mut tx)?.options();
    let options = options.map_err(|error| place.fail(&error))?;
    if options.idempotency_window.is_none() {
        let note = terminal.messages.warning("note:");
        eprintln!(
            "{note} the table ignores idempotency keys until `tidalite container options {} --table {} --defaults --idempotency-window 1h`",
            place.path.display(),
            place.table
        );
    }
    Ok(())
}

struct Putter<'a> {
    place: Place<'a>,
    db: &'a Database,
    outcomes: Outcomes,
}

impl Putter<'_> {
    fn inputs(&mut self, inputs: &[&str], source: &mut Source<'_>, now: Timestamp) -> Outcome {
        let given = source.time;
        // Neighbouring typed messages form one input, so that they are stored in one commit.
        for group in inputs.chunk_by(|a, b| is_typed(a) && is_typed(b)) {
            source.forget_format();
            if is_typed(group[0]) {
                // Line breaks within a message do not end the message.
                let typed = group.iter().map(|text| text.replace(['\n', '\r'], " "));
                let typed = typed.collect::<Vec<_>>().join("\n");
                source.time = given.or(source.args.time.is_none().then_some(now));
                self.lines(Lines::new(typed.as_bytes()), source).map_err(
                    |failure| match group {
                        [_] => failure,
                        _ => failure.about("typed messages"),
                    },
                )?;
                continue;
            }
            source.time = given;
            let path = Path::new(group[0]);
            let input = source::open(path)?;
            let lines = Lines::new(BufReader::new(input.reader));
            let done = self.lines(lines, source);
            done.map_err(|failure| match group[0] {
                "-" => failure,
                _ => failure.about(path.display()),
            })?;
        }
        Ok(())
    }

    fn lines<R: std::io::BufRead>(
        &mut self,
        mut lines: Lines<R>,
        source: &mut Source<'_>,
    ) -> Outcome {
        loop {
            let batch = lines.batch(source)?;
            if !batch.messages.is_empty() {
                self.store(&batch)?;
            }
            if batch.is_last {
                return Ok(());
            }
        }
    }

    /// Stores the messages of a batch in one transaction.
    fn store(&mut self, batch: &Batch) -> Outcome {
        let messages: Vec<Append<'_>> = batch
            .messages
            .iter()
            .map(|message| Append {
                idempotency_key: message.key.as_deref(),
                ..Append::new(&message.container, message.time, &message.document)
            })
            .collect();
        let mut tx = self.place.begin(self.db)?;
        let appended = containers_mut(&self.place, &mut tx)?.append_batch(&messages);
        let appended = appended.map_err(|error| {
            let failure = self.place.fail(&error);
            match batch.first == batch.last {
                true => failure.about(format!("line {}", batch.first)),
                false => failure.about(format!(
                    "lines {} to {}, none of which is stored ({})",
                    batch.first,
                    batch.last,
                    plural(messages.len() as u64, "message", "messages")
                )),
            }
        })?;
        self.place.commit(tx)?;
        self.outcomes.add(&appended);
        Ok(())
    }
}
