//! Tidalite's side of the suite `cpu`: a series of ten columns for each host.

use std::ops::Bound;
use std::path::Path;
use std::time::Duration;

use ::tidalite::{
    ColumnType, Database, Figure, Query, ReadTxn, Schema, Selection, SeriesId, Steps, Timestamp,
    Unit, retention::Budget,
};

use super::shape::{Answer, HOUR, METRICS, Question, Row, Side};
use crate::engine::Result;

/// A Tidalite database, and the ids of the hosts' series.
pub(crate) struct Series {
    db: Database,
    hosts: Vec<SeriesId>,
    decimals: bool,
}

impl Series {
    /// Visits the rows of all hosts within an interval.
    fn of_all(
        &self,
        snapshot: &ReadTxn,
        (from, to): (i64, i64),
        mut f: impl FnMut(Query<'_>) -> Result<()>,
    ) -> Result<()> {
        for id in &self.hosts {
            let series = snapshot.series_by_id(*id)?.ok_or("a host is missing")?;
            f(series.query(Steps(from)..Steps(to)))?;
        }
        Ok(())
    }

    fn value(&self, row: &::tidalite::Row, column: usize) -> f64 {
        if self.decimals {
            row.f64(column)
        } else {
            row.i64(column) as f64
        }
    }
}

impl Side for Series {
    fn create(dir: &Path, decimals: bool) -> Result<Self> {
        let db = Database::open(dir.join("cpu.tdl"))?;
        let ty = if decimals {
            ColumnType::F64
        } else {
            ColumnType::I64
        };
        let names: Vec<String> = (0..METRICS).map(|n| format!("usage_{n}")).collect();
        let schema = Schema::new(Unit::Nanos, names.iter().map(|name| (name.as_str(), ty)));
        let mut txn = db.begin_write()?;
        let mut hosts = Vec::new();
        for host in 0..super::HOSTS {
            let (rack, region) = (host % 17, host % 5);
            let name = format!(
                r#"cpu{{hostname="host_{host}",rack="{rack}",region="eu-{region}",os="linux"}}"#
            );
            hosts.push(txn.series_with(&name, &schema)?.id());
        }
        txn.commit()?;
        Ok(Self {
            db,
            hosts,
            decimals,
        })
    }

    fn write(&mut self, rows: &[Row]) -> Result<()> {
        let mut txn = self.db.begin_write()?;
        for row in rows {
            let words = row.metrics.map(|value| match self.decimals {
                true => (f64::from(value) / 100.0).to_bits(),
                false => i64::from(value) as u64,
            });
            let mut series = txn.series_by_id(self.hosts[row.host])?;
            series.insert_row(Steps(row.time), &words)?;
        }
        txn.commit()?;
        Ok(())
    }

    fn ask(&self, question: Question) -> Result<Answer> {
        let snapshot = self.db.begin_read()?;
        let mut answer = Answer::default();
        match question {
            Question::Max {
                host,
                metrics,
                from,
                to,
                width,
            } => {
                let id = self.hosts[host];
                let series = snapshot.series_by_id(id)?.ok_or("a host is missing")?;
                let metrics: Vec<usize> = (0..metrics).collect();
                let range = series.query(Steps(from)..Steps(to)).figures(Figure::Max);
                range.columns(&metrics).for_each_window(
                    (Steps(width), Steps(from)),
                    |_, window| {
                        answer.found += 1;
                        answer.sum += window.aggregate.unwrap_or(0.0);
                    },
                )?;
            }
            Question::Mean { metrics, from, to } => {
                let metrics: Vec<usize> = (0..metrics).collect();
                let mut hosts = Vec::with_capacity(self.hosts.len());
                for id in &self.hosts {
                    hosts.push(snapshot.series_by_id(*id)?.ok_or("a host is missing")?);
                }
                let each = Selection::of(hosts).in_parallel(|host| {
                    let (mut found, mut sum) = (0, 0.0);
                    let means = host.query(Steps(from)..Steps(to)).figures(Figure::Mean);
                    means
                        .columns(&metrics)
                        .for_each_window(Steps(HOUR), |_, window| {
                            found += 1;
                            sum += window.aggregate.unwrap_or(0.0);
                        })?;
                    Ok((found, sum))
                })?;
                for (found, sum) in each {
                    answer.found += found;
                    answer.sum += sum;
                }
            }
            Question::Latest => {
                for id in &self.hosts {
                    let row = snapshot.latest(*id)?.ok_or("a host without rows")?;
                    answer.found += 1;
                    answer.sum += self.value(&row, 0);
                }
            }
            Question::Above { from, to } => {
                let above = (Bound::Excluded(90.0), Bound::Unbounded);
                let decimals = self.decimals;
                self.of_all(&snapshot, (from, to), |range| {
                    let mut sum = 0.0;
                    let above = range.filter(0, above);
                    let found = above.columns([1]).for_each_vector(|rows| {
                        sum += match decimals {
                            true => rows.f64(1).iter().sum::<f64>(),
                            false => rows.i64(1).iter().sum::<i64>() as f64,
                        };
                    })?;
                    answer.found += found;
                    answer.sum += sum;
                    Ok(())
                })?;
            }
            Question::Sum => self.of_all(&snapshot, (i64::MIN, i64::MAX), |range| {
                let figures = range.figures([Figure::Count, Figure::Sum]);
                let [count, sum] = figures.aggregate(0)?;
                answer.found += count.unwrap_or(0.0) as u64;
                answer.sum += sum.unwrap_or(0.0);
                Ok(())
            })?,
        }
        Ok(answer)
    }

    fn shrink(&mut self) -> Result<()> {
        /// Maximum number of bytes that a step of compaction moves.
        const STEP_BYTES: u64 = 64 << 20;
        let all = Budget {
            time: Duration::MAX,
            ..Budget::default()
        };
        let cooled = self.db.rewrite_cold("", Timestamp(i64::MAX), &all)?;
        assert!(!cooled.more, "the budget has no end");
        while !self.db.compact(STEP_BYTES)?.done {}
        Ok(())
    }
}
