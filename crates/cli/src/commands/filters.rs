//! `--where`: converts filters of the command line to filters of the library.

use crate::args::{ColumnArg, Filter, FilterArgs, ScanArgs, Values};
use crate::columns::{column_named, column_of};
use crate::database::Span;
use crate::exit::{Failure, Outcome};
use std::ops::Bound;
use tidalite::{Query, SeriesInfo};

/// A filter: the number of a column, and the bounds for its values.
pub(super) type ValueFilter = (usize, (Bound<f64>, Bound<f64>));

/// Adds filters to a query.
pub(super) fn filtered<'s>(query: Query<'s>, filters: &[ValueFilter]) -> Query<'s> {
    let filter = |query: Query<'s>, &(column, values): &ValueFilter| query.filter(column, values);
    filters.iter().fold(query, filter)
}

/// Converts the filters of the command line for one series; `column` is the column that the command queries.
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
    (column, (values.low, values.high))
}

/// The error if the selected range has no points, or none that match the filters.
pub(super) fn nothing(args: &FilterArgs, span: &Span) -> Failure {
    if args.filters.is_empty() {
        return span.nothing();
    }
    Failure::not_found("no point in this range matches --where")
        .hint("`tidalite aggregate --fn min,max` shows the range of the values")
}

/// The error if `scan` has no row to print.
pub(super) fn nothing_scanned(args: &ScanArgs, span: &Span) -> Failure {
    if args.offset > 0 {
        return Failure::not_found("no point after the offset")
            .hint("use a smaller --offset, or none, to print the earlier points");
    }
    if args.regex.is_some() {
        return Failure::not_found("no text in this range matches")
            .hint("matching a part of the text suffices; (?i) in front ignores case");
    }
    nothing(&args.wanted, span)
}
