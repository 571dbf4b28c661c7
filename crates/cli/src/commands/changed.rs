//! `changed`: prints the times at which a version differs from an older version.

use crate::args::ChangedArgs;
use crate::database::{Reader, open, time_cell};
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::sync::Arc;
use tidalite::{SeriesInfo, Steps};

/// Runs the command `tidalite changed`.
pub(crate) fn run(args: &ChangedArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let database = open(path)?;
    let now = Reader::at(&database, path, args.file.pin.as_deref())?;
    let then = Reader::at(&database, path, Some(&args.since))?;
    let show = TimeShow::new(args.zone.tz.clone());
    let columns = vec![
        Column::text("series"),
        Column::text("first"),
        Column::text("last"),
        Column::number("points_then"),
        Column::number("points_now"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    for info in of_either(&now, &then, &args.which.pattern)? {
        let fail = |error: tidalite::Error| now.fail(&error);
        let unit = info.schema.unit;
        let steps = args
            .resolution
            .map(|width| width.unsigned_abs() / unit.nanos().unsigned_abs());
        for (from, to) in now.changed_since(&then, info.id, steps)? {
            let mut cells = vec![
                Cell::series(&info),
                time_cell(&show, unit, from),
                time_cell(&show, unit, to),
            ];
            for reader in [&then, &now] {
                cells.push(match reader.series_if_there(info.id)? {
                    Some(series) => Cell::Count(
                        series
                            .query(Steps(from)..=Steps(to))
                            .count()
                            .map_err(fail)?,
                    ),
                    None => Cell::Missing,
                });
            }
            sheet.row(&cells)?;
        }
    }
    Ok(sheet.finish()?)
}

/// The series that the pattern selects in the newer or the older version. A series that still exists has its newer
/// name.
fn of_either(now: &Reader<'_>, then: &Reader<'_>, pattern: &str) -> Outcome<Vec<Arc<SeriesInfo>>> {
    let (mut infos, older) = match (now.select(pattern), then.select(pattern)) {
        (Ok(infos), Ok(older)) => (infos, older),
        (Ok(infos), Err(_)) => (infos, Vec::new()),
        (Err(_), Ok(older)) => (Vec::new(), older),
        (Err(failure), Err(_)) => return Err(failure),
    };
    for info in older {
        if infos.iter().any(|known| known.id == info.id) {
            continue;
        }
        infos.push(match now.series_if_there(info.id)? {
            Some(series) => Arc::new(series.info().clone()),
            None => info,
        });
    }
    infos.sort_by_cached_key(|info| info.label());
    Ok(infos)
}
