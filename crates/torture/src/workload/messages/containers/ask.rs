//! A transaction reads its containers: pages, messages with the same time, latest values, figures.

use super::One;
use super::document::{FILTERS, expression_of, integer};
use crate::model::clock::UNIT;
use crate::model::messages::containers::Key;
use std::collections::BTreeMap;
use std::time::Duration;
use tidalite::containers::{
    AggregateQuery, Document, FieldValue, MessageFigure, MessageQuery, Select,
};
use tidalite::{Result, Timestamp};

/// Length of a step of figures.
const STEP: i64 = 25 * UNIT;

impl One<'_, '_> {
    pub(super) fn ask(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        let container = &self.all.live[&name];
        let shown: Vec<(Key, &Document)> = (container.shown(self.now))
            .map(|(key, message)| (*key, &message.document))
            .collect();
        let view = self.table.view()?;
        match self.rng.below(4) {
            0 => {
                let time = match shown.is_empty() {
                    true => self.now,
                    false => self.rng.pick(&shown).0.0,
                };
                let known = shown.iter().filter(|(key, _)| key.0 == time);
                let known: Vec<Document> = known.map(|(_, document)| (*document).clone()).collect();
                assert_eq!(view.get(&name, Timestamp(time))?, known, "{name} at {time}");
            }
            1 => {
                let found = view.latest_of(&name, &["n", "none", "mix"])?;
                let found: Vec<_> = found
                    .into_iter()
                    .map(|latest| latest.map(|latest| (latest.time.0, latest.value)))
                    .collect();
                let known = ["n", "none", "mix"].map(|field| container.latest.get(field).cloned());
                assert_eq!(found, known, "latest values of {name}");
            }
            2 => {
                let query = AggregateQuery {
                    step: Some(Duration::from_nanos(STEP as u64)),
                    figures: vec![
                        ("s".to_owned(), MessageFigure::Sum),
                        ("n".to_owned(), MessageFigure::Max),
                    ],
                    ..AggregateQuery::default()
                };
                let found = view.aggregate(&name, &query)?;
                let found: Vec<_> = found
                    .into_iter()
                    .map(|row| (row.from.0, row.messages, row.figures))
                    .collect();
                assert_eq!(found, figures(&shown), "figures of {name}");
            }
            _ => {
                let (limit, reverse) = (1 + self.rng.below(9), self.rng.one_in(2));
                let filter = self.rng.one_in(2).then(|| *self.rng.pick(&FILTERS));
                let mut known = shown;
                known.retain(|(_, document)| filter.is_none_or(|(_, is_true)| is_true(document)));
                if reverse {
                    known.reverse();
                }
                let mut select = Select {
                    query: MessageQuery {
                        reverse,
                        limit,
                        ..MessageQuery::default()
                    },
                    filter: expression_of(filter),
                    fields: None,
                };
                for known in known.chunks(limit as usize) {
                    let page = view.page(&name, &select)?;
                    let found = page.messages.iter();
                    let found: Vec<(Key, &Document)> = found
                        .map(|found| ((found.time.0, found.tie), &found.document))
                        .collect();
                    assert_eq!(found, known, "a page of {name}");
                    select.query.after = page.next;
                }
                if select.query.after.is_some() {
                    assert_eq!(view.page(&name, &select)?.messages, [], "pages end");
                }
            }
        }
        Ok(())
    }
}

/// The sum of `s` and the maximum of `n` for each step with messages.
fn figures(shown: &[(Key, &Document)]) -> Vec<(i64, u64, Vec<FieldValue>)> {
    let mut steps: BTreeMap<i64, Vec<&Document>> = BTreeMap::new();
    for (key, document) in shown {
        let step = key.0.div_euclid(STEP) * STEP;
        steps.entry(step).or_default().push(document);
    }
    let value = |number: Option<i128>| number.map_or(FieldValue::Null, FieldValue::Integer);
    let row = |(from, documents): (i64, Vec<&Document>)| {
        let all = |field| documents.iter().filter_map(move |one| integer(one, field));
        let sum = (all("s").count() > 0).then(|| all("s").sum());
        let figures = vec![value(sum), value(all("n").max())];
        (from, documents.len() as u64, figures)
    };
    steps.into_iter().map(row).collect()
}
