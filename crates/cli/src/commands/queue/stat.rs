//! `queue stat`: queues with their messages, their groups and their options.

use super::groups::{group_json, group_text};
use super::place::{groups_of, queue};
use crate::args::QueueStatArgs;
use crate::commands::layouts::tables_of;
use crate::commands::messages::{Place, time_text};
use crate::database::{failure, open};
use crate::exit::Outcome;
use crate::output::{bytes_text, plural, printable};
use crate::terminal::Terminal;
use std::io::Write;
use std::time::Duration;
use tidalite::TableLayout;
use tidalite::queue::{GroupStat, Overflow, Queue, QueueOptions, QueueStat};

/// Runs the command `tidalite queue stat`.
pub(super) fn run(args: &QueueStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let snap = open(path)?.begin_read().map_err(fail)?;
    let names = match &args.table {
        Some(table) => vec![table.clone()],
        None => tables_of(&snap, TableLayout::Queue).map_err(fail)?,
    };
    let out = &mut *terminal.out;
    for name in &names {
        let place = Place {
            path,
            table: name,
            layout: TableLayout::Queue,
        };
        if !place.exists(&snap)? {
            return Err(place.missing());
        }
        let described = Described::of(&queue(&place, &snap)?).map_err(fail)?;
        if args.format.is_json() {
            writeln!(out, "{}", described.json(name))?;
        } else if args.table.is_some() {
            described.print(name, out)?;
        } else {
            let stat = &described.stat;
            let messages = plural(stat.messages, "message", "messages");
            let groups = plural(described.groups.len() as u64, "group", "groups");
            let bytes = bytes_text(stat.bytes);
            writeln!(out, "{}\t{messages}\t{groups}\t{bytes}", printable(name))?;
        }
    }
    Ok(out.flush()?)
}

struct Described {
    stat: QueueStat,
    options: QueueOptions,
    groups: Vec<(String, GroupStat)>,
}

/// The command-line word for a rule about full queues.
fn overflow(overflow: Overflow) -> &'static str {
    match overflow {
        Overflow::Reject => "reject",
        Overflow::DropOldest => "drop-oldest",
        Overflow::DropNewest => "drop-newest",
    }
}

/// A duration in seconds.
fn seconds(width: Option<Duration>) -> f64 {
    width.unwrap_or_default().as_secs_f64()
}

impl Described {
    fn of(queue: &Queue<'_>) -> tidalite::Result<Self> {
        Ok(Self {
            stat: queue.stat()?,
            options: *queue.options(),
            groups: groups_of(queue)?,
        })
    }

    fn print(&self, name: &str, out: &mut dyn Write) -> Outcome {
        let Self { stat, options, .. } = self;
        let none = || "none".to_owned();
        let most = |most: Option<u64>| most.map_or_else(none, |most| most.to_string());
        let width = |width: Option<Duration>| {
            width.map_or_else(none, |width| format!("{} s", width.as_secs_f64()))
        };
        let oldest = stat.oldest.map_or_else(|| "-".to_owned(), time_text);
        writeln!(out, "Status of {}", printable(name))?;
        writeln!(out, "  Messages: {}", stat.messages)?;
        writeln!(out, "  Bytes: {}", stat.bytes)?;
        writeln!(out, "  Oldest message: {oldest}")?;
        writeln!(out, "  Next id: {}", stat.next_id)?;
        writeln!(out, "  Pushed: {}", stat.pushed)?;
        writeln!(out, "  Repeated: {}", stat.repeated)?;
        writeln!(out, "  Dropped oldest: {}", stat.dropped_oldest)?;
        writeln!(out, "  Dropped newest: {}", stat.dropped_newest)?;
        writeln!(out, "  Expired: {}", stat.expired)?;
        writeln!(out, "  Too old: {}", stat.aged)?;
        writeln!(out, "  Purged: {}", stat.purged)?;
        writeln!(out, "  Full queue: {}", overflow(options.overflow))?;
        writeln!(
            out,
            "  Maximum deliveries: {}",
            most(options.deliveries_max.map(Into::into))
        )?;
        writeln!(out, "  Maximum messages: {}", most(options.messages_max))?;
        writeln!(out, "  Maximum bytes: {}", most(options.bytes_max))?;
        writeln!(out, "  Retention: {}", width(options.retention))?;
        writeln!(
            out,
            "  Idempotency window: {}",
            width(options.idempotency_window)
        )?;
        for (name, stat) in &self.groups {
            writeln!(
                out,
                "  Group {}",
                group_text(name, stat)
                    .replacen('\t', ": ", 1)
                    .replace('\t', ", ")
            )?;
        }
        Ok(())
    }

    fn json(&self, name: &str) -> serde_json::Value {
        let Self { stat, options, .. } = self;
        let groups = self.groups.iter();
        let groups: Vec<_> = groups.map(|(name, stat)| group_json(name, stat)).collect();
        serde_json::json!({
            "table": name,
            "messages": stat.messages,
            "bytes": stat.bytes,
            "oldest": stat.oldest.map(time_text),
            "next_id": stat.next_id,
            "pushed": stat.pushed,
            "repeated": stat.repeated,
            "dropped_oldest": stat.dropped_oldest,
            "dropped_newest": stat.dropped_newest,
            "expired": stat.expired,
            "aged": stat.aged,
            "purged": stat.purged,
            "overflow": overflow(options.overflow),
            "deliveries_max": options.deliveries_max.unwrap_or(0),
            "messages_max": options.messages_max.unwrap_or(0),
            "bytes_max": options.bytes_max.unwrap_or(0),
            "retention_s": seconds(options.retention),
            "idempotency_window_s": seconds(options.idempotency_window),
            "groups": groups,
        })
    }
}
