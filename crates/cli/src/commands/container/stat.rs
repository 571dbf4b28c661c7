//! `container stat`: tables of containers, or one table or container with its options.

use super::options::{print_options, print_table, put_options, put_table};
use super::place::{containers, expect};
use crate::args::ContainerStatArgs;
use crate::commands::layouts::tables_of;
use crate::commands::messages::{Place, time_text};
use crate::database::{failure, open};
use crate::exit::Outcome;
use crate::output::{bytes_text, plural, printable};
use crate::terminal::Terminal;
use serde_json::{Map, Value, json};
use std::io::Write;
use tidalite::containers::{ContainerInfo, Containers, ContainersStat};
use tidalite::{TableLayout, Timestamp};

/// Runs the command `tidalite container stat`.
pub(super) fn run(args: &ContainerStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let place = |table| Place {
        path,
        table,
        layout: TableLayout::Containers,
    };
    let out = &mut *terminal.out;
    if let Some(name) = &args.name {
        let place = place(args.table.as_deref().unwrap_or("containers"));
        let (_db, snap) = place.open()?;
        let containers = containers(&place, &snap)?;
        let info = expect(&place, &containers, name)?;
        let series = containers.series_name(name).map_err(fail)?;
        match args.format.is_json() {
            true => writeln!(out, "{}", info_json(&info, &series))?,
            false => print_info(&info, &series, out)?,
        }
        return Ok(out.flush()?);
    }
    let snap = open(path)?.begin_read().map_err(fail)?;
    let names = match &args.table {
        Some(table) => vec![table.clone()],
        None => tables_of(&snap, TableLayout::Containers).map_err(fail)?,
    };
    for name in &names {
        let place = place(name);
        if !place.exists(&snap)? {
            return Err(place.missing());
        }
        let containers = containers(&place, &snap)?;
        let stat = containers.stat().map_err(fail)?;
        if args.format.is_json() {
            writeln!(out, "{}", table_json(&containers, &stat))?;
        } else if args.table.is_some() {
            print_stat(&containers, &stat, out)?;
        } else {
            let count = plural(stat.containers, "container", "containers");
            let messages = plural(stat.messages, "message", "messages");
            let bytes = bytes_text(stat.bytes);
            writeln!(out, "{}\t{count}\t{messages}\t{bytes}", printable(name))?;
        }
    }
    Ok(out.flush()?)
}

fn print_stat(containers: &Containers<'_>, stat: &ContainersStat, out: &mut dyn Write) -> Outcome {
    writeln!(out, "Status of {}", printable(containers.name()))?;
    writeln!(out, "  Containers: {}", stat.containers)?;
    writeln!(out, "  Messages: {}", stat.messages)?;
    writeln!(out, "  Bytes: {}", stat.bytes)?;
    writeln!(out, "  Deleted messages: {}", stat.deleted_messages)?;
    writeln!(out, "  Deleted bytes: {}", stat.deleted_bytes)?;
    writeln!(out, "  Dropped containers: {}", stat.dropped_containers)?;
    writeln!(out, "  Fields: {}", stat.fields)?;
    writeln!(out, "  Idempotency keys: {}", stat.idempotency_keys)?;
    print_table(containers.options(), out)
}

fn table_json(containers: &Containers<'_>, stat: &ContainersStat) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("table", containers.name().into());
    put("containers", stat.containers.into());
    put("messages", stat.messages.into());
    put("bytes", stat.bytes.into());
    put("deleted_messages", stat.deleted_messages.into());
    put("deleted_bytes", stat.deleted_bytes.into());
    put("dropped_containers", stat.dropped_containers.into());
    put("fields", stat.fields.into());
    put("idempotency_keys", stat.idempotency_keys.into());
    put_table(containers.options(), &mut object);
    Value::Object(object)
}

fn print_info(info: &ContainerInfo, series: &str, out: &mut dyn Write) -> Outcome {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), time_text);
    writeln!(out, "Status of {}", printable(&info.name))?;
    writeln!(out, "  Series: {}", printable(series))?;
    writeln!(out, "  Messages: {}", info.messages)?;
    writeln!(out, "  Bytes: {}", info.bytes)?;
    writeln!(out, "  Protected messages: {}", info.protected_messages)?;
    writeln!(out, "  Protected bytes: {}", info.protected_bytes)?;
    writeln!(out, "  Oldest message: {}", time(info.oldest))?;
    writeln!(out, "  Newest message: {}", time(info.newest))?;
    writeln!(out, "  Created: {}", time_text(info.created))?;
    writeln!(out, "  Changes: {}", info.changes)?;
    writeln!(out, "  Rejected: {}", info.rejected)?;
    writeln!(out, "  Expired: {}", info.expired)?;
    writeln!(out, "  Rotated: {}", info.rotated)?;
    let own = match info.has_own_options {
        true => "yes",
        false => "no",
    };
    writeln!(out, "  Own options: {own}")?;
    print_options(&info.options, out)
}

fn info_json(info: &ContainerInfo, series: &str) -> Value {
    let json = json!({
        "name": info.name,
        "number": info.number,
        "series": series,
        "messages": info.messages,
        "bytes": info.bytes,
        "protected_messages": info.protected_messages,
        "protected_bytes": info.protected_bytes,
        "oldest": info.oldest.map(time_text),
        "newest": info.newest.map(time_text),
        "created": time_text(info.created),
        "changes": info.changes,
        "rejected": info.rejected,
        "expired": info.expired,
        "rotated": info.rotated,
        "own_options": info.has_own_options,
    });
    let Value::Object(mut object) = json else {
        return json;
    };
    put_options(&info.options, &mut object);
    Value::Object(object)
}
