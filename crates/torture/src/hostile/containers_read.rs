//! Calls every method that reads containers.

use super::errors::keep;
use std::ops::ControlFlow;
use std::time::Duration;
use tidalite::containers::{
    AggregateQuery, Containers, Expression, MessageFigure, MessageQuery, Projection, Select,
};
use tidalite::{ReadTxn, Result};

/// Maximum number of entries that one call returns.
const MOST: usize = 2_000;
/// Maximum number of pages, and number of messages of a page.
const PAGES_MAX: usize = 20;
const PAGE: u64 = 30;
/// Maximum number of containers whose messages are read.
const CONTAINERS_MAX: usize = 20;

pub(super) fn containers(snap: &ReadTxn, name: &str) -> Result<()> {
    match snap.containers(name)? {
        Some(containers) => all_of_containers(&containers),
        None => Ok(()),
    }
}

/// A filter that reads fields of every kind. Damage may have changed the types of values; the call then returns an
/// error.
fn filter() -> Option<Expression> {
    Expression::parse("n % 2 == 0 && exists(gps.deep.x) || text ~ 'long*' || keep").ok()
}

pub(super) fn all_of_containers(table: &Containers<'_>) -> Result<()> {
    let mut seen = Ok(());
    let _ = (table.name(), table.options());
    keep(&mut seen, table.stat().map(drop));
    keep(&mut seen, table.check(&mut |_| ()));
    keep(&mut seen, table.field_names().map(drop));
    for number in [0, 2, u32::MAX] {
        keep(&mut seen, table.container_name(number).map(drop));
    }
    keep(&mut seen, table.dropped("d", None, MOST).map(drop));
    let after = Some(("dropped", 0));
    keep(&mut seen, table.dropped("", after, MOST).map(drop));
    keep(&mut seen, table.list("p", Some("a"), MOST).map(drop));
    match table.list("", None, CONTAINERS_MAX) {
        Ok(list) => {
            let names: Vec<&str> = list.iter().map(|info| info.name.as_str()).collect();
            for name in &names {
                keep(&mut seen, one(table, name));
            }
            keep(&mut seen, merged(table, &names));
        }
        Err(error) => keep(&mut seen, Err(error)),
    }
    seen
}

fn one(table: &Containers<'_>, name: &str) -> Result<()> {
    let mut seen = Ok(());
    keep(&mut seen, table.container(name).map(drop));
    keep(&mut seen, table.latest(name).map(drop));
    let latest = table.latest_of(name, &["n", "gps", "none"]);
    keep(&mut seen, latest.map(drop));
    keep(&mut seen, table.thinning(name).map(drop));
    keep(&mut seen, table.deletions(name, None, MOST).map(drop));
    keep(&mut seen, table.deletions(name, Some(1), MOST).map(drop));
    // Damage may have made the name too long for a series.
    drop(table.series_name(name));
    let info = table.container(name);
    if let Ok(Some(newest)) = info.map(|info| info.and_then(|info| info.newest)) {
        keep(&mut seen, table.get(name, newest).map(drop));
    }
    for reverse in [false, true] {
        keep(&mut seen, pages(table, name, reverse));
    }
    let figures = [
        ("n", MessageFigure::Increase),
        ("f", MessageFigure::Mean),
        ("text", MessageFigure::Last),
        ("gps.deep.x", MessageFigure::Sum),
    ];
    let figures = figures.map(|(field, figure)| (field.to_owned(), figure));
    let long = Duration::from_nanos(1 << 40);
    for (step, group_by) in [(None, Some("keep".to_owned())), (Some(long), None)] {
        let query = AggregateQuery {
            step,
            group_by,
            figures: figures.to_vec(),
            ..AggregateQuery::default()
        };
        keep(&mut seen, table.aggregate(name, &query).map(drop));
    }
    seen
}

fn pages(table: &Containers<'_>, name: &str, reverse: bool) -> Result<()> {
    let mut select = Select {
        query: MessageQuery {
            reverse,
            limit: PAGE,
            ..MessageQuery::default()
        },
        filter: filter().filter(|_| reverse),
        fields: match reverse {
            true => Some(Projection::new(&["gps.lat", "text"])?),
            false => None,
        },
    };
    for _ in 0..PAGES_MAX {
        select.query.after = table.page(name, &select)?.next;
        if select.query.after.is_none() {
            break;
        }
    }
    Ok(())
}

fn merged(table: &Containers<'_>, names: &[&str]) -> Result<()> {
    let mut left = MOST;
    let select = Select::default();
    let ended = table.each_merged(names, &select, &mut |found| {
        let _ = (found.key(), found.received(), found.is_protected());
        found.document()?;
        left -= 1;
        Ok(match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    });
    ended.map(drop)
}
