//! `--where`: the filters of the command line as those of the library.

use crate::args::{ColumnArg, Filter, FilterArgs, ScanArgs, Values};
use crate::columns::{column_named, column_of};
use crate::database::Span;
use crate::exit::{Failure, Outcome};
use tidalite::{SeriesInfo, ValueFilter};

/// The filters of one series; `column` is the one that the command is about.
pub(super) fn of(
    args: &FilterArgs,
    info: &SeriesInfo,
    column: &ColumnArg,
) -> Outcome<Vec<ValueFilter>> {
    let filter = |filter: &Filter| {
        let place = match &filter.column {
            Some(name) => column_named(info, name)?,
            None => column_of(info, column)?,
        };
        Ok(on(place, filter.values))
    };
    args.filters.iter().map(filter).collect()
}

pub(super) fn on(column: usize, values: Values) -> ValueFilter {
    ValueFilter::new(column, (values.low, values.high))
}

/// The complaint when there is no point, or none that is wanted.
pub(super) fn nothing(args: &FilterArgs, span: &Span) -> Failure {
    if args.filters.is_empty() {
        return span.nothing();
    }
    Failure::not_found("no point in this range has values that --where wants")
        .hint("`tidalite aggregate --fn min,max` tells between which they lie")
}

/// The complaint when `scan` has nothing to print.
pub(super) fn nothing_scanned(args: &ScanArgs, span: &Span) -> Failure {
    if args.offset > 0 {
        return Failure::not_found("no point behind the offset")
            .hint("with a smaller --offset, or none, the earlier ones are printed");
    }
    if args.regex.is_some() {
        return Failure::not_found("no text in this range matches").hint(
            "a part of the text is enough; (?i) in front makes capitals match small letters",
        );
    }
    nothing(&args.wanted, span)
}
