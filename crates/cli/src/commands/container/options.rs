//! `container create` and `container options`.

use super::place::{check_name, containers, containers_mut, expect, expect_in, find};
use super::width::duration_text;
use crate::args::{
    ContainerCreateArgs, ContainerFull, ContainerOptionArgs, ContainerOptionsArgs, DuplicateRule,
    Ttl, YesNo,
};
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::terminal::Terminal;
use crate::time::duration;
use serde_json::{Map, Value};
use std::io::Write;
use tidalite::containers::{
    ContainerOptions, ContainerOverflow, ContainerTableOptions, OnDuplicate,
};

impl ContainerOptionArgs {
    fn is_empty(&self) -> bool {
        let Self {
            on_duplicate,
            ttl,
            messages_max,
            bytes_max,
            overflow,
            keep_deleted,
            protect,
        } = self;
        on_duplicate.is_none()
            && ttl.is_none()
            && messages_max.is_none()
            && bytes_max.is_none()
            && overflow.is_none()
            && keep_deleted.is_none()
            && protect.is_none()
    }

    /// `base`, changed by the options that the user has given.
    fn on(&self, base: &ContainerOptions) -> ContainerOptions {
        let most = |given: Option<u64>, base: Option<u64>| match given {
            Some(most) => Some(most).filter(|most| *most > 0),
            None => base,
        };
        ContainerOptions {
            on_duplicate: match self.on_duplicate {
                Some(DuplicateRule::KeepAll) => OnDuplicate::KeepAll,
                Some(DuplicateRule::KeepFirst) => OnDuplicate::KeepFirst,
                Some(DuplicateRule::Replace) => OnDuplicate::Replace,
                Some(DuplicateRule::Merge) => OnDuplicate::Merge,
                None => base.on_duplicate,
            },
            overflow: match self.overflow {
                Some(ContainerFull::Reject) => ContainerOverflow::Reject,
                Some(ContainerFull::DropOldest) => ContainerOverflow::DropOldest,
                None => base.overflow,
            },
            ttl: match self.ttl {
                Some(Ttl::Never) => None,
                Some(Ttl::At(age)) => Some(duration(age)),
                None => base.ttl,
            },
            keep_deleted: self.keep_deleted.map_or(base.keep_deleted, duration),
            messages_max: most(self.messages_max, base.messages_max),
            bytes_max: most(self.bytes_max, base.bytes_max),
            protect: match self.protect.as_deref() {
                Some("") => None,
                Some(field) => Some(field.to_owned()),
                None => base.protect.clone(),
            },
        }
    }
}

/// Returns an error for options that the library cannot use.
fn check(problem: Option<String>) -> Outcome {
    match problem {
        Some(problem) => Err(
            Failure::usage(format!("the options cannot be used: {problem}"))
                .hint("`tidalite container options --help` shows the options and their values"),
        ),
        None => Ok(()),
    }
}

/// Runs the command `tidalite container create`.
pub(super) fn create(args: &ContainerCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    check_name(&place, name)?;
    let fail = |error: tidalite::Error| place.fail(&error);
    let (db, _) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(&place, &mut tx)?;
    let view = containers.view().map_err(fail)?;
    if find(&place, &view, name)?.is_some() {
        return Err(
            Failure::bad_input(format!("{} has a container {name} already", place.table))
                .hint("`tidalite container options` changes the options of a container"),
        );
    }
    let own = match args.options.is_empty() {
        true => None,
        false => Some(args.options.on(&view.options().defaults)),
    };
    drop(view);
    check(own.as_ref().and_then(ContainerOptions::problem))?;
    containers
        .create_container(name, own.as_ref())
        .map_err(fail)?;
    place.finish(tx, db)?;
    told(
        &format!("container {name} created in {}", place.table),
        terminal,
    )
}

impl ContainerOptionsArgs {
    /// Whether the command only prints the options.
    fn only_shows(&self) -> bool {
        self.options.is_empty()
            && !self.inherit
            && self.idempotency_window.is_none()
            && self.on_message_create.is_none()
            && self.containers_max.is_none()
            && self.fields_max.is_none()
    }

    /// `base`, changed by the table options that the user has given.
    fn table(&self, base: &ContainerTableOptions) -> ContainerTableOptions {
        ContainerTableOptions {
            creates_containers: match self.on_message_create {
                Some(creates) => creates == YesNo::Yes,
                None => base.creates_containers,
            },
            containers_max: self.containers_max.unwrap_or(base.containers_max),
            fields_max: self.fields_max.unwrap_or(base.fields_max),
            idempotency_window: match self.idempotency_window {
                Some(window) => Some(duration(window)).filter(|window| !window.is_zero()),
                None => base.idempotency_window,
            },
            defaults: self.options.on(&base.defaults),
        }
    }
}

/// Runs the command `tidalite container options`.
pub(super) fn options(args: &ContainerOptionsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    if args.name.is_none() && !args.defaults {
        return Err(Failure::usage(
            "a container, or --defaults for the options of the table",
        ));
    }
    match (&args.name, args.only_shows()) {
        (_, true) => show(args, &place, terminal),
        (Some(name), false) => change(args, &place, name, terminal),
        (None, false) => change_table(args, &place, terminal),
    }
}

fn change(
    args: &ContainerOptionsArgs,
    place: &Place<'_>,
    name: &str,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(place, &mut tx)?;
    let stored = expect_in(place, &containers, name)?.options;
    let wanted = (!args.inherit).then(|| args.options.on(&stored));
    check(wanted.as_ref().and_then(ContainerOptions::problem))?;
    containers
        .set_options(name, wanted.as_ref())
        .map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    told(&format!("options of {name} changed"), terminal)
}

fn change_table(
    args: &ContainerOptionsArgs,
    place: &Place<'_>,
    terminal: &mut Terminal<'_>,
) -> Outcome {
    let fail = |error: tidalite::Error| place.fail(&error);
    let (db, exists) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let mut containers = containers_mut(place, &mut tx)?;
    let wanted = args.table(&containers.options().map_err(fail)?);
    check(wanted.problem())?;
    containers.set_table_options(&wanted).map_err(fail)?;
    place.finish(tx, db)?;
    let done = match exists {
        true => "options of",
        false => "table",
    };
    let verb = match exists {
        true => "changed",
        false => "created",
    };
    told(&format!("{done} {} {verb}", place.table), terminal)
}

/// The command-line word for a rule about equal times.
fn duplicates(rule: OnDuplicate) -> &'static str {
    match rule {
        OnDuplicate::KeepAll => "keep-all",
        OnDuplicate::KeepFirst => "keep-first",
        OnDuplicate::Replace => "replace",
        OnDuplicate::Merge => "merge",
    }
}

/// The command-line word for a rule about full containers.
fn overflow(rule: ContainerOverflow) -> &'static str {
    match rule {
        ContainerOverflow::Reject => "reject",
        ContainerOverflow::DropOldest => "drop-oldest",
    }
}

/// Prints options of a container as lines of text.
pub(super) fn print_options(options: &ContainerOptions, out: &mut dyn Write) -> Outcome {
    let most = |most: Option<u64>| most.map_or_else(|| "none".to_owned(), |most| most.to_string());
    let ttl = options
        .ttl
        .map_or_else(|| "never".to_owned(), duration_text);
    let protect = options.protect.as_deref().map_or("-".into(), printable);
    writeln!(out, "  Equal times: {}", duplicates(options.on_duplicate))?;
    writeln!(out, "  Time to live: {ttl}")?;
    writeln!(out, "  Maximum messages: {}", most(options.messages_max))?;
    writeln!(out, "  Maximum bytes: {}", most(options.bytes_max))?;
    writeln!(out, "  Full container: {}", overflow(options.overflow))?;
    writeln!(
        out,
        "  Deleted messages kept: {}",
        duration_text(options.keep_deleted)
    )?;
    writeln!(out, "  Protecting field: {protect}")?;
    Ok(())
}

/// Adds options of a container to a JSON object. A time to live or a maximum that is not set becomes null.
pub(super) fn put_options(options: &ContainerOptions, object: &mut Map<String, Value>) {
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("on_duplicate", duplicates(options.on_duplicate).into());
    put("ttl_s", options.ttl.map(|ttl| ttl.as_secs_f64()).into());
    put("messages_max", options.messages_max.into());
    put("bytes_max", options.bytes_max.into());
    put("overflow", overflow(options.overflow).into());
    put("keep_deleted_s", options.keep_deleted.as_secs_f64().into());
    put("protect", options.protect.clone().into());
}

/// Prints options of a table as lines of text.
pub(super) fn print_table(options: &ContainerTableOptions, out: &mut dyn Write) -> Outcome {
    let creates = match options.creates_containers {
        true => "yes",
        false => "no",
    };
    let most = match options.containers_max {
        u32::MAX => "none".to_owned(),
        most => most.to_string(),
    };
    writeln!(out, "  Messages create containers: {creates}")?;
    writeln!(out, "  Maximum containers: {most}")?;
    writeln!(out, "  Maximum fields: {}", options.fields_max)?;
    writeln!(
        out,
        "  Idempotency window: {}",
        duration_text(options.idempotency_window.unwrap_or_default())
    )?;
    print_options(&options.defaults, out)
}

/// Adds options of a table to a JSON object.
pub(super) fn put_table(options: &ContainerTableOptions, object: &mut Map<String, Value>) {
    let most = Some(options.containers_max).filter(|most| *most < u32::MAX);
    let window = options.idempotency_window.unwrap_or_default().as_secs_f64();
    let mut defaults = Map::new();
    put_options(&options.defaults, &mut defaults);
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("creates_containers", options.creates_containers.into());
    put("containers_max", most.into());
    put("fields_max", options.fields_max.into());
    put("idempotency_window_s", window.into());
    put("defaults", Value::Object(defaults));
}

fn show(args: &ContainerOptionsArgs, place: &Place<'_>, terminal: &mut Terminal<'_>) -> Outcome {
    let (_db, snap) = place.open()?;
    let containers = containers(place, &snap)?;
    let out = &mut *terminal.out;
    let mut object = Map::new();
    match (&args.name, args.format.is_json()) {
        (None, true) => put_table(containers.options(), &mut object),
        (None, false) => {
            writeln!(out, "Options of {}", printable(place.table))?;
            print_table(containers.options(), out)?;
        }
        (Some(name), is_json) => {
            let info = expect(place, &containers, name)?;
            if is_json {
                object.insert("own_options".to_owned(), info.has_own_options.into());
                put_options(&info.options, &mut object);
            } else {
                let whose = match info.has_own_options {
                    true => "its own",
                    false => "the default ones of the table",
                };
                writeln!(out, "Options of {}: {whose}", printable(name))?;
                print_options(&info.options, out)?;
            }
        }
    }
    if args.format.is_json() {
        writeln!(out, "{}", Value::Object(object))?;
    }
    Ok(out.flush()?)
}
