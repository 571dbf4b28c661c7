//! `container ls` and `container dropped`.

use super::place::containers;
use crate::args::ContainerLsArgs;
use crate::commands::messages::time_text;
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use tidalite::Timestamp;

/// Number of containers that are read at a time.
const PAGE: usize = 1_000;

fn time(time: Option<Timestamp>) -> Cell {
    time.map_or(Cell::Missing, |time| Cell::Text(time_text(time)))
}

/// Number of containers to read for the next page, if this many are still wanted.
fn page(left: u64) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(PAGE)
}

/// Runs the command `tidalite container ls`.
pub(super) fn ls(args: &ContainerLsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    let columns = vec![
        Column::text("name"),
        Column::number("messages"),
        Column::number("bytes"),
        Column::text("oldest"),
        Column::text("newest"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let (mut left, mut after) = (args.limit, None::<String>);
    while left > 0 {
        let listed = containers.list(&args.prefix, after.as_deref(), page(left));
        let listed = listed.map_err(|error| place.fail(&error))?;
        let Some(last) = listed.last() else { break };
        after = Some(last.name.clone());
        left -= listed.len() as u64;
        for info in listed {
            sheet.row(&[
                Cell::Text(info.name),
                Cell::Count(info.messages),
                Cell::Bytes(info.bytes),
                time(info.oldest),
                time(info.newest),
            ])?;
        }
    }
    Ok(sheet.finish()?)
}

/// Runs the command `tidalite container dropped`.
pub(super) fn dropped(args: &ContainerLsArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    let columns = vec![
        Column::text("name"),
        Column::number("messages"),
        Column::number("bytes"),
        Column::text("dropped"),
        Column::text("kept_until"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let (mut left, mut after) = (args.limit, None::<(String, u32)>);
    while left > 0 {
        let behind = after.as_ref().map(|(name, number)| (&**name, *number));
        let listed = containers.dropped(&args.prefix, behind, page(left));
        let listed = listed.map_err(|error| place.fail(&error))?;
        let Some(last) = listed.last() else { break };
        after = Some((last.name.clone(), last.number));
        left -= listed.len() as u64;
        for info in listed {
            sheet.row(&[
                Cell::Text(info.name),
                Cell::Count(info.messages),
                Cell::Bytes(info.bytes),
                time(Some(info.dropped_at)),
                time(info.free_at),
            ])?;
        }
    }
    Ok(sheet.finish()?)
}
