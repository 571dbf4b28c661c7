//! `object ls` and `object info`.

use super::line::json_of;
use super::place::{bucket, info as object_info, name_failure};
use crate::args::{ObjectInfoArgs, ObjectLsArgs};
use crate::commands::messages::time_text;
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column, Format, bytes_text, printable};
use crate::terminal::Terminal;
use crate::time::read_any;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::ops::Range;
use tidalite::Timestamp;
use tidalite::objects::{ListQuery, OBJECTS_LISTED_MAX, ObjectFilter, ObjectInfo};

/// The range of times between --from and --to; `None` if neither is given.
fn times(args: &ObjectLsArgs) -> Outcome<Option<Range<Timestamp>>> {
    let read = |text: &Option<String>, default: i64| match text {
        None => Ok(default),
        Some(text) => read_any(text, &TimeZone::UTC)
            .map(|time| i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX }))
            .map_err(|problem| Failure::usage(problem).hint("for example: --from 2024-06-01")),
    };
    if args.from.is_none() && args.to.is_none() {
        return Ok(None);
    }
    let (from, to) = (read(&args.from, i64::MIN)?, read(&args.to, i64::MAX)?);
    Ok(Some(Timestamp(from)..Timestamp(to)))
}

fn query(args: &ObjectLsArgs) -> Outcome<ListQuery> {
    let sizes = match (args.bytes_min, args.bytes_max) {
        (None, None) => None,
        (min, max) => Some(min.unwrap_or(0)..max.unwrap_or(u64::MAX).saturating_add(1)),
    };
    let protected = match (args.protected, args.unprotected) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    };
    Ok(ListQuery {
        prefix: args.prefix.clone(),
        delimiter: args.delimiter.clone(),
        filter: ObjectFilter {
            content_type: args.content_type.clone(),
            size: sizes,
            modified: times(args)?,
            protected,
        },
        after: None,
        limit: OBJECTS_LISTED_MAX,
    })
}

/// A line of a list: an object, or a common beginning of names.
enum Listed {
    Object(ObjectInfo),
    Prefix(String),
}

impl Listed {
    fn name(&self) -> &str {
        match self {
            Self::Object(info) => &info.name,
            Self::Prefix(prefix) => prefix,
        }
    }

    fn cells(&self) -> [Cell; 5] {
        let text = |text: &str| match text {
            "" => Cell::Missing,
            text => Cell::Text(text.to_owned()),
        };
        match self {
            Self::Object(info) => [
                Cell::Text(info.name.clone()),
                Cell::Bytes(info.size),
                Cell::Text(time_text(info.modified)),
                text(&info.attributes.content_type),
                info.attributes
                    .expires
                    .map_or(Cell::Missing, |time| Cell::Text(time_text(time))),
            ],
            Self::Prefix(prefix) => [
                Cell::Text(prefix.clone()),
                Cell::Missing,
                Cell::Missing,
                Cell::Missing,
                Cell::Missing,
            ],
        }
    }
}

/// Runs the command `tidalite object ls`.
pub(super) fn ls(args: &ObjectLsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let mut query = query(args)?;
    let (_db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let format = args.format.format;
    let columns = vec![
        Column::text("name"),
        Column::number("size"),
        Column::text("modified"),
        Column::text("type"),
        Column::text("expires"),
    ];
    // JSON contains all attributes, so it is not written as a table.
    let is_json = format == Format::Json;
    let mut sheet = terminal.sheet(format, columns);
    let (mut left, mut lines) = (args.limit, Vec::new());
    while left > 0 {
        query.limit = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(OBJECTS_LISTED_MAX);
        let page = bucket
            .list(&query)
            .map_err(|error| name_failure(&place, &error))?;
        let objects = page.objects.into_iter().map(Listed::Object);
        let mut listed: Vec<Listed> = objects
            .chain(page.prefixes.into_iter().map(Listed::Prefix))
            .collect();
        listed.sort_by(|a, b| a.name().cmp(b.name()));
        left -= listed.len() as u64;
        for listed in &listed {
            match (is_json, listed) {
                (false, listed) => sheet.row(&listed.cells())?,
                (true, Listed::Object(info)) => lines.push(Value::Object(json_of(info))),
                (true, Listed::Prefix(prefix)) => lines.push(json!({"prefix": prefix})),
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    if !is_json {
        return Ok(sheet.finish()?);
    }
    drop(sheet);
    for line in lines {
        writeln!(terminal.out, "{line}")?;
    }
    Ok(terminal.out.flush()?)
}

/// Runs the command `tidalite object info`.
pub(super) fn info(args: &ObjectInfoArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let info = object_info(&place, &bucket, &args.name)?;
    let out = &mut *terminal.out;
    if args.format.is_json() {
        writeln!(out, "{}", Value::Object(json_of(&info)))?;
        return Ok(out.flush()?);
    }
    let attributes = &info.attributes;
    writeln!(out, "{}", printable(&info.name))?;
    writeln!(out, "  Size: {} ({})", info.size, bytes_text(info.size))?;
    writeln!(out, "  Hash: {}", info.hash)?;
    writeln!(out, "  Created: {}", time_text(info.created))?;
    writeln!(out, "  Modified: {}", time_text(info.modified))?;
    writeln!(out, "  Chunk bytes: {}", info.chunk_bytes)?;
    if !attributes.content_type.is_empty() {
        writeln!(out, "  Type: {}", printable(&attributes.content_type))?;
    }
    if let Some(expires) = attributes.expires {
        writeln!(out, "  Expires: {}", time_text(expires))?;
    }
    if attributes.protected {
        writeln!(out, "  Protected: yes")?;
    }
    for (name, value) in &attributes.metadata {
        writeln!(out, "  Metadata: {}={}", printable(name), printable(value))?;
    }
    Ok(out.flush()?)
}
