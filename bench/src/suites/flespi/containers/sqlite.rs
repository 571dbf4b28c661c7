//! Messages in SQLite: a table with the key (device, time, seq) and the JSON as text; two of its numbers also have
//! columns. Each commit syncs the write-ahead log (`synchronous=FULL`), as in `engine::sqlite`.

use std::path::Path;

use ::tidalite::containers::{Document, FieldNumber, FieldValue};
use rusqlite::{CachedStatement, Connection, Row};

use super::answer::{Answer, Form, HOUR, Hour, Reading, Source, Span, projected, units};
use super::face::{Reader, Writer};
use super::feed::{FILTER_SQL, Telemetry};
use crate::engine::Result;

pub(super) struct Sqlite(Connection);

fn open(dir: &Path, data_bytes: u64) -> Result<Connection> {
    let connection = Connection::open(dir.join("bench.sqlite"))?;
    let cache_kib = data_bytes.clamp(64 << 20, 4 << 30) >> 10;
    connection.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-{cache_kib};
         PRAGMA mmap_size={};",
        data_bytes * 2
    ))?;
    Ok(connection)
}

impl Sqlite {
    pub(super) fn create(dir: &Path, data_bytes: u64) -> Result<Self> {
        let connection = open(dir, data_bytes)?;
        connection.execute_batch(
            "CREATE TABLE messages(device INTEGER NOT NULL, time INTEGER NOT NULL, seq INTEGER NOT NULL,
             speed REAL, battery REAL, body TEXT NOT NULL, PRIMARY KEY(device, time, seq)) WITHOUT ROWID;",
        )?;
        Ok(Self(connection))
    }

    fn insert(&self, messages: &[Telemetry], form: Form) -> Result<()> {
        // Messages with equal times would need ascending numbers; in this benchmark all times are different.
        let sql = match form {
            Form::Prepared => "INSERT INTO messages VALUES(?1, ?2, 0, ?3, ?4, ?5)",
            Form::Text => {
                "INSERT INTO messages VALUES(?1, ?2, 0, json_extract(?3, '$.speed'),
                 json_extract(?3, '$.battery'), ?3)"
            }
        };
        let mut insert = self.0.prepare_cached(sql)?;
        for message in messages {
            let (device, time) = (message.device as i64, message.time);
            match form {
                Form::Prepared => {
                    let (speed, battery) = (message.speed, message.battery);
                    insert.execute((device, time, speed, battery, &message.text))?
                }
                Form::Text => insert.execute((device, time, &message.text))?,
            };
        }
        Ok(())
    }
}

impl Writer for Sqlite {
    fn prepare(&mut self, _: &[Telemetry]) -> Result<()> {
        Ok(())
    }

    fn append(&mut self, messages: &[Telemetry], form: Form) -> Result<()> {
        self.0.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        match self.insert(messages, form) {
            Ok(()) => {
                self.0.prepare_cached("COMMIT")?.execute([])?;
                Ok(())
            }
            Err(error) => {
                self.0.execute_batch("ROLLBACK")?;
                Err(error)
            }
        }
    }

    fn silent_syncs(&self) -> u64 {
        0
    }
}

/// A connection in a transaction that only reads.
struct Snapshot(Connection);

pub(super) fn with_reader(
    dir: &Path,
    data_bytes: u64,
    work: &mut dyn FnMut(&dyn Reader) -> Result<()>,
) -> Result<()> {
    let snapshot = Snapshot(open(dir, data_bytes)?);
    snapshot.0.execute_batch("BEGIN")?;
    work(&snapshot)?;
    Ok(snapshot.0.execute_batch("COMMIT")?)
}

/// Sums up the rows that a statement returns for an interval. `of_row` returns the value of a row for the answer.
fn answer_of(
    mut select: CachedStatement<'_>,
    span: Span,
    of_row: impl Fn(&Row<'_>) -> Result<i64>,
) -> Result<Answer> {
    let mut answer = Answer::default();
    let mut rows = select.query((span.device as i64, span.from, span.to))?;
    while let Some(row) = rows.next()? {
        answer.add(row.get(0)?, of_row(row)?);
    }
    Ok(answer)
}

/// The speed in a JSON text, after the whole text was parsed.
fn parsed_speed(text: &str) -> Result<i64> {
    let document = Document::from_json(text)?;
    match document.get("speed").and_then(FieldValue::as_number) {
        Some(FieldNumber::Float(speed)) => Ok(units(speed, 1)),
        other => Err(format!("a message has the speed {other:?}").into()),
    }
}

impl Reader for Snapshot {
    fn read(&self, span: Span, reading: Reading) -> Result<Answer> {
        let columns = match reading {
            Reading::Projected => {
                "json_extract(body, '$.speed'), json_extract(body, '$.battery'), json_extract(body, '$.pos.lat')"
            }
            _ => "speed, body",
        };
        let filter = match reading {
            Reading::Filtered => FILTER_SQL,
            _ => "true",
        };
        let sql = format!(
            "SELECT time, {columns} FROM messages WHERE device = ? AND time BETWEEN ? AND ? AND {filter} ORDER BY time, seq"
        );
        let select = self.0.prepare_cached(&sql)?;
        match reading {
            Reading::Documents | Reading::Filtered => {
                answer_of(select, span, |row| parsed_speed(row.get_ref(2)?.as_str()?))
            }
            Reading::Texts => answer_of(select, span, |row| {
                // A caller would get a copy of the text, so it is copied here.
                let text: String = row.get(2)?;
                if text.len() < 2 {
                    return Err("a message without text".into());
                }
                Ok(units(row.get(1)?, 1))
            }),
            Reading::Projected => answer_of(select, span, |row| {
                Ok(projected(row.get(1)?, row.get(2)?, row.get(3)?))
            }),
        }
    }

    fn latest(&self, device: usize) -> Result<Answer> {
        let sql =
            "SELECT time, body FROM messages WHERE device = ? ORDER BY time DESC, seq DESC LIMIT 1";
        let mut select = self.0.prepare_cached(sql)?;
        let mut rows = select.query([device as i64])?;
        let row = rows.next()?.ok_or("a device has no message")?;
        let mut answer = Answer::default();
        answer.add(row.get(0)?, parsed_speed(row.get_ref(1)?.as_str()?)?);
        Ok(answer)
    }

    fn hours(&self, span: Span, source: Source) -> Result<Vec<Hour>> {
        let speed = match source {
            Source::Series => "speed",
            Source::Documents => "json_extract(body, '$.speed')",
        };
        let sql = format!(
            "SELECT time / {HOUR} * {HOUR}, count(*), sum({speed}), max({speed}) FROM messages
             WHERE device = ? AND time BETWEEN ? AND ? GROUP BY 1"
        );
        let mut select = self.0.prepare_cached(&sql)?;
        let rows = select.query_map((span.device as i64, span.from, span.to), |row| {
            Ok(Hour {
                start: row.get(0)?,
                count: row.get::<_, i64>(1)? as u64,
                sum: units(row.get(2)?, 1),
                max: units(row.get(3)?, 1),
            })
        })?;
        Ok(rows.collect::<std::result::Result<_, _>>()?)
    }
}
