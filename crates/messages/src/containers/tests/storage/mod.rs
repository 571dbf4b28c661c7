//! Tests of the storage of containers, on pages in memory.

mod complexity;
mod damage;
mod limits;
mod model;
mod paging;
mod recovery;
mod rules;
mod script;
mod thinning;
mod thinning_model;

use crate::containers::append::{Append, AppendOutcome, Appended};
use crate::containers::codec;
use crate::containers::dictionary::FieldNames;
use crate::containers::document::Document;
use crate::containers::message::StoredMessage;
use crate::containers::options::{ContainerOptions, ContainerTableOptions};
use crate::containers::read::ContainersReader;
use crate::containers::value::FieldValue;
use crate::containers::write::ContainersWriter;
use std::time::Duration;
use tidalite_kv::Tree;
use tidalite_pager::{PageWrite, Result};
use tidalite_testkit::ScratchPages;
use tidalite_time::Timestamp;

/// A table of containers on pages in memory.
pub(super) struct Table {
    root: Tree,
    pages: ScratchPages,
}

impl Table {
    fn new(page_size: usize, options: ContainerTableOptions) -> Self {
        tidalite_testkit::watch();
        let (mut root, mut pages) = (Tree::new(20), ScratchPages::new(page_size));
        ContainersWriter::create(&mut root, &mut pages, options).unwrap();
        Self { root, pages }
    }

    /// A table whose containers have these options by default.
    fn with(defaults: ContainerOptions) -> Self {
        let options = ContainerTableOptions {
            idempotency_window: Some(Duration::from_nanos(1000)),
            defaults,
            ..ContainerTableOptions::default()
        };
        Self::new(1024, options)
    }

    fn writer(&mut self) -> ContainersWriter<'_, ScratchPages> {
        ContainersWriter::open(&mut self.root, &mut self.pages).unwrap()
    }

    fn reader(&self) -> ContainersReader<&ScratchPages> {
        ContainersReader::open(&self.root, &self.pages).unwrap()
    }

    /// Appends one message; returns its outcome.
    fn append(
        &mut self,
        now: i64,
        container: &str,
        time: i64,
        fields: &[(&str, i64)],
    ) -> AppendOutcome {
        self.append_all(now, &[(container, time, doc(fields))])
            .outcomes
            .remove(0)
    }

    fn append_all(&mut self, now: i64, items: &[(&str, i64, Document)]) -> Appended {
        let items: Vec<Append<'_>> = items
            .iter()
            .map(|(container, time, document)| Append::new(container, Timestamp(*time), document))
            .collect();
        self.writer().append_batch(now, &items).unwrap()
    }

    fn names(&self) -> FieldNames {
        self.reader().field_names().unwrap()
    }

    /// The visible documents of a container, each with time and tie.
    fn documents(&self, container: &str, now: i64) -> Vec<(i64, u32, Document)> {
        let (names, reader) = (self.names(), self.reader());
        let mut cursor = reader
            .messages(container, &Default::default(), now)
            .unwrap();
        let mut found = Vec::new();
        while let Some(message) = cursor.next().unwrap() {
            let document = decode(&names, message.document);
            found.push((message.key.time.0, message.key.tie, document));
        }
        found
    }

    /// Times of the visible messages.
    fn times(&self, container: &str, now: i64) -> Vec<i64> {
        let all = self.documents(container, now);
        all.into_iter().map(|(time, _, _)| time).collect()
    }

    fn problems(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        self.reader().check(&mut |problem| problems.push(problem))?;
        Ok(problems)
    }

    #[track_caller]
    fn assert_whole(&mut self) {
        assert_eq!(self.problems().unwrap(), Vec::<String>::new());
        self.root.seal(&mut self.pages).unwrap();
        let mut claims = Vec::new();
        self.root
            .check(&self.pages, &mut |used| {
                claims.push((used.addr, used.pages))
            })
            .unwrap();
        self.pages.assert_all_claimed(&claims);
    }

    fn commit(&mut self) {
        self.root.seal(&mut self.pages).unwrap();
        self.pages.commit();
    }
}

impl<W: PageWrite> ContainersWriter<'_, W> {
    /// Appends messages, which may create containers of any name.
    fn append_batch(&mut self, now: i64, items: &[Append<'_>]) -> Result<Appended> {
        self.append_changes(now, items, &|_| true)
            .map(|changes| changes.appended)
    }
}

fn decode(names: &FieldNames, document: &[u8]) -> Document {
    codec::decode(document, &|number| names.get(number)).unwrap()
}

/// A document with integer fields.
fn doc(fields: &[(&str, i64)]) -> Document {
    let mut document = Document::default();
    for (name, value) in fields {
        document.set(name, FieldValue::Integer((*value).into()));
    }
    document
}

fn key_of(message: &StoredMessage) -> (i64, u32) {
    (message.key.time.0, message.key.tie)
}
