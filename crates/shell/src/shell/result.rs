//! Prints one result.

use crate::failure::Failure;
use crate::format::format;
use crate::progress::Progress;
use crate::settings::{Mode, Settings};
use crate::sink::Sink;
use crate::streams::Streams;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, Instant};
use tidalite_sql::arrow::array::RecordBatch;
use tidalite_sql::arrow::datatypes::SchemaRef;
use tidalite_sql::arrow::error::ArrowError;

/// The destination of results, and their settings.
pub(super) struct Printer<'p, 'a> {
    pub settings: &'p Settings,
    pub streams: &'p mut Streams<'a>,
    /// The file of `.output`.
    pub file: Option<&'p mut BufWriter<File>>,
}

impl Printer<'_, '_> {
    /// Prints the batches of a result as they arrive. `affected` is the number of rows that a statement without result
    /// columns has changed. `computed` is called after the last batch.
    pub(super) fn print(
        self,
        (schema, affected): (&SchemaRef, Option<u64>),
        batches: impl Iterator<Item = tidalite_sql::Result<RecordBatch>>,
        progress: Option<Progress>,
        start: Instant,
        computed: impl FnOnce(),
    ) -> Result<(), Failure> {
        let Self {
            settings,
            streams,
            file,
        } = self;
        let is_file = file.is_some();
        let fails = move |error: io::Error| {
            let error = match error.downcast::<tidalite_sql::Error>() {
                Ok(error) => return Failure::Sql(error),
                Err(error) => error,
            };
            match error.downcast::<ArrowError>() {
                Ok(error) => Failure::Sql(error.into()),
                Err(error) if is_file => Failure::File(error),
                Err(error) => Failure::Output(error),
            }
        };
        let screen = match is_file {
            true => None,
            false => (streams.screen)(),
        };
        let mut sink = match (file, screen) {
            (Some(file), _) => Sink::stream(file, progress),
            (None, None) => Sink::stream(streams.out, progress),
            (None, Some(screen)) => {
                let pager = streams.pager.clone();
                Sink::paged(streams.out, pager, screen.height, progress)
            }
        };
        let width = settings.width.or(screen.map(|screen| screen.width));
        let mut format = format(settings, width, schema);
        // A statement without a result has no columns.
        let has_columns = !schema.fields().is_empty();
        let write = || -> Result<u64, Failure> {
            let mut rows = 0_u64;
            for batch in batches {
                let batch = batch.map_err(Failure::Sql)?;
                rows += batch.num_rows() as u64;
                sink.rows(rows);
                if has_columns {
                    format.batch(&batch, &mut sink).map_err(fails)?;
                }
                if sink.is_left() {
                    break;
                }
            }
            Ok(rows)
        };
        let written = write();
        let time = start.elapsed();
        computed();
        let written = written.and_then(|rows| {
            if !has_columns {
                if let (Some(rows), Mode::Box) = (affected, settings.mode) {
                    writeln!(sink, "{}", plural(rows)).map_err(fails)?;
                }
                return Ok(false);
            }
            format.finish(&mut sink).map_err(fails)?;
            if format.counts_rows() {
                let end = count_text(rows, settings.timer.then_some(time));
                writeln!(sink, "{end}").map_err(fails)?;
            }
            Ok(format.counts_rows())
        });
        // The pager must be ended in any case.
        sink.finish().map_err(fails)?;
        let has_time = written?;
        if settings.timer && !has_time {
            // Standard error may be closed; this is not an error of the statement.
            let _ = writeln!(streams.err, "time: {}", time_text(time));
        }
        Ok(())
    }
}

/// The line below a table.
fn count_text(rows: u64, time: Option<Duration>) -> String {
    let rows = plural(rows);
    match time {
        Some(time) => format!("({rows}, {})", time_text(time)),
        None => format!("({rows})"),
    }
}

fn plural(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

fn time_text(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts_rows() {
        let time = Duration::from_micros(12_345);
        assert_eq!(count_text(0, None), "(0 rows)");
        assert_eq!(count_text(1, Some(time)), "(1 row, 0.012 s)");
    }
}
