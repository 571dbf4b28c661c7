//! `container latest` and `container fields`.

use super::line::value_json;
use super::place::{containers, expect};
use crate::args::{ContainerFieldsArgs, ContainerLatestArgs};
use crate::commands::messages::time_text;
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::terminal::Terminal;
use serde_json::json;

/// Runs the command `tidalite container latest`.
pub(super) fn run(args: &ContainerLatestArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let fail = |error: tidalite::Error| place.fail(&error);
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    expect(&place, &containers, name)?;
    let values = match args.fields.is_empty() {
        true => containers.latest(name).map_err(fail)?,
        false => {
            let fields: Vec<&str> = args.fields.iter().map(|field| &**field).collect();
            let found = containers.latest_of(name, &fields).map_err(fail)?;
            let missing = fields.iter().zip(&found);
            if let Some((field, _)) = missing.into_iter().find(|(_, value)| value.is_none()) {
                return Err(
                    Failure::not_found(format!("{name} has no field {field}")).hint(
                        "without FIELD the command prints all; parts of objects are not fields",
                    ),
                );
            }
            found.into_iter().flatten().collect()
        }
    };
    for value in values {
        let text = value_json(&value.value).map_err(fail)?;
        let (field, time) = (&*value.field, time_text(value.time));
        match args.format.is_json() {
            true => {
                let (field, time) = (json!(field), json!(time));
                writeln!(
                    terminal.out,
                    "{{\"field\":{field},\"time\":{time},\"value\":{text}}}"
                )?;
            }
            false => writeln!(
                terminal.out,
                "{}\t{}\t{time}",
                printable(field),
                printable(&text)
            )?,
        }
    }
    Ok(terminal.out.flush()?)
}

/// Runs the command `tidalite container fields`.
pub(super) fn fields(args: &ContainerFieldsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    let names = containers.field_names();
    let mut names = names.map_err(|error| place.fail(&error))?.by_number();
    names.sort_unstable_by_key(|(_, name)| *name);
    for (_, name) in names {
        match args.format.is_json() {
            true => writeln!(terminal.out, "{}", json!({"field": name}))?,
            false => writeln!(terminal.out, "{}", printable(name))?,
        }
    }
    Ok(terminal.out.flush()?)
}
