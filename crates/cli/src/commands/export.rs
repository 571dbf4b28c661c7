//! `export`: writes series as CSV, JSON lines, Parquet or Arrow that `import` can read.
//!
//! ```text
//! heads   the columns and their types
//! rows    rows in one of the formats
//! arrays  rows as arrays (feature sql)
//! ```

#[cfg(feature = "sql")]
mod arrays;
mod heads;
mod rows;

use crate::args::{ExportArgs, ExportFormat};
use crate::columns::{all_shown_columns, shown_columns};
use crate::database::{Reader, Span, series_cell, to_nanos};
use crate::exit::{Failure, Outcome};
use crate::export::Target;
use crate::output::{Cell, Format, plural};
use crate::terminal::Terminal;
use crate::time::TimeShow;
use heads::{Head, Kind, common, finest};
use rows::Rows;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use tidalite::query::Join;
use tidalite::{ColumnType, Selection, Series, SeriesInfo, Steps, Timestamp, Unit};

/// Runs the command `tidalite export`.
pub(crate) fn run(args: &ExportArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let reader = Reader::open(&args.file)?;
    let infos = match &args.patterns[..] {
        [] => reader.select("")?,
        patterns => reader.select_all(patterns)?,
    };
    let format = format_of(args);
    let is_typed = matches!(format, ExportFormat::Parquet | ExportFormat::Arrow);
    expect_typed(args, is_typed, terminal)?;
    let unit = finest(infos.iter().map(|info| info.schema.unit));
    let export = Export {
        args,
        format,
        unit: is_typed.then_some(unit),
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
            let mut target = match is_typed {
                true => Target::unchanged(path, args.replace)?,
                false => Target::create(path, args.replace)?,
            };
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

/// Refuses options that do not apply to Parquet and Arrow, and formats that this build does not support.
fn expect_typed(args: &ExportArgs, is_typed: bool, terminal: &Terminal<'_>) -> Outcome {
    if !is_typed {
        return Ok(());
    }
    if cfg!(not(feature = "sql")) {
        return Err(
            Failure::usage("this program was built without Parquet and Arrow")
                .hint("build it with SQL: cargo build --release --features sql"),
        );
    }
    if args.times.is_some() {
        return Err(
            Failure::usage("--times does not apply to Parquet and Arrow")
                .hint("their times are timestamps: omit the option"),
        );
    }
    let is_to_file = args
        .output
        .as_deref()
        .is_some_and(|path| path.as_os_str() != "-");
    if !is_to_file && terminal.columns.is_some() {
        return Err(
            Failure::usage("Parquet and Arrow are not printed on a terminal")
                .hint("give a file: --output FILE"),
        );
    }
    Ok(())
}

/// The format: named by the user, or derived from the extension of the file name.
fn format_of(args: &ExportArgs) -> ExportFormat {
    let by_name = || {
        args.output
            .as_deref()
            .map_or(ExportFormat::Csv, named_format)
    };
    args.format.unwrap_or_else(by_name)
}

struct Export<'a> {
    args: &'a ExportArgs,
    format: ExportFormat,
    /// The unit of timestamps, for formats that have timestamps with a unit.
    unit: Option<Unit>,
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

    fn rows<'w>(&self, out: &'w mut dyn Write, heads: Vec<Head>) -> Outcome<Rows<'w>> {
        let format = match self.format {
            ExportFormat::Csv => Format::Csv,
            ExportFormat::Json => Format::Json,
            #[cfg(feature = "sql")]
            ExportFormat::Parquet | ExportFormat::Arrow => {
                use tidalite_shell::sql::FileFormat;
                let format = match self.format {
                    ExportFormat::Parquet => FileFormat::Parquet,
                    _ => FileFormat::Arrow,
                };
                let unit = self.unit.unwrap_or_default();
                let arrays = arrays::Arrays::new(out, format, unit, &heads)?;
                return Ok(Rows::Arrays(Box::new(arrays)));
            }
            #[cfg(not(feature = "sql"))]
            ExportFormat::Parquet | ExportFormat::Arrow => Format::Csv,
        };
        Ok(Rows::text(out, format, heads))
    }

    fn time(&self, nanos: i128) -> Outcome<Cell> {
        if let Some(unit) = self.unit {
            let step = nanos.div_euclid(unit.nanos().into());
            return i64::try_from(step).map(Cell::Int).map_err(|_| {
                Failure::bad_input(format!(
                    "{} is outside of the years 1677 to 2262, which timestamps in nanoseconds have",
                    self.show.show(nanos)
                ))
                .hint("export it as CSV, or choose a range: --from 1678-01-01 --to 2262-01-01")
            });
        }
        Ok(match self.args.times {
            Some(unit) => {
                let (whole, rest) = (
                    nanos.div_euclid(unit.nanos()),
                    nanos.rem_euclid(unit.nanos()),
                );
                match i64::try_from(whole) {
                    // If the time is a whole number of units, it is printed as an integer.
                    Ok(whole) if rest == 0 => Cell::Int(whole),
                    _ => Cell::Text(decimal(nanos, unit.nanos())),
                }
            }
            None => Cell::Text(self.show.show(nanos)),
        })
    }

    /// The columns for the tags of these series, each preceded by its tag. They exist only in formats with types; in
    /// other formats the tags are part of the series' name. If a tag has the name of another column, `_tag` is appended
    /// to it.
    fn tags(&self, infos: &[Arc<SeriesInfo>], names: &[String]) -> Vec<(String, Head)> {
        let mut tags: Vec<String> = Vec::new();
        let infos = infos.iter().filter(|_| self.unit.is_some());
        for (tag, _) in infos.flat_map(|info| tags_of(info)) {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        let is_taken = |name: &str, tags: &[String]| {
            matches!(name, "series" | "time") || names.iter().chain(tags).any(|own| own == name)
        };
        let head = |tag: &String| {
            let mut name = tag.clone();
            let others: Vec<String> = tags.iter().filter(|own| *own != tag).cloned().collect();
            while is_taken(&name, &others) {
                name += "_tag";
            }
            (tag.clone(), Head::new(name, Kind::Names))
        };
        tags.iter().map(head).collect()
    }

    /// Writes one line per row, series after series.
    fn long(&self, infos: &[Arc<SeriesInfo>], out: &mut dyn Write) -> Outcome<u64> {
        let names = all_shown_columns(infos, self.args.flags);
        let types = infos.iter().flat_map(|info| {
            let columns = shown_columns(&info.schema, self.args.flags).into_iter();
            columns.map(|column| &info.schema.columns[column])
        });
        let types: Vec<(&str, Kind)> = types
            .map(|column| (column.name.as_str(), Kind::Values(column.ty)))
            .collect();
        let values = names.iter().map(|name| {
            let own = types.iter().filter(|(of, _)| of == name);
            let kind = own.map(|(_, kind)| *kind).reduce(common);
            Head::new(name, kind.unwrap_or(Kind::Values(ColumnType::F64)))
        });
        let tags = self.tags(infos, &names);
        let heads = [
            Head::new("series", Kind::Names),
            Head::new("time", Kind::Time),
        ];
        let heads = heads.into_iter();
        let heads = heads.chain(tags.iter().map(|(_, head)| head.clone()));
        let mut sheet = self.rows(out, heads.chain(values).collect())?;
        let first = 2 + tags.len();
        let mut rows = 0;
        for info in infos {
            let series = self.reader.series(info)?;
            let Some((from, to)) = self.span.in_series(&series) else {
                continue;
            };
            let place = |name: &String| info.schema.column(name);
            let places: Vec<Option<usize>> = names.iter().map(place).collect();
            let mut cells = vec![Cell::Missing; first + names.len()];
            cells[0] = Cell::series(info);
            for (cell, (tag, _)) in cells[2..].iter_mut().zip(&tags) {
                if let Some((_, value)) = tags_of(info).iter().find(|(key, _)| key == tag) {
                    *cell = Cell::Text(value.clone());
                }
            }
            let mut written: Outcome = Ok(());
            let read = series
                .query(Steps(from)..=Steps(to))
                .for_each_vector(|vector| {
                    for (row, time) in vector.times().iter().enumerate() {
                        if written.is_err() {
                            return;
                        }
                        match self.time(to_nanos(info.schema.unit, *time)) {
                            Ok(time) => cells[1] = time,
                            Err(failure) => {
                                written = Err(failure);
                                return;
                            }
                        }
                        for (cell, place) in cells[first..].iter_mut().zip(&places) {
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
                        written = sheet.row(&cells);
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
        let mut values: Vec<(String, &str, Kind)> = Vec::new();
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
            for (column, value) in wide_columns(info) {
                let kind = Kind::Values(info.schema.columns[column].ty);
                match values.iter_mut().find(|(known, ..)| *known == value) {
                    None => values.push((value, name.metric(), kind)),
                    Some((_, metric, known)) if *metric == name.metric() => {
                        *known = common(*known, kind)
                    }
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
        let heads = values.iter();
        let heads: Vec<Head> = heads
            .map(|(value, _, kind)| Head::new(value, *kind))
            .collect();
        let values: Vec<String> = values.into_iter().map(|(value, ..)| value).collect();
        if let Some(name) = ["time".to_owned()]
            .iter()
            .chain(&values)
            .find(|name| tags.contains(name))
            .or(values.iter().find(|value| *value == "time"))
        {
            return Err(two_columns(name));
        }
        let heads = [Head::new("time", Kind::Time)]
            .into_iter()
            .chain(tags.iter().map(|tag| Head::new(tag, Kind::Names)))
            .chain(heads)
            .collect();
        let mut sheet = self.rows(out, heads)?;
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

    /// Writes the rows of series with the same tags. Returns the number of lines, and the number of points that do not
    /// fit into any line.
    fn group(
        &self,
        own: &[(String, String)],
        group: Vec<Series<'_>>,
        tags: &[String],
        values: &[String],
        sheet: &mut Rows<'_>,
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
                // A row that contains only nulls still counts as a row.
                any |= words.is_some();
                placed += u64::from(words.is_some());
            }
            if any {
                cells[0] = self.time(time)?;
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

fn tags_of(info: &SeriesInfo) -> &[(String, String)] {
    info.name.as_ref().map_or(&[], |name| name.tags())
}

fn two_columns(name: &str) -> Failure {
    Failure::usage(format!("two columns would be called {name}"))
        .hint("omit --wide, or choose other series")
}

/// The format given by the extension of a file name, such as `log.json` or `log.jsonl.gz`.
fn named_format(path: &std::path::Path) -> ExportFormat {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let ends = |name: &str, ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    if ends(plain, &[".json", ".jsonl", ".ndjson"]) {
        ExportFormat::Json
    } else if ends(&name, &[".parquet"]) {
        ExportFormat::Parquet
    } else if ends(&name, &[".arrow", ".feather", ".ipc"]) {
        ExportFormat::Arrow
    } else {
        ExportFormat::Csv
    }
}

/// Formats nanoseconds as a decimal number of a longer unit, with all digits.
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
        for (name, format) in [
            ("a.jsonl", ExportFormat::Json),
            ("b.json.gz", ExportFormat::Json),
            ("c.ndjson.zst", ExportFormat::Json),
            ("d.csv.gz", ExportFormat::Csv),
            ("e.parquet", ExportFormat::Parquet),
            ("f.feather", ExportFormat::Arrow),
        ] {
            assert_eq!(named_format(std::path::Path::new(name)), format, "{name}");
        }
    }
}
