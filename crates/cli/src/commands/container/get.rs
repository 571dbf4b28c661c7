//! `container get`: prints messages as JSON lines.

use super::line::message_json;
use super::place::{containers, expect, filter_failure};
use crate::args::ContainerGetArgs;
use crate::bytes::{hex, unhex};
use crate::commands::messages::Place;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use tidalite::ErrorKind;
use tidalite::containers::{
    Containers, FoundMessage, MESSAGE_TOKEN_BYTES, MessageQuery, MessageToken, Projection, Select,
};

/// The selection of messages that the user has requested. `fields` of the library is not used, because messages are
/// printed as they are read.
fn select(args: &ContainerGetArgs) -> Outcome<Select> {
    let (from, to) = args.range.span()?;
    let after = args.after.as_deref().map(token).transpose()?;
    if after.is_some() && args.names.len() > 1 {
        return Err(Failure::usage("--after: only possible for one container"));
    }
    Ok(Select {
        query: MessageQuery {
            from,
            to,
            reverse: args.reverse,
            limit: args.limit,
            after,
        },
        filter: args.filter.filter.clone(),
        fields: None,
    })
}

fn wrong_token() -> Failure {
    Failure::usage("--after: it is not a token for this container")
        .hint("give the token of the note of an earlier command")
}

fn token(text: &str) -> Outcome<MessageToken> {
    let bytes = unhex(text.as_bytes()).filter(|bytes| bytes.len() == MESSAGE_TOKEN_BYTES);
    let token = bytes.and_then(|bytes| MessageToken::of_bytes(&bytes).ok());
    token.ok_or_else(wrong_token)
}

fn projection(args: &ContainerGetArgs) -> Outcome<Option<Projection>> {
    if args.fields.is_empty() {
        return Ok(None);
    }
    Projection::new(&args.fields)
        .map(Some)
        .map_err(|error| Failure::usage(format!("--fields: {error}")))
}

/// Runs the command `tidalite container get`.
pub(super) fn run(args: &ContainerGetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (select, projection) = (select(args)?, projection(args)?);
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    let mut numbers: HashMap<u32, &str> = HashMap::new();
    for name in &args.names {
        let info = expect(&place, &containers, name)?;
        numbers.insert(info.number, name);
    }
    if let [name] = &args.names[..] {
        check_token(&place, &containers, name, &select)?;
    }
    if args.count {
        let mut count: u64 = 0;
        each(&place, &containers, args, &select, &mut |_| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        writeln!(terminal.out, "{count}")?;
        return Ok(terminal.out.flush()?);
    }
    let names = containers.field_names();
    let names = names.map_err(|error| place.fail(&error))?.by_number();
    let names: HashMap<&str, u32> = names
        .into_iter()
        .map(|(number, name)| (name, number))
        .collect();
    let fields = projection
        .as_ref()
        .map(|projection| projection.resolve(&|name| names.get(name).copied()));
    let show = TimeShow::new(args.range.zone.tz.clone());
    let (out, mut failed) = (&mut *terminal.out, None);
    let next = each(&place, &containers, args, &select, &mut |found| {
        let document = match &fields {
            Some(fields) => fields.project(&found.encoded()?)?,
            None => found.document()?,
        };
        let container = numbers.get(&found.key().container).copied();
        let container = container.filter(|_| numbers.len() > 1);
        let line = message_json((found.time(), &show), container, &document)?;
        Ok(match writeln!(out, "{line}") {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        })
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    out.flush()?;
    if let Some(next) = next.filter(|_| args.limit > 0) {
        let note = terminal.messages.warning("note:");
        match numbers.len() {
            1 => eprintln!(
                "{note} there are more messages; go on with --after {}",
                hex(&next.to_bytes())
            ),
            _ => eprintln!("{note} there are more messages"),
        }
    }
    Ok(())
}

/// Returns an error for a token of another container. It runs a query without a filter, so that an error can only be
/// caused by the token.
fn check_token(
    place: &Place<'_>,
    containers: &Containers<'_>,
    name: &str,
    select: &Select,
) -> Outcome {
    let empty = Select {
        query: MessageQuery {
            limit: 0,
            ..select.query
        },
        ..Select::default()
    };
    let read = containers.each(name, &empty, &mut |_| Ok(ControlFlow::Break(())));
    match read {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Err(wrong_token()),
        Err(error) => Err(place.fail(&error)),
    }
}

/// A callback for messages.
type Each<'f> = dyn FnMut(&FoundMessage<'_>) -> tidalite::Result<ControlFlow<()>> + 'f;

/// Passes the messages of one or several containers to `with`.
fn each(
    place: &Place<'_>,
    containers: &Containers<'_>,
    args: &ContainerGetArgs,
    select: &Select,
    with: &mut Each<'_>,
) -> Outcome<Option<MessageToken>> {
    let names: BTreeSet<&str> = args.names.iter().map(|name| &**name).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let done = match names[..] {
        [name] => containers.each(name, select, with),
        _ => containers.each_merged(&names, select, with),
    };
    done.map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => filter_failure(place, &args.filter, &error),
        _ => place.fail(&error),
    })
}
