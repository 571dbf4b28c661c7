//! `hash get` and `hash scan`.

use super::lines::{Lines, Parts};
use super::place::{Forms, Opened, absent, hash_failure};
use crate::args::{HashGetArgs, HashPlace, HashScanArgs};
use crate::database::open;
use crate::exit::{Failure, Outcome};
use crate::terminal::Terminal;
use std::ops::Bound;
use tidalite::ReadTxn;

fn snapshot(place: &HashPlace) -> Outcome<ReadTxn> {
    let path = &place.file.file;
    let snap = open(path)?.begin_read();
    snap.map_err(|error| hash_failure(path, &place.table, &error))
}

/// Runs the command `tidalite hash get`.
pub(super) fn get(args: &HashGetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = &args.place;
    let snap = snapshot(place)?;
    let opened = Opened::of(&snap, &place.file.file, &place.table)?;
    let fail = |error: tidalite::Error| hash_failure(&place.file.file, &place.table, &error);
    let forms = Forms::of(place, Some(&opened.types));
    let lines = |parts| Lines {
        forms,
        json: args.format.is_json(),
        parts,
    };
    let table = &opened.table;
    let (records, parts) = match (&args.key, args.record) {
        (_, Some(number)) => {
            let record = table.record(number).map_err(fail)?;
            let record = record.ok_or_else(|| {
                Failure::not_found(format!("table {} has no record {number}", place.table))
                    .hint("`tidalite hash scan --records` prints all stored records")
            })?;
            (vec![record], Parts::All)
        }
        (None, None) => return Err(Failure::usage("a key, or --record")),
        (Some(key), None) if args.history => {
            let records = table.history(&forms.key(key)?).map_err(fail)?;
            if records.is_empty() {
                return Err(absent(key));
            }
            (records, Parts::NumberAndValue)
        }
        (Some(key), None) => {
            let numbers = table.duplicates(&forms.key(key)?).map_err(fail)?;
            let newest = numbers.max().ok_or_else(|| absent_typed(key, &opened))?;
            let numbers: Vec<u64> = match args.all {
                true => numbers.iter().collect(),
                false => vec![newest],
            };
            let mut records = Vec::with_capacity(numbers.len());
            for number in numbers {
                records.extend(table.record(number).map_err(fail)?);
            }
            let parts = match args.all {
                true => Parts::NumberAndValue,
                false => Parts::Value,
            };
            (records, parts)
        }
    };
    let lines = lines(parts);
    for record in &records {
        match &record.value {
            Some(value) if args.raw => terminal.out.write_all(value)?,
            None if args.raw => {
                return Err(
                    Failure::not_found(format!("record {} is a removal", record.number))
                        .hint("without --raw it is printed with its key"),
                );
            }
            _ => lines.record(record, terminal)?,
        }
    }
    Ok(terminal.out.flush()?)
}

/// The failure for a key that does not exist. If the type of the key cannot be typed as text, the message says so.
fn absent_typed(key: &str, opened: &Opened<'_>) -> Failure {
    let ty = opened.types.key();
    match crate::commands::key_forms::form_of(ty, true) {
        Some(_) => absent(key),
        None => absent(key).hint(format!(
            "the keys of this table are of type {ty}; --hex takes their bytes"
        )),
    }
}

/// Runs the command `tidalite hash scan`.
pub(super) fn scan(args: &HashScanArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = &args.place;
    let snap = snapshot(place)?;
    let opened = Opened::of(&snap, &place.file.file, &place.table)?;
    let fail = |error: tidalite::Error| hash_failure(&place.file.file, &place.table, &error);
    let forms = Forms::of(place, Some(&opened.types));
    let lines = Lines {
        forms,
        json: args.format.is_json(),
        parts: match args.records {
            true => Parts::All,
            false => Parts::KeyAndValue,
        },
    };
    let mut left = args.limit;
    if args.records {
        let mut printed = Ok(());
        let table = &opened.table;
        let scanned = table.each_record(0, |record| {
            if left == 0 {
                return false;
            }
            left -= 1;
            printed = lines.record(&record, terminal);
            printed.is_ok()
        });
        scanned.map_err(fail)?;
        printed?;
        return Ok(terminal.out.flush()?);
    }
    let bound = |text: &Option<String>| text.as_deref().map(|text| forms.key(text)).transpose();
    let (from, to) = (bound(&args.from)?, bound(&args.to)?);
    if (from.is_some() || to.is_some()) && !opened.is_ordered() {
        return Err(Failure::usage(format!(
            "--from and --to: the index of table {} holds hashes, which have no order",
            place.table
        ))
        .hint("without these options all keys are printed; an index of whole keys has ranges"));
    }
    let start = from.map_or(Bound::Unbounded, Bound::Included);
    let end = to.map_or(Bound::Unbounded, Bound::Excluded);
    for item in opened.table.range((start, end)).map_err(fail)? {
        let (_, numbers) = item.map_err(fail)?;
        for number in &numbers {
            if left == 0 {
                return Ok(terminal.out.flush()?);
            }
            if let Some(record) = opened.table.record(number).map_err(fail)? {
                left -= 1;
                lines.record(&record, terminal)?;
            }
        }
    }
    Ok(terminal.out.flush()?)
}
