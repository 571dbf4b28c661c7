//! Converts lines of the line protocol to rows: each field becomes a row of its own series.
//!
//! ```text
//! weather,site=north temp=21.5,hum=40i 1401581400000000000
//!   -->  weather.temp{site="north"}   2014-06-01T00:10:00Z   21.5
//!        weather.hum{site="north"}    2014-06-01T00:10:00Z   40
//! ```
//!
//! A new series has the type of its first value: doubles, i64, u64, bool or text.

use crate::import::batch::{BadRow, Batch, Combinations};
use crate::import::blocks::LinesBefore;
use crate::import::field::NOT_UTF_8;
use crate::import::number::Number;
use crate::output::printable;
use crate::time::Epoch;
use tidalite::SeriesName;
use tidalite::limits::TEXT_BYTES_MAX;
use tidalite_line_protocol::{Line, Value, lines};

/// Parses the lines of a block into a batch.
pub(crate) fn read(bytes: &[u8], epoch: Epoch, known: &mut Combinations, batch: &mut Batch) {
    let mut before = LinesBefore::default();
    let mut found = Vec::new();
    for (start, line) in lines(bytes) {
        let read = std::str::from_utf8(line)
            .map_err(|_| format!("the line {NOT_UTF_8}"))
            .and_then(|line| fields(line, &mut found, known, batch));
        match read {
            Ok(Some(time)) => {
                let time = i128::from(time) * epoch.nanos();
                for (number, value) in found.drain(..) {
                    batch.values.push(Some(value));
                    batch.end_row(time, start, number);
                }
            }
            Ok(None) => {}
            Err(why) => {
                let line = batch.block.line_in(bytes, start, &mut before);
                batch.bad.push((batch.times.len(), BadRow { line, why }));
            }
        }
    }
}

/// The first timestamp in these lines, and the unit that fits it, if all timestamps are too small for nanoseconds of
/// today: they would lie within three years of 1970.
pub(crate) fn near_1970(bytes: &[u8]) -> Option<(i64, Epoch)> {
    let times = lines(bytes).filter_map(|(_, line)| {
        let line = std::str::from_utf8(line).ok()?;
        Line::parse(line).ok()??.time()
    });
    let times: Vec<i64> = times.collect();
    let largest = times.iter().map(|time| time.unsigned_abs()).max()?;
    let likely = Epoch::of_magnitude(i128::from(largest));
    (likely != Epoch::Nanos).then_some((*times.first()?, likely))
}

/// Parses a line: returns its time, and in `found` the number of its series and the value of each field. `None` for a
/// blank line and a comment.
fn fields(
    line: &str,
    found: &mut Vec<(u32, Number)>,
    known: &mut Combinations,
    batch: &mut Batch,
) -> Result<Option<i64>, String> {
    let complaint = |error: tidalite_line_protocol::Error| printable(&error.to_string());
    found.clear();
    let Some(line) = Line::parse(line).map_err(complaint)? else {
        return Ok(None);
    };
    let texts = batch.texts.len();
    for field in line.fields() {
        let field = field
            .map_err(complaint)
            .inspect_err(|_| batch.texts.truncate(texts))?;
        let number = match known.of_line(line.key(), field.written) {
            Some(number) => number,
            None => {
                let name =
                    name_of(&line, &field.key()).inspect_err(|_| batch.texts.truncate(texts))?;
                let number = known.number(&[name], batch);
                known.add_line(line.key(), field.written, number);
                number
            }
        };
        let value = match field.value {
            Value::Float(value) => Number::Float(value),
            Value::Integer(value) => Number::Int(value),
            Value::Unsigned(value) => Number::UInt(value),
            Value::Boolean(value) => Number::Bool(value),
            Value::String(text) if text.len() > TEXT_BYTES_MAX => {
                batch.texts.truncate(texts);
                let (key, most) = (printable(field.written), TEXT_BYTES_MAX);
                return Err(format!(
                    "the text of field `{key}` has more than {most} bytes"
                ));
            }
            Value::String(text) => Number::Text(batch.texts.push(text.as_bytes())),
        };
        found.push((number, value));
    }
    let time = line.time();
    if time.is_none() {
        batch.texts.truncate(texts);
    }
    time.map(Some)
        .ok_or_else(|| "the line has no timestamp".to_owned())
}

/// The name of the series of a field.
fn name_of(line: &Line<'_>, field: &str) -> Result<String, String> {
    let series = line
        .series()
        .map_err(|error| printable(&error.to_string()))?;
    let metric = format!("{}.{field}", series.measurement);
    let tags = series.tags.iter();
    let tags = tags.map(|(key, value)| (key.to_string(), value.to_string()));
    let name = SeriesName::new(metric, tags);
    name.map(|name| name.to_string())
        .map_err(|error| printable(&error.to_string()))
}
