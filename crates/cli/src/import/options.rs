//! The options of an import, as its parts need them.

use crate::args::{ImportArgs, InputFormat, OnError};
use crate::exit::{Failure, Outcome};
use crate::import::digits::Digits;
use crate::import::field::Nulls;
use crate::import::given::Given;
use crate::import::known_series::KnownSeries;
use crate::import::layout::Wishes;
use crate::import::local_times::Policy;
use crate::import::open::{Form, Format};
use crate::import::source::{self, Source};
#[cfg(feature = "sql")]
use crate::import::typed_file;
use crate::time::{Epoch, TimeFormat};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The options that assign roles to columns, for an input that gives its columns these types, if it gives any.
/// With `series`, all rows go to a series that exists.
pub(crate) fn wishes(args: &ImportArgs, series: Option<&KnownSeries>, given: &[Given]) -> Wishes {
    let plain = Digits::default();
    let digits = match (args.decimal, args.thousands) {
        (None, None) => None,
        // Of point and comma, one separates the decimals and the other can only separate thousands.
        (Some(','), None) | (None, Some('.')) => Some(Digits {
            decimal: ',',
            thousands: Some('.'),
        }),
        (Some(decimal), thousands) => Some(Digits { decimal, thousands }),
        (None, thousands) => Some(Digits { thousands, ..plain }),
    };
    let mut wishes = Wishes {
        header: !args.no_header,
        time: args.time.clone(),
        time_format: args.time_format.clone(),
        zone: Some(args.tz.clone()),
        local_times: local_times(args),
        tags: args.tags.clone(),
        series: args.target.series.clone(),
        values: args.values.clone(),
        columns: args.columns.clone(),
        skipped: args.skip.clone(),
        digits,
        bad_cells_are_null: args.on_error == OnError::Null,
        given: given.to_vec(),
        has_semicolons: false,
    };
    if let Some(series) = series {
        series.set_roles(&mut wishes);
    }
    wishes.header |= !given.is_empty();
    wishes
}

/// The words that mean "no value". An input with typed columns distinguishes null from text.
pub(crate) fn nulls(args: &ImportArgs, given: &[Given]) -> Nulls {
    match given.is_empty() {
        true => Nulls::new(args.nulls.clone()),
        false => Nulls::marked(args.nulls.clone()),
    }
}

/// Opens an input.
pub(crate) fn open(args: &ImportArgs, path: &Path) -> Outcome<Source> {
    if !is_typed(args, path) {
        return source::open(path);
    }
    let given = [
        ("--no-header", args.no_header),
        ("--delimiter", args.delimiter.is_some()),
        ("--decimal", args.decimal.is_some()),
        ("--thousands", args.thousands.is_some()),
        ("--encoding", args.encoding.is_some()),
        ("--skip-lines", args.skip_lines > 0),
        ("--comment", args.comment.is_some()),
        ("--units", args.units),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(
            Failure::usage(format!("{option} does not apply to Parquet and Arrow"))
                .hint("their columns have names and types; omit the option"),
        );
    }
    #[cfg(feature = "sql")]
    return typed_file::open(path);
    #[cfg(not(feature = "sql"))]
    Err(Failure::usage("this program was built without Parquet and Arrow").hint(
        "build it with SQL: cargo build --release --features sql; or write the file as CSV first, for example: duckdb -c \"copy 'FILE' to 'data.csv'\"",
    ))
}

/// Whether an input is Parquet or Arrow: by the option, by its name, or by its first bytes.
fn is_typed(args: &ImportArgs, path: &Path) -> bool {
    const ENDS: [&str; 4] = ["parquet", "arrow", "feather", "ipc"];
    const MAGICS: [&[u8]; 2] = [b"PAR1", b"ARROW1"];
    match args.input_format {
        Some(form) => return matches!(form, InputFormat::Parquet | InputFormat::Arrow),
        None if path.as_os_str() == "-" => return false,
        None => {}
    }
    let end = path.extension().unwrap_or_default().to_string_lossy();
    if ENDS.contains(&end.to_ascii_lowercase().as_str()) {
        return true;
    }
    // The first bytes of a pipe could not be read again.
    let mut head = Vec::new();
    path.is_file()
        && File::open(path).is_ok_and(|file| file.take(8).read_to_end(&mut head).is_ok())
        && MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// Whether an input is in the line protocol: by the option, or by its name.
fn is_line_protocol(args: &ImportArgs, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    match args.input_format {
        Some(form) => form == InputFormat::Line,
        None => name.ends_with(".lp") && args.delimiter.is_none(),
    }
}

/// The unit of timestamps of the line protocol, if it is given. Options for columns are refused, because there are no
/// columns.
fn line_epoch(args: &ImportArgs) -> Outcome<Option<Epoch>> {
    let given = [
        ("--time", args.time.is_some()),
        ("--tag", !args.tags.is_empty()),
        ("--value", !args.values.is_empty()),
        ("--skip", !args.skip.is_empty()),
        ("--columns", !args.columns.is_empty()),
        ("--series", args.target.series.is_some()),
        ("--into", args.target.into.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!("{option} does not apply to the line protocol"))
            .hint("its lines name measurements, tags and fields; change names with --prefix, or add tags with --tag-value"));
    }
    match &args.time_format {
        None => Ok(None),
        Some(TimeFormat::Epoch(epoch)) => Ok(Some(*epoch)),
        Some(_) => Err(
            Failure::usage("timestamps of the line protocol are integers")
                .hint("give their unit: --time-format s, ms, us or ns"),
        ),
    }
}

/// The options about the text of an input.
pub(crate) fn format(args: &ImportArgs, path: &Path, given: &[Given]) -> Outcome<Format> {
    Ok(Format {
        form: match args.input_format {
            _ if !given.is_empty() => Some(Form::Typed),
            _ if is_line_protocol(args, path) => Some(Form::Line(line_epoch(args)?)),
            Some(InputFormat::Json) => Some(Form::Json),
            Some(InputFormat::Csv) => Some(Form::Csv(args.delimiter)),
            _ => args.delimiter.map(|delimiter| Form::Csv(Some(delimiter))),
        },
        encoding: args.encoding,
        comment: args.comment,
        skip_lines: args.skip_lines,
        has_units: args.units,
    })
}

/// The policy for local times that clocks repeat or skip.
pub(crate) fn local_times(args: &ImportArgs) -> Policy {
    Policy {
        ambiguous: args.ambiguous.into(),
        nonexistent: args.nonexistent.into(),
    }
}
