//! SQLite's side of the suite `cpu`: a table with the primary key (series, time), without row ids.

use std::path::Path;

use rusqlite::{Connection, params_from_iter, types::Value};

use super::shape::{Answer, HOSTS, HOUR, METRICS, Question, Row, Side};
use crate::engine::Result;

/// A connection to the SQLite database.
pub(crate) struct Table {
    connection: Connection,
    decimals: bool,
}

impl Table {
    /// Runs a query; returns the number of rows, and the sum of all columns after the first `skipped`.
    fn sum(&self, sql: &str, parameters: &[i64], skipped: usize) -> Result<Answer> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(parameters))?;
        let mut answer = Answer::default();
        while let Some(row) = rows.next()? {
            for column in skipped..columns {
                answer.found += 1;
                answer.sum += match row.get(column)? {
                    Value::Integer(value) => value as f64,
                    Value::Real(value) => value,
                    other => return Err(format!("{other:?} is no number").into()),
                };
            }
        }
        Ok(answer)
    }
}

/// The SQL text that applies a function to each metric, such as `AVG(m0), AVG(m1), ...`.
fn each(function: &str, metrics: usize) -> String {
    let all: Vec<String> = (0..metrics).map(|n| format!("{function}(m{n})")).collect();
    all.join(", ")
}

impl Side for Table {
    fn create(dir: &Path, decimals: bool) -> Result<Self> {
        let connection = Connection::open(dir.join("cpu.sqlite"))?;
        let ty = if decimals { "REAL" } else { "INTEGER" };
        let columns: Vec<String> = (0..METRICS).map(|n| format!("m{n} {ty}")).collect();
        connection.execute_batch(&format!(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-1000000;
             PRAGMA mmap_size=4000000000;
             CREATE TABLE hosts(id INTEGER PRIMARY KEY, name TEXT, rack TEXT, region TEXT, os TEXT);
             CREATE TABLE cpu(series INTEGER, t INTEGER, {}, PRIMARY KEY(series, t)) WITHOUT ROWID;",
            columns.join(", ")
        ))?;
        for host in 0..HOSTS {
            let (rack, region) = (host % 17, host % 5);
            connection.execute(
                "INSERT INTO hosts VALUES(?, ?, ?, ?, 'linux')",
                (
                    host as i64,
                    format!("host_{host}"),
                    format!("{rack}"),
                    format!("eu-{region}"),
                ),
            )?;
        }
        Ok(Self {
            connection,
            decimals,
        })
    }

    fn write(&mut self, rows: &[Row]) -> Result<()> {
        let txn = self.connection.transaction()?;
        let places = ["?"; METRICS + 2].join(", ");
        let mut insert = txn.prepare(&format!("INSERT INTO cpu VALUES({places})"))?;
        for row in rows {
            insert.raw_bind_parameter(1, row.host as i64)?;
            insert.raw_bind_parameter(2, row.time)?;
            for (n, value) in row.metrics.iter().enumerate() {
                match self.decimals {
                    true => insert.raw_bind_parameter(n + 3, f64::from(*value) / 100.0)?,
                    false => insert.raw_bind_parameter(n + 3, *value)?,
                }
            }
            insert.raw_execute()?;
        }
        drop(insert);
        Ok(txn.commit()?)
    }

    fn shrink(&mut self) -> Result<()> {
        Ok(self
            .connection
            .execute_batch("VACUUM; PRAGMA wal_checkpoint(TRUNCATE);")?)
    }

    fn ask(&self, question: Question) -> Result<Answer> {
        match question {
            Question::Max {
                host,
                metrics,
                from,
                to,
                width,
            } => {
                let max = each("MAX", metrics);
                let sql = format!(
                    "SELECT (t - ?2) / ?4, {max} FROM cpu WHERE series = ?1 AND t >= ?2 AND t < ?3
                     GROUP BY 1"
                );
                self.sum(&sql, &[host as i64, from, to, width], 1)
            }
            Question::Mean { metrics, from, to } => {
                let mean = each("AVG", metrics);
                let sql = format!(
                    "SELECT id, t / ?3, {mean} FROM hosts JOIN cpu ON series = id AND t >= ?1 AND t < ?2
                     GROUP BY 1, 2"
                );
                self.sum(&sql, &[from, to, HOUR], 2)
            }
            Question::Latest => self.sum(
                "SELECT (SELECT m0 FROM cpu WHERE series = id ORDER BY t DESC LIMIT 1) FROM hosts",
                &[],
                0,
            ),
            Question::Above { from, to } => self.sum(
                "SELECT m1 FROM hosts JOIN cpu ON series = id AND t >= ?1 AND t < ?2 WHERE m0 > 90",
                &[from, to],
                0,
            ),
            Question::Sum => {
                let mut statement = self
                    .connection
                    .prepare_cached("SELECT COUNT(m0), TOTAL(m0) FROM cpu")?;
                Ok(statement.query_row([], |row| {
                    Ok(Answer {
                        found: row.get::<_, i64>(0)? as u64,
                        sum: row.get(1)?,
                    })
                })?)
            }
        }
    }
}
