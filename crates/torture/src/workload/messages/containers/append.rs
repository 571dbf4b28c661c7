//! Messages arrive in batches, in any order of times.

use super::One;
use super::document::NAMES;
use super::document::random;
use crate::model::clock::UNIT;
use crate::model::messages::containers::append::Outcome;
use tidalite::containers::{Append, Document};
use tidalite::{Result, Timestamp};
use tidalite_testkit::rng::Rng;

/// Number of different idempotency keys.
const KEYS: u64 = 12;

fn time(rng: &mut Rng, now: i64) -> i64 {
    now + UNIT
        * match rng.below(8) {
            0 => -rng.between(0, 250),
            1 => rng.between(0, 3),
            _ => -rng.between(0, 20),
        }
}

impl One<'_, '_> {
    pub(super) fn append(&mut self) -> Result<()> {
        let (rng, now) = (&mut *self.rng, self.now);
        let most = *rng.pick(&[6, 6, 6, 6, 24]);
        let count = 1 + rng.index(most);
        let documents: Vec<Document> = (0..count).map(|_| random(rng)).collect();
        let keys: Vec<[u8; 1]> = (0..count).map(|_| [rng.below(KEYS) as u8]).collect();
        let one_container = rng.one_in(2).then(|| *rng.pick(&NAMES));
        let items: Vec<Append<'_>> = (documents.iter().zip(&keys))
            .map(|(document, key)| Append {
                container: one_container.unwrap_or_else(|| *rng.pick(&NAMES)),
                time: Timestamp(time(rng, now)),
                document,
                idempotency_key: rng.one_in(5).then_some(&key[..]),
            })
            .collect();
        let appended = self.table.append_batch(&items)?;
        assert_eq!(appended.created, self.all.create_for(&items, now));
        self.all.remove(&appended.expired, now);
        let view = self.table.view()?;
        let names = view.field_names()?;
        let found = appended.outcomes.iter();
        let found: Vec<Outcome> = found.map(|outcome| Outcome::of(outcome, names)).collect();
        let known = self.all.append(&items, now);
        assert_eq!(found, known, "outcomes of {items:?}");
        self.all.remove(&appended.rotated, now);
        for item in &items {
            let container = &self.all.live[item.container];
            assert!(!container.rotates(), "{} is too full", item.container);
        }
        Ok(())
    }
}
