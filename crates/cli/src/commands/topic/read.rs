//! `topic get` and `topic match`.

use super::filters::filters;
use super::line::{json_of, text_of};
use super::place::topics;
use super::write::{no_message, topic_failure};
use crate::args::{TopicGetArgs, TopicMatchArgs};
use crate::bytes::{hex, unhex};
use crate::commands::messages::{Place, shown};
use crate::exit::{Failure, Outcome};
use crate::output::printable;
use crate::terminal::Terminal;
use serde_json::Value;
use tidalite::topics::{Filter, Match, SearchOptions, TopicSearch, Topics};

/// Number of messages that one page of a search delivers.
pub(super) const PAGE_MESSAGES: u64 = 1000;

/// Runs the command `tidalite topic get`.
pub(super) fn get(args: &TopicGetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let topics = topics(&place, &snap)?;
    let found = topics.get(&args.topic);
    let found = found.map_err(|error| topic_failure(&place, &error))?;
    let found = found.ok_or_else(|| no_message(&place, &args.topic))?;
    let retained = found.retained();
    let retained = retained.map_err(|error| place.fail(&error.into()))?;
    match (args.raw, args.format.is_json()) {
        (true, _) => terminal.out.write_all(retained.message.payload)?,
        (_, true) => writeln!(terminal.out, "{}", Value::Object(json_of(&retained)))?,
        (_, false) => writeln!(terminal.out, "{}", shown(retained.message.payload))?,
    }
    Ok(terminal.out.flush()?)
}

/// Passes the next matches of a search to `print`, at most `credit`, and stops at its first failure.
pub(super) fn page(
    place: &Place<'_>,
    topics: &Topics<'_>,
    search: &mut TopicSearch,
    credit: u64,
    print: &mut dyn FnMut(&Match<'_>) -> Outcome,
) -> Outcome<u64> {
    let mut printed = Ok(());
    let page = topics.search(search, credit, &mut |found| {
        if printed.is_ok() {
            printed = print(&found);
        }
    });
    let page = page.map_err(|error| place.fail(&error))?;
    printed.map(|()| page.delivered)
}

/// Runs the command `tidalite topic match`.
pub(super) fn search(args: &TopicMatchArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let filters = filters(&args.filters, args.include_dollar)?;
    let options = SearchOptions {
        since: args.since,
        ..SearchOptions::default()
    };
    let (_db, snap) = place.open()?;
    let topics = topics(&place, &snap)?;
    let mut search = match &args.token {
        None => TopicSearch::new(filters, options),
        Some(token) => resumed(filters, options, token)?,
    };
    if args.count {
        let count = counted(&place, &topics, search, args)?;
        match args.format.is_json() {
            true => writeln!(terminal.out, "{}", serde_json::json!({"messages": count}))?,
            false => writeln!(terminal.out, "{count}")?,
        }
        return Ok(terminal.out.flush()?);
    }
    let mut left = args.limit;
    let out = &mut *terminal.out;
    while left > 0 && !search.is_done() {
        let credit = left.min(PAGE_MESSAGES);
        left -= page(&place, &topics, &mut search, credit, &mut |found| {
            let retained = &found.retained;
            let line = match (args.topics_only, args.format.is_json()) {
                (true, _) => printable(retained.message.topic),
                (_, true) => Value::Object(json_of(retained)).to_string(),
                (_, false) => text_of(retained),
            };
            Ok(writeln!(out, "{line}")?)
        })?;
    }
    out.flush()?;
    // A search reports its end only after it has looked for a further match.
    let mut rest = search.clone();
    while left == 0 && !rest.is_done() {
        let found = page(&place, &topics, &mut rest, 1, &mut |_| Ok(()))?;
        if found > 0 {
            let (note, token) = (terminal.messages.warning("note:"), hex(&search.token()));
            eprintln!("{note} more messages match; go on with --token {token}");
            break;
        }
    }
    Ok(())
}

fn resumed(filters: Vec<Filter>, options: SearchOptions, token: &str) -> Outcome<TopicSearch> {
    let wrong = || {
        Failure::usage("--token: it is not of a search with these filters")
            .hint("give the token of the note, and the same filters in the same order")
    };
    let token = unhex(token.as_bytes()).ok_or_else(wrong)?;
    TopicSearch::resume(filters, options, &token).map_err(|_| wrong())
}

/// Number of messages that a search finds. For a single filter, the library can count them without reading them.
fn counted(
    place: &Place<'_>,
    topics: &Topics<'_>,
    mut search: TopicSearch,
    args: &TopicMatchArgs,
) -> Outcome<u64> {
    if let ([_], 0) = (&args.filters[..], args.since) {
        let filters = filters(&args.filters, args.include_dollar)?;
        let count = topics.count(&filters[0]);
        return count.map_err(|error| place.fail(&error));
    }
    let mut count = 0;
    while !search.is_done() {
        count += page(place, topics, &mut search, PAGE_MESSAGES, &mut |_| Ok(()))?;
    }
    Ok(count)
}
