//! `put`: stores one point.

use crate::args::PutArgs;
use crate::database::{failure, failure_in, open_or_create, step_at};
use crate::exit::{Failure, Outcome};
use crate::import::field::{boolean, read_value};
use crate::import::number::Number;
use crate::output::printable;
use crate::store;
use crate::terminal::Terminal;
use crate::time::{TimeShow, is_relative, read_any};
use tidalite::{Column, Schema, SeriesName, Steps, Unit, Value};

/// The word for a missing value.
const NULL: &str = "null";

/// Runs the command `tidalite put`.
pub(crate) fn run(args: &PutArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    // Everything that does not depend on the database is checked before a file is created.
    let name = SeriesName::parse(&args.series).map_err(|error| {
        Failure::usage(error).hint("write NAME or 'NAME{tag=\"text\"}', in single quotes")
    })?;
    let name = name.to_string();
    let nanos = read_any(&args.time, &args.zone.tz).map_err(Failure::usage)?;
    let new_schema = match (path.exists(), schema_of(&args.values, args.unit.unit())) {
        (false, Err(failure)) => return Err(failure),
        (_, schema) => schema,
    };
    let database = open_or_create(path)?;
    let mut txn = database.begin_write().map_err(fail)?;
    let known = {
        let before = database.begin_read().map_err(fail)?;
        let series = before.series(&name).map_err(fail)?;
        series.map(|series| series.info().schema.clone())
    };
    let schema = match known {
        Some(schema) => schema,
        None => new_schema?,
    };
    let values = values_of(&args.values, &schema, &name)?;
    let size = i128::from(schema.unit.nanos());
    let nanos = match is_relative(args.time.trim()) {
        true => nanos.div_euclid(size) * size,
        false => nanos,
    };
    let step = step_at(schema.unit, nanos, &name).map_err(Failure::usage)?;
    let mut series = txn.series_with(&name, &schema).map_err(fail)?;
    series
        .insert_values(Steps(step), &values)
        .map_err(|error| failure_in(path, &error, schema.unit))?;
    store::commit(txn).map_err(fail)?;
    store::close(database).map_err(fail)?;
    let time = TimeShow::new(args.zone.tz.clone()).show(nanos);
    writeln!(terminal.out, "stored in {} at {time}", printable(&name))?;
    Ok(terminal.out.flush()?)
}

/// The schema of a new series for these values.
fn schema_of(values: &[String], unit: Unit) -> Outcome<Schema> {
    let [text] = values else {
        return Err(Failure::usage("a new series takes one value").hint(
            "create a series with several columns by an import: tidalite import FILE.tdl - --into NAME --columns ...",
        ));
    };
    let number = match boolean(text) {
        Some(value) => Number::Bool(value),
        None => Number::read(text).map_err(|why| {
            Failure::usage(format!("the value `{}` {why}", printable(text))).hint(
                "numbers have a decimal point; texts need a series with a column of texts: tidalite import FILE.tdl - --into NAME --columns 2=text:string --no-header",
            )
        })?,
    };
    let columns = match number {
        Number::Float(_) => Schema::point().columns,
        Number::Int(_) | Number::UInt(_) | Number::Bool(_) | Number::Text(_) => {
            vec![Column::new("value", number.type_alone(true))]
        }
    };
    Ok(Schema { unit, columns })
}

/// The values of all columns of a series. The flags of a default point are 0 unless given.
fn values_of(texts: &[String], schema: &Schema, name: &str) -> Outcome<Vec<Value>> {
    let columns = &schema.columns;
    let is_point = *columns == Schema::point().columns && texts.len() == 1;
    let given = match is_point {
        true => &columns[1..],
        false => &columns[..],
    };
    if texts.len() != given.len() {
        let names: Vec<String> = columns
            .iter()
            .map(|column| format!("{}:{}", column.name, column.ty.name()))
            .collect();
        return Err(Failure::usage(format!(
            "series {} takes {} values, not {}",
            printable(name),
            given.len(),
            texts.len()
        ))
        .hint(format!("give a value for each column: {}", names.join(" "))));
    }
    let mut values = vec![Value::I64(0); columns.len() - given.len()];
    for (text, column) in texts.iter().zip(given) {
        if column.nullable && text == NULL {
            values.push(Value::Null);
            continue;
        }
        let value = read_value(text, column.ty).ok_or_else(|| {
            Failure::usage(format!(
                "`{}` is not a valid {} for column `{}` of series {}",
                printable(text),
                column.ty.name(),
                printable(&column.name),
                printable(name)
            ))
            .hint("see the columns: tidalite series FILE.tdl NAME")
        })?;
        values.push(value);
    }
    Ok(values)
}
