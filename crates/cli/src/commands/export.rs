//! `export`: writes series as CSV or JSON lines that `import` can read.

use crate::args::{ExportArgs, ExportFormat};
use crate::columns::{all_shown_columns, shown_columns};
use crate::database::{Reader, Span, series_cell, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::export::Target;
use crate::output::{Cell, Column, Format, Sheet, plural};
use crate::style::Palette;
use crate::terminal::Terminal;
use crate::time::TimeShow;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use tidalite::query::Join;
use tidalite::{Selection, Series, SeriesInfo, Steps, Timestamp};

/// Runs the command `tidalite export`.
pub(crate) fn run(args: &ExportArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = match &args.patterns[..] {
        [] => reader.select("")?,
        patterns => reader.select_all(patterns)?,
    };
    let export = Export {
        args,
        reader: &reader,
        span: Span::of(&args.range)?,
        show: TimeShow::new(args.range.zone.tz.clone()),
    };
    let to_file = args
        .output
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    let rows = match to_file {
        Some(path) => {
            let mut target = Target::create(path, args.replace)?;
            let rows = export.write(&infos, &mut target)?;
            target.finish()?;
            let rows = plural(rows, "row", "rows");
            writeln!(terminal.out, "{rows} in {}", path.display())?;
            terminal.out.flush()?;
            return Ok(());
        }
        None => export.write(&infos, &mut *terminal.out)?,
    };
    if rows == 0 {
        return Err(export.span.nothing());
    }
    Ok(terminal.out.flush()?)
}

struct Export<'a> {
    args: &'a ExportArgs,
    reader: &'a Reader<'a>,
    span: Span,
    show: TimeShow,
}

impl Export<'_> {
    /// Writes all rows and returns the number of lines written.
    fn write(&self, infos: &[Arc<SeriesInfo>], out: &mut dyn Write) -> Outcome<u64> {
        if self.args.wide {
            self.wide(infos, out)
        } else {
            self.long(infos, out)
        }
    }

    fn sheet<'w>(&self, out: &'w mut dyn Write, columns: Vec<Column>) -> Sheet<&'w mut dyn Write> {
        let json = match self.args.format {
            Some(format) => format == ExportFormat::Json,
            None => self.args.output.as_deref().is_some_and(is_json),
        };
        let format = if json { Format::Json } else { Format::Csv };
        Sheet::new(out, format, Palette::PLAIN, columns)
    }

    fn time(&self, nanos: i128) -> Cell {
        match self.args.times {
            Some(unit) => {
                let (whole, rest) = (
                    nanos.div_euclid(unit.nanos()),
                    nanos.rem_euclid(unit.nanos()),
                );
                match i64::try_from(whole) {
                    // The time is printed as a number if it is a whole number of units.
                    Ok(whole) if rest == 0 => Cell::Int(whole),
                    _ => Cell::Text(decimal(nanos, unit.nanos())),
                }
            }
            None => Cell::Text(self.show.show(nanos)),
        }
    }

    /// Writes one line per row, series after series.
    fn long(&self, infos: &[Arc<SeriesInfo>], out: &mut dyn Write) -> Outcome<u64> {
        let names = all_shown_columns(infos, self.args.flags);
        let columns = [Column::text("series"), Column::text("time")]
            .into_iter()
            .chain(names.iter().map(Column::number))
            .collect();
        let mut sheet = self.sheet(out, columns);
        let mut rows = 0;
        for info in infos {
            let series = self.reader.series(info)?;
            let Some((from, to)) = self.span.in_series(&series) else {
                continue;
            };
            let place = |name: &String| info.schema.column(name);
            let places: Vec<Option<usize>> = names.iter().map(place).collect();
            let mut cells = vec![Cell::Missing; names.len() + 2];
            cells[0] = Cell::series(info);
            let mut written: Outcome = Ok(());
            let read = series
                .query(Steps(from)..=Steps(to))
                .for_each_vector(|vector| {
                    for (row, time) in vector.times().iter().enumerate() {
                        if written.is_err() {
                            return;
                        }
                        cells[1] = self.time(to_nanos(info.schema.unit, *time));
                        for (cell, place) in cells[2..].iter_mut().zip(&places) {
                            let Some(column) = *place else { continue };
                            match series_cell(&series, column, vector.words(column)[row]) {
                                Ok(found) => *cell = found,
                                Err(error) => {
                                    written = Err(self.reader.fail(&error));
                                    return;
                                }
                            }
                        }
                        rows += 1;
                        written = sheet.row(&cells).map_err(Failure::from);
                    }
                });
            read.map_err(|error| self.reader.fail(&error))?;
            written?;
        }
        sheet.finish()?;
        Ok(rows)
    }

    /// Writes one line for each time and combination of tags, with an output column per metric, or per column of a
    /// series that has several.
    fn wide(&self, infos: &[Arc<SeriesInfo>], out: &mut dyn Write) -> Outcome<u64> {
        let (mut groups, mut tags) = (BTreeMap::new(), Vec::new());
        let mut values: Vec<(String, &str)> = Vec::new();
        for info in infos {
            let Some(name) = &info.name else {
                return Err(Failure::usage(format!("{} has no name", info.label()))
                    .hint("--wide uses names as columns: omit it, or choose other series"));
            };
            for (tag, _) in name.tags() {
                if !tags.contains(tag) {
                    tags.push(tag.clone());
                }
            }
            for (_, value) in wide_columns(info) {
                match values.iter().find(|(known, _)| *known == value) {
                    None => values.push((value, name.metric())),
                    Some((_, metric)) if *metric == name.metric() => {}
                    // Two metrics have output columns of the same name, for example the metric `a.b` with one column,
                    // and the metric `a` with a column `b` among several columns. One output column cannot show the
                    // values of two metrics, so the export is refused.
                    Some(_) => return Err(two_columns(&value)),
                }
            }
            let series = self.reader.series(info)?;
            let group: &mut Vec<Series<'_>> = groups.entry(name.tags().to_vec()).or_default();
            group.push(series);
        }
        let values: Vec<String> = values.into_iter().map(|(value, _)| value).collect();
        if let Some(name) = ["time".to_owned()]
            .iter()
            .chain(&values)
            .find(|name| tags.contains(name))
            .or(values.iter().find(|value| *value == "time"))
        {
            return Err(two_columns(name));
        }
        let columns = [Column::text("time")]
            .into_iter()
            .chain(tags.iter().map(Column::text))
            .chain(values.iter().map(Column::number))
            .collect();
        let mut sheet = self.sheet(out, columns);
        let (mut rows, mut lost) = (0, 0);
        for (own, group) in groups {
            let (written, left_out) = self.group(&own, group, &tags, &values, &mut sheet)?;
            rows += written;
            lost += left_out;
        }
        sheet.finish()?;
        if lost > 0 {
            eprintln!(
                "note: {} omitted: a row has room only for the last of several points of a series at one time; without --wide all are written",
                plural(lost, "point", "points")
            );
        }
        Ok(rows)
    }

    /// Writes the rows of series with the same tags. Returns the number of lines, and the number of points for which no
    /// line has a place.
    fn group(
        &self,
        own: &[(String, String)],
        group: Vec<Series<'_>>,
        tags: &[String],
        values: &[String],
        sheet: &mut Sheet<&mut dyn Write>,
    ) -> Outcome<(u64, u64)> {
        let fail = |error: tidalite::Error| self.reader.fail(&error);
        let mut cells = vec![Cell::Missing; 1 + tags.len() + values.len()];
        for (cell, tag) in cells[1..].iter_mut().zip(tags) {
            if let Some((_, value)) = own.iter().find(|(key, _)| key == tag) {
                *cell = Cell::Text(value.clone());
            }
        }
        // For each series, its output columns and the selected rows.
        let mut places = Vec::new();
        let mut points = 0;
        for series in &group {
            let info = series.info();
            let columns = wide_columns(info).into_iter().map(|(column, name)| {
                let place = values.iter().position(|value| *value == name);
                (column, 1 + tags.len() + place.unwrap_or(0))
            });
            let span = self.span.in_series(series);
            if let Some((from, to)) = span {
                points += series
                    .query(Steps(from)..=Steps(to))
                    .count()
                    .map_err(fail)?;
            }
            let unit = info.schema.unit;
            let nanos = span.map(|(from, to)| (to_nanos(unit, from), to_nanos(unit, to)));
            places.push((columns.collect::<Vec<_>>(), nanos));
        }
        let spans = || places.iter().filter_map(|(_, span)| *span);
        let bound = |nanos: Option<i128>| {
            let nanos = nanos.unwrap_or(0);
            Timestamp(nanos.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
        };
        if spans().next().is_none() {
            return Ok((0, 0));
        }
        let from = bound(spans().map(|(from, _)| from).min());
        let to = bound(spans().map(|(_, to)| to).max());
        let selection = Selection::of(group);
        let opened = selection.series().map_err(fail)?;
        let mut joined = selection.query(from..=to).join(Join::Outer).map_err(fail)?;
        let (mut rows, mut placed) = (0, 0);
        while let Some(row) = joined.next().map_err(fail)? {
            let time = i128::from(row.time.0);
            let mut any = false;
            for (i, (columns, span)) in places.iter().enumerate() {
                let asked = span.is_some_and(|(from, to)| from <= time && time <= to);
                let words = row.words(i).filter(|_| asked);
                for (column, place) in columns {
                    cells[*place] = match words {
                        Some(words) => {
                            series_cell(&opened[i], *column, words[*column]).map_err(fail)?
                        }
                        None => Cell::Missing,
                    };
                }
                // A row that has only nulls counts as a row, too.
                any |= words.is_some();
                placed += u64::from(words.is_some());
            }
            if any {
                cells[0] = self.time(time);
                rows += 1;
                sheet.row(&cells)?;
            }
        }
        Ok((rows, points.saturating_sub(placed)))
    }
}

/// The columns of a series that --wide writes, each with the name of the output column: the metric, or `metric.column`
/// if the series has several columns.
fn wide_columns(info: &SeriesInfo) -> Vec<(usize, String)> {
    let metric = info.name.as_ref().map_or("", |name| name.metric());
    let shown = shown_columns(&info.schema, false);
    if let [column] = shown[..] {
        return vec![(column, metric.to_owned())];
    }
    let columns = shown.into_iter();
    columns
        .map(|column| {
            let name = &info.schema.columns[column].name;
            (column, format!("{metric}.{name}"))
        })
        .collect()
}

fn two_columns(name: &str) -> Failure {
    Failure::usage(format!("two columns would be called {name}"))
        .hint("omit --wide, or choose other series")
}

/// Whether the file's name is a name for JSON, such as `log.json` or `log.jsonl.gz`.
fn is_json(path: &std::path::Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    [".json", ".jsonl", ".ndjson"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Formats nanoseconds as a decimal number of a longer unit, with every digit.
fn decimal(nanos: i128, unit: i128) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, rest) = (nanos.abs() / unit, nanos.abs() % unit);
    let places = unit.ilog10() as usize;
    if places == 0 {
        return format!("{sign}{whole}");
    }
    let fraction = format!("{rest:0places$}");
    let fraction = fraction.trim_end_matches('0');
    let dot = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{dot}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_longer_units_keep_every_digit() {
        assert_eq!(decimal(1_500_000_000, 1_000_000_000), "1.5");
        assert_eq!(decimal(-1, 1_000_000_000), "-0.000000001");
        assert_eq!(decimal(2_000_001, 1_000), "2000.001");
        assert_eq!(decimal(7, 1), "7");
    }

    #[test]
    fn file_extensions_select_the_format() {
        for (name, json) in [
            ("a.jsonl", true),
            ("b.json.gz", true),
            ("c.ndjson.zst", true),
            ("d.csv.gz", false),
        ] {
            assert_eq!(is_json(std::path::Path::new(name)), json, "{name}");
        }
    }
}
