//! `topic stat`: tables of topics with their messages, their limits and their feeds.

use super::place::topics;
use crate::args::TopicStatArgs;
use crate::commands::layouts::tables_of;
use crate::commands::messages::Place;
use crate::database::{failure, open};
use crate::exit::Outcome;
use crate::output::{bytes_text, plural, printable};
use crate::terminal::Terminal;
use std::io::Write;
use tidalite::TableLayout;
use tidalite::topics::{TopicOptions, TopicsStat};

/// Runs the command `tidalite topic stat`.
pub(super) fn run(args: &TopicStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let snap = open(path)?.begin_read().map_err(fail)?;
    let names = match &args.table {
        Some(table) => vec![table.clone()],
        None => tables_of(&snap, TableLayout::Topics).map_err(fail)?,
    };
    let out = &mut *terminal.out;
    for name in &names {
        let place = Place {
            path,
            table: name,
            layout: TableLayout::Topics,
        };
        if !place.exists(&snap)? {
            return Err(place.missing());
        }
        let topics = topics(&place, &snap)?;
        let (stat, options) = (topics.stat().map_err(fail)?, topics.options());
        if args.format.is_json() {
            writeln!(out, "{}", json(name, &stat, options))?;
        } else if args.table.is_some() {
            print(name, &stat, options, out)?;
        } else {
            let messages = plural(stat.messages, "message", "messages");
            let bytes = bytes_text(stat.bytes);
            writeln!(out, "{}\t{messages}\t{bytes}", printable(name))?;
        }
    }
    Ok(out.flush()?)
}

fn print(name: &str, stat: &TopicsStat, options: &TopicOptions, out: &mut dyn Write) -> Outcome {
    let most = |most: Option<u64>| most.map_or_else(|| "none".to_owned(), |most| most.to_string());
    let feed = match options.feed_changes {
        0 => "none".to_owned(),
        changes => format!("{} of at most {changes} changes", stat.feed_changes),
    };
    writeln!(out, "Status of {}", printable(name))?;
    writeln!(out, "  Messages: {}", stat.messages)?;
    writeln!(out, "  Bytes: {}", stat.bytes)?;
    writeln!(out, "  Messages that expire: {}", stat.expiring)?;
    writeln!(out, "  Newest change: {}", stat.sequence)?;
    writeln!(out, "  Feed: {feed}")?;
    writeln!(out, "  Maximum levels: {}", options.levels_max)?;
    writeln!(out, "  Maximum topic bytes: {}", options.topic_bytes_max)?;
    writeln!(
        out,
        "  Maximum payload bytes: {}",
        options.payload_bytes_max
    )?;
    writeln!(out, "  Maximum messages: {}", most(options.messages_max))?;
    writeln!(out, "  Maximum bytes: {}", most(options.bytes_max))?;
    Ok(())
}

fn json(name: &str, stat: &TopicsStat, options: &TopicOptions) -> serde_json::Value {
    serde_json::json!({
        "table": name,
        "messages": stat.messages,
        "bytes": stat.bytes,
        "expiring": stat.expiring,
        "sequence": stat.sequence,
        "feed_changes": stat.feed_changes,
        "feed_changes_max": options.feed_changes,
        "levels_max": options.levels_max,
        "topic_bytes_max": options.topic_bytes_max,
        "payload_bytes_max": options.payload_bytes_max,
        "messages_max": options.messages_max,
        "bytes_max": options.bytes_max,
    })
}
