//! Calls every method that changes containers, with one transaction for each kind of change.

use super::containers_read::all_of_containers;
use super::messages_write::{allowed, steps};
use crate::model::clock;
use std::time::Duration;
use tidalite::containers::{
    Append, ContainerOptions, ContainerOverflow, ContainersMut, DeleteRange, Document, Expression,
    FieldValue, OnDuplicate, RestoreRange, Thinning, ThinningFigure, ThinningRule,
};
use tidalite::{Column, ColumnType, Database, Result, Timestamp, WriteTxn};

/// Number of rows that a step of maintenance or thinning reads, and maximum number of steps.
const BUDGET: u64 = 20;
const STEPS_MAX: usize = 200;
/// Maximum number of containers that are changed.
const CONTAINERS_MAX: usize = 20;
/// Number of kinds of changes.
const KINDS: u32 = 12;

pub(super) fn containers(db: &Database, name: &str) -> Result<()> {
    steps(db, KINDS, |tx, step| {
        // The clock stands at the newest commit, long ago, so deleted messages can still be restored. In the second
        // half of the steps everything has expired.
        if step >= KINDS / 2 {
            tx.confirm_clock();
        }
        changed(tx, name, step)
    })
}

fn changed(tx: &mut WriteTxn, name: &str, step: u32) -> Result<()> {
    match step {
        10 => allowed(tx.rename_containers(name, "renamed")).map(drop),
        11 => tx.drop_containers("renamed").map(drop),
        _ => match tx.containers_if_exists(name)? {
            Some(mut table) => change(&mut table, step),
            None => Ok(()),
        },
    }
}

fn names_of(table: &ContainersMut<'_>) -> Result<Vec<String>> {
    let list = table.view()?.list("", None, CONTAINERS_MAX)?;
    Ok(list.into_iter().map(|info| info.name).collect())
}

/// Appends to all containers and to a new one, under the rule of each for equal times.
fn append(table: &mut ContainersMut<'_>, names: &[String]) -> Result<()> {
    let json = r#"{"n": 7, "f": 0.5, "new": "x", "gps": {"lat": 1}, "keep": false}"#;
    let (document, empty) = (Document::from_json(json)?, Document::default());
    let names = names.iter().map(String::as_str).chain(["fresh"]);
    let mut messages = Vec::new();
    for name in names {
        for (i, document) in (0..30).zip([&document, &document, &empty].into_iter().cycle()) {
            messages.push(Append {
                idempotency_key: (i % 4 == 0).then_some(b"key 5"),
                ..Append::new(name, Timestamp(clock::START - i * 1_000_000_000), document)
            });
        }
    }
    allowed(table.append_batch(&messages)).map(drop)
}

fn change(table: &mut ContainersMut<'_>, step: u32) -> Result<()> {
    let names = match step {
        // Damage of the list must not prevent all other changes.
        0 => vec!["pump".to_owned(), "short".to_owned()],
        _ => names_of(table)?,
    };
    match step {
        0 => append(table, &names),
        1 => names.iter().try_for_each(|name| restored(table, name)),
        2 => names.iter().try_for_each(|name| edited(table, name)),
        3 => {
            allowed(table.restore_container("dropped", "dropped"))?;
            let own = ContainerOptions {
                on_duplicate: OnDuplicate::Merge,
                overflow: ContainerOverflow::DropOldest,
                messages_max: Some(20),
                ..ContainerOptions::default()
            };
            allowed(table.create_container("created", Some(&own)))?;
            for name in &names {
                allowed(table.set_options(name, Some(&own)))?;
            }
            append(table, &names)?;
            all_of_containers(&table.view()?)
        }
        4 => {
            for (i, name) in names.iter().enumerate() {
                allowed(table.rename_container(name, &format!("renamed {i}")))?;
            }
            let mut options = table.options()?;
            options.defaults.ttl = Some(Duration::from_secs(100));
            table.set_table_options(&options)
        }
        5 => {
            let rule = ThinningRule {
                age: Duration::from_nanos(1),
                step: Duration::from_secs(30),
            };
            let thinning = Thinning {
                rules: vec![rule],
                others: ThinningFigure::Mean,
                fields: vec![("n".to_owned(), ThinningFigure::Sum)],
            };
            for name in &names {
                table.set_thinning(name, Some(&thinning))?;
            }
            for _ in 0..STEPS_MAX {
                if !table.thin(BUDGET)?.more {
                    break;
                }
            }
            Ok(())
        }
        6 => table.rebuild_series(),
        7 => {
            let columns = [Column::nullable("added", ColumnType::I64)];
            for name in &names {
                allowed(table.add_columns(name, &columns))?;
            }
            Ok(())
        }
        8 => {
            for _ in 0..STEPS_MAX {
                if !table.maintain(BUDGET)?.more {
                    break;
                }
            }
            all_of_containers(&table.view()?)
        }
        _ => {
            for name in names.iter().skip(1) {
                table.drop_container(name)?;
            }
            table.clear()
        }
    }
}

fn restored(table: &mut ContainersMut<'_>, name: &str) -> Result<()> {
    let mut range = RestoreRange {
        examined_max: BUDGET,
        ..RestoreRange::default()
    };
    for _ in 0..STEPS_MAX {
        range.after = table.restore_messages(name, &range)?.next;
        if range.after.is_none() {
            break;
        }
    }
    Ok(())
}

fn edited(table: &mut ContainersMut<'_>, name: &str) -> Result<()> {
    let Some(info) = table.view()?.container(name)? else {
        return Ok(());
    };
    let mut document = Document::default();
    document.set("text", FieldValue::Text("edited".repeat(200)));
    if let (Some(oldest), Some(newest)) = (info.oldest, info.newest) {
        allowed(table.replace_message(name, (newest, 0), &document))?;
        table.delete_message(name, (oldest, 0))?;
    }
    let filter = Expression::parse("n > 20").ok();
    for dry_run in [true, false] {
        let mut range = DeleteRange {
            examined_max: BUDGET,
            dry_run,
            ..DeleteRange::default()
        };
        for _ in 0..STEPS_MAX {
            let deleted = allowed(table.delete_messages(name, &range, filter.as_ref()))?;
            range.after = deleted.and_then(|deleted| deleted.next);
            if range.after.is_none() {
                break;
            }
        }
    }
    Ok(())
}
