//! Messages are replaced, deleted and restored. Calls for a range are repeated in small steps until the range is done.

use super::One;
use super::document::{FILTERS, expression_of, random};
use crate::model::clock::UNIT;
use crate::model::messages::containers::Key;
use crate::model::messages::containers::append::before_of;
use tidalite::containers::{DeleteRange, RestoreRange};
use tidalite::{ErrorKind, Result, Timestamp};

impl One<'_, '_> {
    /// Time and tie, mostly of a message.
    fn some_key(&mut self, name: &str) -> Key {
        let keys: Vec<Key> = self.all.live[name].messages.keys().copied().collect();
        match keys.is_empty() || self.rng.one_in(8) {
            true => (self.now - self.rng.between(0, 20) * UNIT, 0),
            false => *self.rng.pick(&keys),
        }
    }

    pub(super) fn replace(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        let (key, document) = (self.some_key(&name), random(self.rng));
        let place = (Timestamp(key.0), key.1);
        let replaced = self.table.replace_message(&name, place, &document);
        let view = self.table.view()?;
        let names = view.field_names()?;
        let found = match replaced {
            Ok(old) => old.map(|old| Some(before_of(&old, names))),
            // There is no room for the new document.
            Err(error) if error.kind() == ErrorKind::Limit => Some(None),
            Err(error) => return Err(error),
        };
        let known = self.all.replace(&name, key, &document, self.now);
        assert_eq!(found, known, "{key:?} of {name} is replaced");
        Ok(())
    }

    pub(super) fn delete_one(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        let (key, now) = (self.some_key(&name), self.now);
        let place = (Timestamp(key.0), key.1);
        let old = self.table.delete_message(&name, place)?;
        let message = self.all.live[&name]
            .shown(now)
            .find(|found| *found.0 == key);
        let known = message.map(|(_, message)| message.before());
        let view = self.table.view()?;
        let names = view.field_names()?;
        let found = old.as_ref().map(|old| before_of(old, names));
        assert_eq!(found, known, "{key:?} of {name}");
        if known.is_some() {
            self.all.delete(&name, &[key], now);
        }
        Ok(())
    }

    pub(super) fn delete_some(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        let now = self.now;
        let from = now - self.rng.between(0, 60) * UNIT;
        let mut range = DeleteRange {
            from: Timestamp(from),
            to: Timestamp(from + self.rng.between(0, 40) * UNIT),
            examined_max: 1 + self.rng.below(12),
            dry_run: self.rng.one_in(4),
            ..DeleteRange::default()
        };
        let filter = self.rng.one_in(2).then(|| *self.rng.pick(&FILTERS));
        let expression = expression_of(filter);
        let matching = self.all.live[&name].shown(now).filter(|(key, message)| {
            (range.from.0..=range.to.0).contains(&key.0)
                && filter.is_none_or(|(_, is_true)| is_true(&message.document))
        });
        let matching = matching.map(|(key, message)| (*key, message.bytes()));
        let matching: Vec<(Key, u64)> = matching.collect();
        let mut rest = &matching[..];
        loop {
            let deleted = (self.table).delete_messages(&name, &range, expression.as_ref())?;
            assert!(deleted.examined <= range.examined_max, "{deleted:?}");
            let split = rest.split_at_checked(deleted.messages as usize);
            let (gone, others) = split.expect("only these messages match");
            let bytes: u64 = gone.iter().map(|(_, bytes)| bytes).sum();
            let keys: Vec<Key> = gone.iter().map(|(key, _)| *key).collect();
            let deletion = match range.dry_run {
                true => None,
                false => self.all.delete(&name, &keys, now),
            };
            assert_eq!((deleted.bytes, deleted.deletion), (bytes, deletion));
            (rest, range.after) = (others, deleted.next);
            if range.after.is_none() {
                break;
            }
        }
        assert_eq!(rest, [], "messages of {name} are left");
        Ok(())
    }

    pub(super) fn restore_some(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else {
            return Ok(());
        };
        let now = self.now;
        let range = RestoreRange {
            from: Timestamp(now - self.rng.between(0, 200) * UNIT),
            deleted_from: Timestamp(now - self.rng.between(0, 200) * UNIT),
            examined_max: 1 + self.rng.below(10),
            ..RestoreRange::default()
        };
        let (mut step, mut keys, mut skipped) = (range, Vec::new(), 0);
        loop {
            let restored = self.table.restore_messages(&name, &step)?;
            let messages = restored.messages.iter();
            keys.extend(messages.map(|message| (message.key.time.0, message.key.tie)));
            skipped += restored.skipped;
            step.after = restored.next;
            if step.after.is_none() {
                break;
            }
        }
        let known = self.all.restore(&name, &range, now);
        assert_eq!((keys, skipped), known, "restored messages of {name}");
        Ok(())
    }
}
