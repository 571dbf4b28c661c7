//! `container filter-test`: evaluates an expression on messages.

use super::line::value_json;
use crate::args::ContainerFilterTestArgs;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use std::io::BufRead;
use tidalite::Timestamp;
use tidalite::containers::{Document, FieldValue, MessageFields};

/// Runs the command `tidalite container filter-test`.
pub(super) fn run(args: &ContainerFilterTestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let time = args.at.map(|at| at.at(Timestamp::now()));
    if args.message != "-" {
        test(args, &args.message, time, terminal)?;
        return Ok(terminal.out.flush()?);
    }
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let about = |failure: Failure| failure.about(format!("line {}", at + 1));
        let line = line.map_err(|error| {
            about(
                Failure::bad_input(format!("reading failed: {error}"))
                    .hint("messages are JSON objects in UTF-8, one a line"),
            )
        })?;
        if !line.trim().is_empty() {
            test(args, &line, time, terminal).map_err(about)?;
        }
    }
    Ok(terminal.out.flush()?)
}

fn test(
    args: &ContainerFilterTestArgs,
    json: &str,
    time: Option<Timestamp>,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let document = Document::from_json(json)
        .map_err(|error| Failure::bad_input(error).hint("give the message as one JSON object"))?;
    let message = MessageFields {
        document: &document,
        time,
        received: time,
    };
    let value = args.expression.evaluate(&message).map_err(|error| {
        Failure::bad_input(error)
            .hint("`tidalite container filter-test --help` shows the operators")
    })?;
    let text = value_json(&value)
        .map_err(|error| Failure::bad_input(error).hint("choose a smaller result"))?;
    let matches = value == FieldValue::Bool(true);
    match args.format.is_json() {
        true => writeln!(terminal.out, "{{\"value\":{text},\"matches\":{matches}}}")?,
        false => writeln!(terminal.out, "{text}")?,
    }
    Ok(())
}
