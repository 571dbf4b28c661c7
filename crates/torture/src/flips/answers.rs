//! The content and the query answers of a valid file, to be compared with those that a damaged file gives.

use crate::model::digest_of;
use tidalite::{Database, Steps};

/// Number of queries that are run on a series.
const QUESTIONS: usize = 4;
/// Keys that are looked up in the table.
const LOOKUPS: [&str; 2] = ["key 90 0011", "key 1500 0001"];

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
        let value = || -> tidalite::Result<String> {
            let Some(table) = snap.table("pairs")? else {
                return Ok("no table".to_owned());
            };
            Ok(format!("{:?}", table.get(key.as_bytes())?))
        };
        *answer = value().ok();
    }
    answers
}
