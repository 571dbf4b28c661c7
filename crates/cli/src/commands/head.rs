//! `stat --head`: prints the head of a file without opening the database.

use crate::args::StatArgs;
use crate::database::failure;
use crate::exit::Outcome;
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use tidalite::Timestamp;

pub(super) fn run(args: &StatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let head = tidalite::monitor::inspect(path).map_err(|error| failure(path, &error.into()))?;
    let columns = vec![
        Column::text("place"),
        Column::number("at"),
        Column::number("commit"),
        Column::text("time"),
        Column::number("pages"),
        Column::number("log_at"),
        Column::number("log_bytes"),
        Column::text("problem"),
    ];
    let mut sheet = terminal.sheet(args.format.format, columns);
    let problem = |problem: &Option<String>| {
        let text = problem.clone();
        text.map_or(Cell::Missing, Cell::Text)
    };
    for (number, wrong) in (1..).zip(&head.superblocks) {
        let mut cells = vec![Cell::Missing; 8];
        cells[0] = Cell::Text(format!("superblock {number}"));
        cells[7] = problem(wrong);
        sheet.row(&cells)?;
    }
    for (number, place) in (1..).zip(&head.records) {
        let mut cells = vec![Cell::Missing; 8];
        cells[0] = Cell::Text(format!("record {number}"));
        cells[1] = Cell::Unsigned(place.at);
        match &place.record {
            Ok(record) => {
                cells[2] = Cell::Unsigned(record.txn.0);
                cells[3] = Cell::Text(Timestamp(record.time_ns).to_string());
                cells[4] = Cell::Unsigned(record.pages);
                if let Some((at, bytes)) = record.log {
                    cells[5] = Cell::Unsigned(at);
                    cells[6] = Cell::Unsigned(bytes);
                }
            }
            Err(wrong) => cells[7] = problem(&Some(wrong.clone())),
        }
        sheet.row(&cells)?;
    }
    Ok(sheet.finish()?)
}
