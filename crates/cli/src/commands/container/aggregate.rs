//! `container aggregate`: figures of fields, for each step of time and each value of a field.

use super::line::value_json;
use super::place::{containers, expect, filter_failure};
use crate::args::{Asked, ContainerAggregateArgs, Function, figure_list};
use crate::exit::{Failure, Outcome};
use crate::output::{Cell, Column};
use crate::terminal::Terminal;
use crate::time::{TimeShow, duration};
use tidalite::Figure;
use tidalite::containers::{AggregateQuery, FieldValue, MessageFigure, MessageQuery, Select};

/// A column of the output.
enum Output {
    /// Number of messages.
    Messages,
    /// The figure with this index in the query.
    Figure(usize),
}

/// The figure of the library that a function of the command line selects.
fn message_figure(asked: &Asked) -> Outcome<MessageFigure> {
    let figure = match asked.function {
        Function::Figure(figure, _) => figure,
        _ => return Err(other_function(asked)),
    };
    Ok(match figure {
        Figure::Count => MessageFigure::Count,
        Figure::Min => MessageFigure::Min,
        Figure::Max => MessageFigure::Max,
        Figure::Sum => MessageFigure::Sum,
        Figure::Mean => MessageFigure::Mean,
        Figure::First => MessageFigure::First,
        Figure::Last => MessageFigure::Last,
        Figure::Increase => MessageFigure::Increase,
        _ => return Err(other_function(asked)),
    })
}

fn other_function(asked: &Asked) -> Failure {
    Failure::usage(format!(
        "--fn {}: of messages there are count, min, max, sum, mean, first, last and increase",
        asked.name
    ))
    .hint(
        "`tidalite window` has more, for the series of the container: 'TABLE{container=\"NAME\"}'",
    )
}

/// Figures of fields, in the form that the library expects.
type Figures = Vec<(String, MessageFigure)>;

/// The figures of the query, and the columns of the output.
fn figures(args: &ContainerAggregateArgs) -> Outcome<(Figures, Vec<Output>)> {
    let (mut figures, mut outputs) = (Vec::new(), Vec::new());
    for asked in figure_list::all(&args.functions) {
        let figure = message_figure(&asked)?;
        outputs.push(match (asked.of, figure) {
            (None, MessageFigure::Count) => Output::Messages,
            (None, _) => {
                return Err(Failure::usage(format!(
                    "--fn {name}: name the field, as in {name}(speed)",
                    name = asked.name
                )));
            }
            (Some(field), figure) => {
                figures.push((field, figure));
                Output::Figure(figures.len() - 1)
            }
        });
    }
    Ok((figures, outputs))
}

fn cell(value: &FieldValue) -> tidalite::Result<Cell> {
    Ok(match value {
        FieldValue::Null => Cell::Missing,
        FieldValue::Bool(value) => Cell::Bool(*value),
        FieldValue::Integer(x) => match (i64::try_from(*x), u64::try_from(*x)) {
            (Ok(x), _) => Cell::Int(x),
            (_, Ok(x)) => Cell::Unsigned(x),
            _ => Cell::Text(x.to_string()),
        },
        FieldValue::Float(x) => Cell::Computed(*x),
        FieldValue::Text(text) => Cell::Text(text.clone()),
        FieldValue::List(_) | FieldValue::Object(_) => Cell::Text(value_json(value)?),
    })
}

/// Runs the command `tidalite container aggregate`.
pub(super) fn run(args: &ContainerAggregateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let (place, name) = (args.of.place(), &args.of.name);
    let (from, to) = args.range.span()?;
    let (figures, outputs) = figures(args)?;
    let query = AggregateQuery {
        select: Select {
            query: MessageQuery {
                from,
                to,
                ..MessageQuery::default()
            },
            filter: args.filter.filter.clone(),
            fields: None,
        },
        step: args.step.map(duration),
        group_by: args.by.clone(),
        figures,
    };
    let (_db, snap) = place.open()?;
    let containers = containers(&place, &snap)?;
    expect(&place, &containers, name)?;
    let rows = containers
        .aggregate(name, &query)
        .map_err(|error| filter_failure(&place, &args.filter, &error))?;
    if rows.is_empty() {
        return Err(
            Failure::not_found(format!("no message of {name} matches")).hint(
                "`tidalite container stat` shows the times of the oldest and the newest message",
            ),
        );
    }
    let group = args.by.iter().map(|by| match &**by {
        // The column with the times already has this name.
        "time" => Column::text("_time"),
        by => Column::text(by),
    });
    let titles = figure_list::all(&args.functions);
    let columns = [Column::text("time")]
        .into_iter()
        .chain(group)
        .chain(titles.iter().map(|asked| Column::number(asked.title())));
    let mut sheet = terminal.sheet(args.format.format, columns.collect());
    let show = TimeShow::new(args.range.zone.tz.clone());
    for row in &rows {
        let mut cells = vec![Cell::Text(show.show(row.from.0.into()))];
        if args.by.is_some() {
            cells.push(cell(&row.group).map_err(|error| place.fail(&error))?);
        }
        for output in &outputs {
            cells.push(match output {
                Output::Messages => Cell::Count(row.messages),
                Output::Figure(at) => {
                    let value = row.figures.get(*at).unwrap_or(&FieldValue::Null);
                    cell(value).map_err(|error| place.fail(&error))?
                }
            });
        }
        sheet.row(&cells)?;
    }
    Ok(sheet.finish()?)
}
