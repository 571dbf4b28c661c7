//! The contents that a run has had, by number.

use crate::model::{Model, digest_of, digest_of_snapshot, model_of};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite::{Database, ReadTxn};

/// What one commit leaves.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) model: Arc<Model>,
    /// The number that stands in the user data of the commit: that of the content when a transaction made it; maintenance and
    /// compaction leave it as it is.
    user: u64,
    digest: u64,
    made: Made,
}

/// What appenders did in the transaction that made a content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// Some encoded vectors of leaves.
    pub(super) leaves: bool,
    /// Some encoded blocks of runs.
    pub(super) blocks: bool,
}

impl Content {
    /// The number that commits of it have in their user data.
    pub(super) fn user(&self) -> u64 {
        self.user
    }

    /// What appenders did in the transaction that made it.
    pub(super) fn made(&self) -> Made {
        self.made
    }
}

/// All contents so far. Number 0 is the empty database.
#[derive(Clone, Debug)]
pub(super) struct History {
    contents: Vec<Content>,
    /// The newest content with this number in its user data, as the file stands.
    line: HashMap<u64, u64>,
}

/// The number in the user data of a commit.
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

    /// Without what comes after a number.
    pub(super) fn up_to(&self, number: u64) -> Self {
        Self {
            contents: self.contents[..=number as usize].to_vec(),
            line: HashMap::new(),
        }
    }

    /// The next number.
    pub(super) fn next(&self) -> u64 {
        self.contents.len() as u64
    }

    /// A content that may come to be; returns its number.
    pub(super) fn add(&mut self, user: u64, model: Arc<Model>, made: Made) -> u64 {
        let number = self.next();
        self.contents.push(Content {
            user,
            digest: model.digest(),
            model,
            made,
        });
        number
    }

    pub(super) fn content(&self, number: u64) -> &Content {
        &self.contents[number as usize]
    }

    /// The file has this content now.
    pub(super) fn stands_on(&mut self, number: u64) {
        let user = self.content(number).user;
        self.line.insert(user, number);
    }

    /// What a commit with these user data holds.
    pub(super) fn of_user(&self, user: u64) -> Option<u64> {
        self.line.get(&user).copied()
    }

    /// The newest content that a database may hold, and is allowed to.
    pub(super) fn find(
        &self,
        user: u64,
        digest: u64,
        allowed: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        let is = |content: &Content| content.user == user && content.digest == digest;
        self.newest(is, allowed)
    }

    /// The newest content that is allowed and of which this holds.
    fn newest(&self, is: impl Fn(&Content) -> bool, allowed: impl Fn(u64) -> bool) -> Option<u64> {
        let of = |number: u64| is(&self.contents[number as usize]) && allowed(number);
        (0..self.next()).rev().find(|&number| of(number))
    }

    /// What a database holds, as one of the contents that are allowed.
    pub(super) fn identify(
        &self,
        db: &Database,
        allowed: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
        let user = user_of(snap.user_data());
        let digest = digest_of(db).map_err(|error| format!("content of {user}: {error}"))?;
        self.find(user, digest, allowed)
            .ok_or_else(|| match self.find(user, digest, |_| true) {
                Some(number) => format!("found content {number}"),
                None => {
                    let differs = self.differs(&snap, user);
                    format!("found what was never committed, with {user} in its user data{differs}")
                }
            })
    }

    /// Where a snapshot differs from the newest content with these user data, for the eye.
    fn differs(&self, snap: &ReadTxn, user: u64) -> String {
        let of_user = self.contents.iter().rfind(|content| content.user == user);
        match (model_of(snap), of_user) {
            (Ok(found), Some(content)) => content.model.differs(&found),
            _ => String::new(),
        }
    }

    /// As `identify`, for a file that has the content and not the pins.
    pub(super) fn identify_without_pins(
        &self,
        db: &Database,
        allowed: impl Fn(u64) -> bool,
    ) -> Result<u64, String> {
        let snap = db.begin_read().map_err(|error| format!("read: {error}"))?;
        let user = user_of(snap.user_data());
        let digest = digest_of_snapshot(&snap).map_err(|error| format!("snapshot: {error}"))?;
        let is =
            |content: &Content| content.user == user && content.model.content_digest() == digest;
        let found = self.newest(is, allowed);
        found.ok_or_else(|| format!("not what {user} was"))
    }

    /// Whether a snapshot shows a content; returns its digest.
    pub(super) fn is_known(&self, snap: &ReadTxn) -> Result<u64, String> {
        let user = user_of(snap.user_data());
        let digest = digest_of_snapshot(snap).map_err(|error| format!("snapshot: {error}"))?;
        let mut of_user = self.contents.iter().filter(|content| content.user == user);
        match of_user.any(|content| content.model.content_digest() == digest) {
            true => Ok(digest),
            false => Err(format!("a snapshot shows what {user} never was")),
        }
    }
}
