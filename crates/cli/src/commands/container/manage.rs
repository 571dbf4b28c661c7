//! `container mv`, `container rm` and `container restore`.

use super::place::{check_name, containers_mut, expect_in, find};
use crate::args::{ContainerMvArgs, ContainerRestoreArgs, ContainerRmArgs};
use crate::commands::messages::{Place, time_text, told};
use crate::exit::{Failure, Outcome};
use crate::output::plural;
use crate::terminal::Terminal;
use tidalite::ErrorKind;
use tidalite::containers::ContainersMut;

/// Returns an error if a container has this name.
fn refuse_taken(place: &Place<'_>, containers: &ContainersMut<'_>, name: &str) -> Outcome {
    let view = containers.view().map_err(|error| place.fail(&error))?;
    match find(place, &view, name)? {
        None => Ok(()),
        Some(_) => Err(Failure::bad_input(format!(
            "{} has a container {name} already",
            place.table
        ))
        .hint("choose another name, or rename or drop that container first")),
    }
}

/// Converts an error of naming a container to a failure. A series may already have the name of the container's series.
fn name_failure(place: &Place<'_>, error: &tidalite::Error) -> Failure {
    match error.kind() {
        ErrorKind::AlreadyExists => Failure::bad_input(error).hint(
            "the container has a series of its name: choose another name, or rename that series",
        ),
        _ => place.fail(error),
    }
}

/// Runs the command `tidalite container mv`.
pub(super) fn mv(args: &ContainerMvArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name, new_name) = (args.of.place(), &args.of.name, &args.new_name);
    check_name(&place, new_name)?;
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    expect_in(&place, &containers, name)?;
    refuse_taken(&place, &containers, new_name)?;
    containers
        .rename_container(name, new_name)
        .map_err(|error| name_failure(&place, &error))?;
    place.finish(tx, db)?;
    told(&format!("{name} is called {new_name} now"), terminal)
}

/// Runs the command `tidalite container rm`.
pub(super) fn rm(args: &ContainerRmArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    expect_in(&place, &containers, name)?;
    let dropped = containers
        .drop_container(name)
        .map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let messages = plural(dropped.messages, "message", "messages");
    let kept = match dropped.free_at {
        Some(time) => format!("; it can be restored until {}", time_text(time)),
        None => String::new(),
    };
    told(
        &format!("container {name} dropped with {messages}{kept}"),
        terminal,
    )
}

/// Runs the command `tidalite container restore`.
pub(super) fn restore(args: &ContainerRestoreArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let new_name = args.new_name.as_ref().unwrap_or(name);
    check_name(&place, new_name)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    let dropped = containers
        .view()
        .and_then(|view| view.dropped(name, None, 1));
    let dropped = dropped.map_err(fail)?;
    if dropped.first().is_none_or(|dropped| dropped.name != *name) {
        return Err(Failure::not_found(format!(
            "{} has no dropped container {name} that can be restored",
            place.table
        ))
        .hint(format!(
            "`tidalite container dropped {} --table {}` lists them",
            place.path.display(),
            place.table
        )));
    }
    refuse_taken(&place, &containers, new_name)?;
    containers
        .restore_container(name, new_name)
        .map_err(|error| name_failure(&place, &error))?;
    let messages = expect_in(&place, &containers, new_name)?.messages;
    place.finish(tx, db)?;
    let messages = plural(messages, "message", "messages");
    told(
        &format!("container {new_name} restored with {messages}"),
        terminal,
    )
}
