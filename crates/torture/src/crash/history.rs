//! The history of a run: the contents that the database had or may have had, numbered in order.

use crate::model::{Digests, Model, Reading, digest_of_snapshot, digests_of, model_of};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::{Database, ReadTxn};

/// The content of the database after one commit.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) model: Arc<Model>,
    /// The number that the commit stores in its user data: the number of the content if a transaction made it.
    /// Maintenance and compaction keep the user data of the commit before.
    user: u64,
    /// Digest of the content without pins.
    digest: u64,
    made: Made,
}

/// The kinds of work that appenders (threads that encode rows) did in the transaction that made a content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// True if appenders encoded vectors of leaves.
    pub(super) leaves: bool,
    /// True if appenders encoded blocks of runs.
    pub(super) blocks: bool,
}

impl Content {
    /// The number that the commits of this content store in their user data.
    pub(super) fn user(&self) -> u64 {
        self.user
    }

    /// The kinds of work that appenders did in the transaction that made this content.
    pub(super) fn made(&self) -> Made {
        self.made
    }
}

/// All contents of the run. Number 0 is the empty database.
#[derive(Clone, Debug)]
pub(super) struct History {
    contents: Vec<Content>,
    /// Maps the number in the user data of a commit to the newest content with that number in the current history of
    /// the file.
    line: HashMap<u64, u64>,
}

/// Decodes the number that a commit stores in its user data.
pub(super) fn user_of(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl History {
    pub(super) fn new() -> Self {
        let mut history = Self {
            contents: Vec::new(),
            line: HashMap::new(),
        };
        history.add(0, Arc::default(), Made::default());
        history.stands_on(0);
        history
    }

    /// A copy of this history without the contents after `number`.
    pub(super) fn up_to(&self, number: u64) -> Self {
        Self {
            contents: self.contents[..=number as usize].to_vec(),
            line: HashMap::new(),
        }
    }

    /// Number that the next content will get.
    pub(super) fn next(&self) -> u64 {
        self.contents.len() as u64
    }

    /// Adds a content that may be committed; returns the number of this content.
    pub(super) fn add(&mut self, user: u64, model: Arc<Model>, made: Made) -> u64 {
        let number = self.next();
        self.contents.push(Content {
            user,
            digest: model.content_digest(),
            model,
            made,
        });
        number
    }

    pub(super) fn content(&self, number: u64) -> &Content {
        &self.contents[number as usize]
    }

    /// Records that the file now has the content with this number.
    pub(super) fn stands_on(&mut self, number: u64) {
        let user = self.content(number).user;
        self.line.insert(user, number);
    }

    /// Number of the newest content whose commit has this number in its user data.
    pub(super) fn of_user(&self, user: u64) -> Option<u64> {
        self.line.get(&user).copied()
    }

    /// Number of the newest allowed content that has this number in its user data and these digests.
    fn find(&self, user: u64, found: &Digests, allowed: impl Fn(u64) -> bool) -> Option<u64> {
        let is = |content: &Content| {
            content.user == user && found.fit(content.digest, &content.model.pins)
        };
        self.newest(is, allowed)
    }

    /// Number of the newest content that is allowed and for which `is` returns true.
    fn newest(&self, is: impl Fn(&Content) -> bool, allowed: impl Fn(u64) -> bool) -> Option<u64> {
        let of = |number: u64| is(&self.contents[number as usize]) && allowed(number);
        (0..self.next()).rev().find(|&number| of(number))
    }

    /// Finds out which of the allowed contents a database has, by reading everything.
    pub(super) fn identify(
        &self,
        db: &Database,
        allowed: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        self.identify_by(db, Reading::FULL, allowed)
    }

    /// Finds out which of the allowed contents a database has.
    pub(super) fn identify_by(
        &self,
        db: &Database,
        reading: Reading,
        allowed: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
        let user = user_of(snap.user_data());
        let found =
            digests_of(db, reading).map_err(|error| format!("content of {user}: {error}"))?;
        self.find(user, &found, allowed)
            .ok_or_else(|| match self.find(user, &found, |_| true) {
                Some(number) => format!("found content {number}"),
                None => {
                    let differs = self.differs(&snap, user);
                    format!("found what was never committed, with {user} in its user data{differs}")
                }
            })
    }

    /// Describes, for error messages, the difference between a snapshot and the newest content with the number `user`.
    fn differs(&self, snap: &ReadTxn, user: u64) -> String {
        let of_user = self.contents.iter().rfind(|content| content.user == user);
        match (model_of(snap), of_user) {
            (Ok(found), Some(content)) => content.model.differs(&found),
            _ => String::new(),
        }
    }

    /// Like `identify`, for a file in which the pins are missing.
    pub(super) fn identify_without_pins(
        &self,
        db: &Database,
        allowed: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
        let user = user_of(snap.user_data());
        let digest = digest_of_snapshot(&snap).map_err(|error| format!("snapshot: {error}"))?;
        let is = |content: &Content| content.user == user && content.digest == digest;
        let found = self.newest(is, allowed);
        found.ok_or_else(|| format!("not what {user} was"))
    }

    /// Checks that a snapshot shows a known content; returns the digest of the content.
    pub(super) fn is_known(&self, snap: &ReadTxn) -> Result<u64, String> {
        let user = user_of(snap.user_data());
        let digest = digest_of_snapshot(snap).map_err(|error| format!("snapshot: {error}"))?;
        let mut of_user = self.contents.iter().filter(|content| content.user == user);
        match of_user.any(|content| content.digest == digest) {
            true => Ok(digest),
            false => Err(format!("a snapshot shows what {user} never was")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Relation;
    use crate::workload::Shape;
    use crate::workload::script::{Script, small_steps};
    use tidalite::Durability;
    use tidalite::relation::{Cell, ColumnType};
    use tidalite::storage::MemoryStorage;

    /// A database with relations, and its content.
    fn related() -> (Database, Model) {
        let storage = Arc::new(MemoryStorage::new());
        let db = small_steps().open_storage(storage).unwrap();
        let shape = Shape {
            appenders_one_in: 0,
            hashes_one_in: 0,
            buffered_one_in: 0,
            messages_one_in: 0,
            relations_one_in: 1,
            ..Shape::default()
        };
        let (script, mut model) = (Script { seed: 1, shape }, Model::default());
        for number in 1..=10 {
            let none = || ();
            model = script
                .step(&db, number, &model, Durability::None, none)
                .unwrap();
        }
        (db, model)
    }

    /// Compares a database with a model, one of whose relations is changed.
    fn identified(
        db: &Database,
        model: &Model,
        change: impl FnOnce(&mut Relation),
    ) -> Result<u64, String> {
        let (mut history, mut model) = (History::new(), model.clone());
        let mut relations = model.relations.values_mut();
        change(Arc::make_mut(relations.next().unwrap()));
        history.add(0, Arc::new(model), Made::default());
        history.identify(db, |_| true)
    }

    #[test]
    fn one_wrong_cell_of_a_relation_is_reported() {
        tidalite_testkit::watch();
        let (db, model) = related();
        assert_eq!(identified(&db, &model, |_| ()), Ok(1));
        let rows = model.relations.values().next().unwrap().rows.len();
        assert!(rows > 20, "{rows} rows");
        for at in [0, rows / 2, rows - 1] {
            for column in 0..2 {
                let change = |relation: &mut Relation| {
                    let row = relation.rows.values_mut().nth(at).unwrap();
                    row[column] = Cell::from("another");
                };
                let problem = identified(&db, &model, change).unwrap_err();
                assert!(problem.contains("another"), "{problem}");
            }
        }
    }

    #[test]
    fn a_wrong_schema_of_a_relation_is_reported() {
        tidalite_testkit::watch();
        let (db, model) = related();
        let changes: [fn(&mut Relation); 8] = [
            |relation| relation.schema.columns[0].kind = ColumnType::I32,
            |relation| relation.schema.columns[1].not_null = true,
            |relation| relation.schema.columns[1].default = Some(Cell::from("x")),
            |relation| relation.schema.columns[0].name.push('x'),
            |relation| relation.schema.primary_key.clear(),
            |relation| relation.schema.indexes[0].unique = false,
            |relation| relation.schema.indexes[0].columns[0].push('x'),
            |relation| relation.next += 1,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let problem = identified(&db, &model, change).unwrap_err();
            assert!(
                problem.contains("relation r0"),
                "change {number}: {problem}"
            );
        }
    }
}
