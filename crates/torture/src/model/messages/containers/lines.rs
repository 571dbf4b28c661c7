//! The answers of a table of containers as lines of text: the answers that follow from the model, and the answers of a
//! snapshot.
//!
//! Each message with a number has a row in the series of its container, with exactly its numbers, and there is no other
//! row and no other series.

use super::document::{float_text, row_of, row_text};
use super::options;
use super::table::{Container, Containers, sums};
use crate::model::clock;
use crate::model::messages::DEVICES;
use std::ops::ControlFlow;
use tidalite::containers::{
    ContainerInfo, Deletion, Document, DroppedContainer, LatestValue, Select, Thinning,
};
use tidalite::{ReadTxn, Result, Series, Timestamp, Value};

/// The name of the series of a container.
fn series_of(name: &str) -> String {
    format!("{DEVICES}{{container=\"{name}\"}}")
}

fn row_line(time: i64, row: &str) -> String {
    format!("row {time}{row}")
}

fn message_line(
    (time, tie): (i64, u32),
    received: i64,
    is_protected: bool,
    document: &Document,
) -> String {
    let json = document.to_json().unwrap_or_default();
    format!("message {time} {tie} {received} {is_protected} {json}")
}

impl Container {
    fn info(&self, name: &str) -> ContainerInfo {
        let (messages, bytes) = sums(self.messages.values());
        let unprotected = self.unprotected();
        ContainerInfo {
            name: name.to_owned(),
            number: self.number,
            options: self.options(),
            has_own_options: self.own.is_some(),
            messages,
            bytes,
            protected_messages: messages - unprotected.0,
            protected_bytes: bytes - unprotected.1,
            oldest: self.messages.keys().next().map(|key| Timestamp(key.0)),
            newest: (self.messages.keys().next_back()).map(|key| Timestamp(key.0)),
            created: Timestamp(self.created),
            changes: self.totals[3],
            rejected: self.totals[0],
            expired: self.totals[1],
            rotated: self.totals[2],
        }
    }

    fn expected(&self, name: &str, lines: &mut Vec<String>) {
        lines.push(format!("{:?}", self.info(name)));
        for (key, message) in &self.messages {
            let (received, is_protected) = (message.received, message.is_protected);
            let line = message_line(*key, received, is_protected, &message.document);
            lines.push(line);
        }
        for (time, row) in self.rows() {
            lines.push(row_line(time, &row));
        }
        for (field, (time, value)) in &self.latest {
            lines.push(format!("latest {field} {time} {value:?}"));
        }
        for (number, deletion) in self.deletions.iter().rev() {
            let (messages, bytes) = sums(deletion.messages.values());
            let deletion = Deletion {
                number: *number,
                deleted_at: Timestamp(deletion.deleted_at),
                free_at: Timestamp(deletion.free_at),
                messages,
                bytes,
            };
            lines.push(format!("{deletion:?}"));
        }
        if let Some((rules, _)) = &self.thinning {
            lines.push(format!("{:?}", options::thinning(*rules)));
        }
    }

    /// The rows of the series: messages with the same time in the order of their ties.
    fn rows(&self) -> impl Iterator<Item = (i64, String)> {
        let messages = self.messages.iter();
        messages.filter_map(|(key, message)| Some((key.0, row_of(&message.document)?)))
    }
}

impl Containers {
    /// The lines that a snapshot must give at a time before all others.
    pub(crate) fn expected(&self, lines: &mut Vec<String>) {
        lines.push(DEVICES.to_owned());
        let stored = self.live.values();
        let stored = sums(stored.flat_map(|container| container.messages.values()));
        lines.push(format!("{} {stored:?}", self.live.len()));
        let mut dropped: Vec<_> = self.dropped.iter().collect();
        dropped.sort_by_key(|dropped| (&dropped.name, dropped.container.number));
        for dropped in dropped {
            let (messages, bytes) = sums(dropped.container.messages.values());
            let dropped = DroppedContainer {
                name: dropped.name.clone(),
                number: dropped.container.number,
                messages,
                bytes,
                dropped_at: Timestamp(dropped.dropped_at),
                free_at: Some(Timestamp(dropped.free_at)),
            };
            lines.push(format!("{dropped:?}"));
        }
        for (name, container) in &self.live {
            container.expected(name, lines);
        }
    }
}

/// Adds the lines of a snapshot, read at a time before all others.
///
/// # Errors
/// An error of the database.
pub(crate) fn answers(snap: &ReadTxn, lines: &mut Vec<String>) -> Result<()> {
    let mut series: Vec<String> = snap
        .list(DEVICES)?
        .iter()
        .map(|info| info.label())
        .collect();
    if let Some(table) = snap.containers(DEVICES)? {
        lines.push(DEVICES.to_owned());
        let stat = table.stat()?;
        let stored = (stat.messages, stat.bytes);
        lines.push(format!("{} {stored:?}", stat.containers));
        for dropped in table.dropped("", None, usize::MAX)? {
            lines.push(format!("{dropped:?}"));
        }
        for info in table.list("", None, usize::MAX)? {
            let name = info.name.as_str();
            lines.push(format!("{info:?}"));
            table.each(name, &Select::default(), &mut |found| {
                let key = (found.time().0, found.tie());
                let received = found.received().0;
                let document = found.document()?;
                let line = message_line(key, received, found.is_protected(), &document);
                lines.push(line);
                Ok(ControlFlow::Continue(()))
            })?;
            if let Some(series) = snap.series(&series_of(name))? {
                rows(&series, lines)?;
            }
            series.retain(|label| *label != series_of(name));
            for LatestValue { field, time, value } in sorted(table.latest(name)?) {
                lines.push(format!("latest {field} {} {value:?}", time.0));
            }
            for deletion in table.deletions(name, None, usize::MAX)? {
                lines.push(format!("{deletion:?}"));
            }
            let thinning: Option<Thinning> = table.thinning(name)?;
            lines.extend(thinning.map(|rules| format!("{rules:?}")));
        }
    }
    lines.extend(
        series
            .iter()
            .map(|label| format!("{label} has no container")),
    );
    Ok(())
}

fn sorted(mut latest: Vec<LatestValue>) -> Vec<LatestValue> {
    latest.sort_by(|a, b| a.field.cmp(&b.field));
    latest
}

fn rows(series: &Series<'_>, lines: &mut Vec<String>) -> Result<()> {
    let columns = &series.info().schema.columns;
    series.query(..).for_each(|time, words| {
        let cells = columns.iter().zip(words);
        let cells = cells.filter_map(|(column, word)| {
            let number = match column.value(*word) {
                Value::F64(number) => float_text(number),
                Value::I64(number) => number.to_string(),
                Value::U64(number) => number.to_string(),
                _ => return None,
            };
            Some((column.name.clone(), number))
        });
        lines.push(row_line(time, &row_text(cells.collect())));
    })?;
    Ok(())
}

/// Describes a message whose numbers are not in the series of its container. The series may have other rows.
///
/// # Errors
/// An error of the database.
pub(crate) fn missing_row(snap: &ReadTxn) -> Result<Option<String>> {
    let Some(table) = clock::in_the_past(|| snap.containers(DEVICES))? else {
        return Ok(None);
    };
    for info in table.list("", None, usize::MAX)? {
        let (mut found, mut known) = (Vec::new(), Vec::new());
        table.each(&info.name, &Select::default(), &mut |message| {
            let row = row_of(&message.document()?);
            known.extend(row.map(|row| row_line(message.time().0, &row)));
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(series) = snap.series(&series_of(&info.name))? {
            rows(&series, &mut found)?;
        }
        if let Some(row) = known.iter().find(|row| !found.contains(row)) {
            return Ok(Some(format!("{}: {row} is missing", info.name)));
        }
    }
    Ok(None)
}
