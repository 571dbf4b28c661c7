//! The content and the query answers of a valid file, to be compared with those that a damaged file gives.

use super::contents::{BY_TEXT, RELATION};
use crate::model::messages::{BROKER, DEVICES, FILES, JOBS};
use crate::model::{clock, digest_of};
use tidalite::containers::{AggregateQuery, MessageFigure, Select};
use tidalite::objects::ListQuery;
use tidalite::relation::{Cell, KeyBounds};
use tidalite::topics::Filter;
use tidalite::{Database, ReadTxn, Result, Steps};

/// Number of queries that are run on a series.
const QUESTIONS: usize = 4;
/// Keys that are looked up in the table.
const LOOKUPS: [&str; 3] = ["key 90 0011", "key 1500 0001", "key 60 0011"];
/// Keys that are looked up in the hash table and in the buffered table.
const INDEXED: [&[u8]; 3] = [b"key 003", b"key 057", b"key 119"];
/// Queries of the other structures.
const OTHERS: [fn(&ReadTxn) -> Result<String>; 10] = [
    hash_table,
    buffered_table,
    relation,
    topics,
    changes,
    queue,
    bucket,
    latest_values,
    figures,
    messages,
];

/// The content and the query answers of a valid file.
pub(super) struct Right {
    pub(super) digest: u64,
    pub(super) answers: Vec<String>,
}

impl Right {
    /// Checks that a file with this bit flipped does not show another content or give other answers; errors are
    /// accepted.
    pub(super) fn expect_of(&self, db: &Database, at: usize, mask: u8) -> Result<(), String> {
        if digest_of(db).is_ok_and(|found| found != self.digest) {
            return Err(format!("bit {mask:#04x} of byte {at} gives a wrong answer"));
        }
        let wrong = |(own, right): (Option<String>, &String)| own.is_some_and(|own| own != *right);
        if answers(db).into_iter().zip(&self.answers).any(wrong) {
            return Err(format!(
                "bit {mask:#04x} of byte {at} gives a question a wrong answer"
            ));
        }
        Ok(())
    }
}

/// Runs the fixed queries (aggregates from the statistics of links and directories, counts, lookups); `None` for a
/// query that returns an error.
pub(super) fn answers(db: &Database) -> Vec<Option<String>> {
    let mut answers = vec![None; 2 * QUESTIONS + LOOKUPS.len()];
    let Ok(snap) = db.begin_read() else {
        return answers;
    };
    for (name, answers) in ["s0", "s1"].into_iter().zip(answers.chunks_mut(QUESTIONS)) {
        let series = match snap.series(name) {
            Ok(Some(series)) => series,
            Ok(None) => {
                answers.fill(Some("no series".to_owned()));
                continue;
            }
            Err(_) => continue,
        };
        let text = |answer: tidalite::Result<String>| answer.ok();
        let all = series.query(..);
        answers[0] = text(all.aggregate(1).map(|all| format!("{all:?}")));
        let part = series.query(Steps(7)..Steps(10_020)).aggregate(1);
        answers[1] = text(part.map(|part| format!("{part:?}")));
        answers[2] = text(
            all.windows(Steps(300), 1)
                .map(|windows| format!("{windows:?}")),
        );
        answers[3] = text(series.count().map(|count| count.to_string()));
    }
    for (key, answer) in LOOKUPS.iter().zip(&mut answers[2 * QUESTIONS..]) {
        let value = || -> Result<String> {
            let Some(table) = snap.table("pairs")? else {
                return Ok("no table".to_owned());
            };
            Ok(format!("{:?}", table.get(key.as_bytes())?))
        };
        *answer = value().ok();
    }
    // The time is before all others, so that no message has expired.
    answers.extend(OTHERS.map(|query| clock::in_the_past(|| query(&snap)).ok()));
    answers
}

/// The answer for a structure that does not exist.
fn none() -> Result<String> {
    Ok("no such table".to_owned())
}

fn hash_table(snap: &ReadTxn) -> Result<String> {
    let Some(table) = snap.hash_table::<[u8], [u8]>("h0")? else {
        return none();
    };
    let found = INDEXED.map(|key| table.get(key));
    let found: Vec<_> = found.into_iter().collect::<Result<_>>()?;
    Ok(format!("{} {found:?}", table.count()?))
}

fn buffered_table(snap: &ReadTxn) -> Result<String> {
    let Some(table) = snap.buffered_table::<[u8], [u8]>("b0")? else {
        return none();
    };
    let found = INDEXED.map(|key| table.get(key));
    let found: Vec<_> = found.into_iter().collect::<Result<_>>()?;
    Ok(format!("{} {found:?}", table.count()?))
}

fn relation(snap: &ReadTxn) -> Result<String> {
    let Some(relation) = snap.relation(RELATION)? else {
        return none();
    };
    let found = [3, 11, 42].map(|id| relation.get(&[Cell::I64(id)]));
    let found: Vec<_> = found.into_iter().collect::<Result<_>>()?;
    let texts = || KeyBounds::prefix([Cell::from("text 7")]);
    let mut rows = relation.rows_by(BY_TEXT, texts())?;
    let mut of_text = Vec::new();
    while let Some(row) = rows.next()? {
        of_text.push(row.to_cells()?);
    }
    let counts = (relation.count(), relation.count_by(BY_TEXT, texts())?);
    Ok(format!("{counts:?} {found:?} {of_text:?}"))
}

fn topics(snap: &ReadTxn) -> Result<String> {
    let Some(topics) = snap.topics(BROKER)? else {
        return none();
    };
    let filter = Filter::parse("hall/+/door/#")?;
    let found = topics.list(&filter, None, 1_000)?;
    Ok(format!("{} {found:?}", topics.count(&filter)?))
}

fn changes(snap: &ReadTxn) -> Result<String> {
    let Some(topics) = snap.topics(BROKER)? else {
        return none();
    };
    Ok(format!(
        "{:?} {:?}",
        topics.stat()?,
        topics.changes(0, 100)?
    ))
}

fn queue(snap: &ReadTxn) -> Result<String> {
    let Some(queue) = snap.queue(JOBS)? else {
        return none();
    };
    let groups = ["mail", "print"].map(|group| -> Result<String> {
        let (stat, ready) = (queue.group_stat(group)?, queue.peek(group, 100)?);
        let dead = queue.dead_letters(group, 0, 100)?;
        Ok(format!("{stat:?} {ready:?} {dead:?}"))
    });
    Ok(groups.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

fn bucket(snap: &ReadTxn) -> Result<String> {
    let Some(bucket) = snap.bucket(FILES)? else {
        return none();
    };
    let listed = bucket.list(&ListQuery::default())?;
    Ok(format!("{:?} {listed:?}", bucket.stat()?))
}

fn latest_values(snap: &ReadTxn) -> Result<String> {
    let Some(containers) = snap.containers(DEVICES)? else {
        return none();
    };
    let latest = ["a", "b"].map(|name| containers.latest(name));
    let latest: Vec<_> = latest.into_iter().collect::<Result<_>>()?;
    Ok(format!("{:?} {latest:?}", containers.stat()?))
}

fn figures(snap: &ReadTxn) -> Result<String> {
    let Some(containers) = snap.containers(DEVICES)? else {
        return none();
    };
    let figures = [MessageFigure::Count, MessageFigure::Sum, MessageFigure::Max];
    let query = AggregateQuery {
        figures: figures.map(|figure| ("n".to_owned(), figure)).to_vec(),
        ..AggregateQuery::default()
    };
    let series = snap.series(&containers.series_name("a")?)?;
    let of_series = series.map(|series| series.query(..).aggregate("n"));
    let of_series = of_series.transpose()?;
    Ok(format!(
        "{:?} {of_series:?}",
        containers.aggregate("a", &query)?
    ))
}

fn messages(snap: &ReadTxn) -> Result<String> {
    let Some(containers) = snap.containers(DEVICES)? else {
        return none();
    };
    let pages = ["a", "b"].map(|name| containers.page(name, &Select::default()));
    let pages: Vec<_> = pages.into_iter().collect::<Result<_>>()?;
    let deletions = containers.deletions("a", None, 100)?;
    Ok(format!("{pages:?} {deletions:?}"))
}
