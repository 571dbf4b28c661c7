//! The containers of Tidalite: one for each device, created by its first message.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use ::tidalite::containers::{
    AggregateQuery, Append, AppendOutcome, Containers, Document, Expression, FieldNumber,
    FieldValue, MessageFigure, MessageQuery, Projection, Select,
};
use ::tidalite::{Database, Figure, ReadTxn, Steps, Timestamp};

use super::answer::{Answer, Form, HOUR, Hour, Reading, Source, Span, projected, units};
use super::face::{Reader, Writer};
use super::feed::{FILTER, PROJECTED, Telemetry};
use crate::engine::Result;

const TABLE: &str = "devices";
const FILE: &str = "bench.tdl";

/// A database with one table of containers.
pub(super) struct Ours {
    db: Database,
    names: Vec<String>,
    prepared: Vec<Document>,
}

impl Ours {
    pub(super) fn create(dir: &Path, devices: u64) -> Result<Self> {
        let db = Database::open(dir.join(FILE))?;
        let mut txn = db.begin_write()?;
        txn.containers(TABLE)?;
        txn.commit()?;
        Ok(Self {
            db,
            names: names(devices),
            prepared: Vec::new(),
        })
    }

    fn store(&self, messages: &[Telemetry], documents: &[Document]) -> Result<()> {
        let appends: Vec<Append<'_>> = messages
            .iter()
            .zip(documents)
            .map(|(message, document)| {
                let time = Timestamp(message.time);
                Append::new(&self.names[message.device], time, document)
            })
            .collect();
        let mut txn = self.db.begin_write()?;
        let appended = txn.containers(TABLE)?.append_batch(&appends)?;
        txn.commit()?;
        let is_stored = |outcome: &&AppendOutcome| matches!(outcome, AppendOutcome::Stored { .. });
        let stored = appended.outcomes.iter().filter(is_stored).count();
        match stored == messages.len() {
            true => Ok(()),
            false => Err(format!("{stored} of {} messages were stored", messages.len()).into()),
        }
    }
}

/// Names of the containers, by device.
fn names(devices: u64) -> Vec<String> {
    (0..devices).map(|n| format!("device-{n:05}")).collect()
}

fn parsed(messages: &[Telemetry]) -> Result<Vec<Document>> {
    let documents = messages
        .iter()
        .map(|message| Ok(Document::from_json(&message.text)?));
    documents.collect()
}

impl Writer for Ours {
    fn prepare(&mut self, messages: &[Telemetry]) -> Result<()> {
        self.prepared = parsed(messages)?;
        Ok(())
    }

    fn append(&mut self, messages: &[Telemetry], form: Form) -> Result<()> {
        match form {
            Form::Prepared => self.store(messages, &self.prepared),
            Form::Text => self.store(messages, &parsed(messages)?),
        }
    }

    fn silent_syncs(&self) -> u64 {
        self.db.metrics().appends
    }
}

/// A snapshot.
struct Snapshot<'s> {
    snapshot: &'s ReadTxn,
    containers: Containers<'s>,
    names: Vec<String>,
    filter: Expression,
    projection: Projection,
}

pub(super) fn with_reader(
    dir: &Path,
    devices: u64,
    work: &mut dyn FnMut(&dyn Reader) -> Result<()>,
) -> Result<()> {
    let db = Database::open(dir.join(FILE))?;
    let snapshot = db.begin_read()?;
    let containers = snapshot.containers(TABLE)?;
    work(&Snapshot {
        snapshot: &snapshot,
        containers: containers.ok_or("there are no containers")?,
        names: names(devices),
        filter: Expression::parse(FILTER)?,
        projection: Projection::new(&PROJECTED)?,
    })
}

/// The number of a field that every message has.
fn number(value: Option<&FieldValue>) -> f64 {
    match value.and_then(FieldValue::as_number) {
        Some(FieldNumber::Integer(x)) => x as f64,
        Some(FieldNumber::Float(x)) => x,
        // A missing number counts as 0 in the answer, which then differs from the correct one.
        None => f64::NAN,
    }
}

impl Snapshot<'_> {
    /// All messages of an interval.
    fn select(span: Span) -> Select {
        Select {
            query: MessageQuery {
                from: Timestamp(span.from),
                to: Timestamp(span.to),
                ..MessageQuery::default()
            },
            ..Select::default()
        }
    }
}

impl Reader for Snapshot<'_> {
    fn read(&self, span: Span, reading: Reading) -> Result<Answer> {
        let (name, mut select) = (&self.names[span.device], Self::select(span));
        let mut answer = Answer::default();
        match reading {
            Reading::Texts => return Err("documents are not stored as texts".into()),
            Reading::Projected => {
                select.fields = Some(self.projection.clone());
                for message in self.containers.page(name, &select)?.messages {
                    let [speed, battery, latitude] =
                        PROJECTED.map(|path| number(message.document.get(path)));
                    answer.add(message.time.0, projected(speed, battery, latitude));
                }
                return Ok(answer);
            }
            Reading::Filtered => select.filter = Some(self.filter.clone()),
            Reading::Documents => {}
        }
        self.containers.each(name, &select, &mut |message| {
            let document = message.document()?;
            answer.add(message.time().0, units(number(document.get("speed")), 1));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(answer)
    }

    fn latest(&self, device: usize) -> Result<Answer> {
        let values = self.containers.latest(&self.names[device])?;
        let speed = values.iter().find(|value| value.field == "speed");
        let speed = speed.ok_or("a device has no speed")?;
        let mut answer = Answer::default();
        answer.add(speed.time.0, units(number(Some(&speed.value)), 1));
        Ok(answer)
    }

    fn hours(&self, span: Span, source: Source) -> Result<Vec<Hour>> {
        let name = &self.names[span.device];
        let mut hours = Vec::new();
        if source == Source::Series {
            let series = self.containers.series_name(name)?;
            let series = self
                .snapshot
                .series(&series)?
                .ok_or("a series is missing")?;
            let query = series.query(Steps(span.from)..=Steps(span.to));
            let figures = query.figures([Figure::Count, Figure::Sum, Figure::Max]);
            figures
                .columns(["speed"])
                .for_each_window(Steps(HOUR), |_, window| {
                    let [count, sum, max] =
                        window.aggregate.map(|figure| figure.unwrap_or(f64::NAN));
                    hours.push(Hour {
                        start: window.start,
                        count: count as u64,
                        sum: units(sum, 1),
                        max: units(max, 1),
                    });
                })?;
            return Ok(hours);
        }
        let figures = [MessageFigure::Count, MessageFigure::Sum, MessageFigure::Max];
        let query = AggregateQuery {
            select: Self::select(span),
            step: Some(Duration::from_nanos(HOUR as u64)),
            figures: figures.map(|figure| ("speed".to_owned(), figure)).to_vec(),
            ..AggregateQuery::default()
        };
        for row in self.containers.aggregate(name, &query)? {
            let [count, sum, max] = &row.figures[..] else {
                return Err("a row without its figures".into());
            };
            hours.push(Hour {
                start: row.from.0,
                count: number(Some(count)) as u64,
                sum: units(number(Some(sum)), 1),
                max: units(number(Some(max)), 1),
            });
        }
        Ok(hours)
    }
}
