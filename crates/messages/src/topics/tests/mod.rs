//! Tests of topics, on pages in memory.

mod damage;
mod filters;
mod model;
mod rules;
mod searches;

use crate::topics::{
    Filter, Message, SearchOptions, TopicOptions, TopicSearch, TopicsReader, TopicsWriter,
};
use tidalite_kv::Tree;
use tidalite_pager::{PageRead, Result};
use tidalite_testkit::ScratchPages;
use tidalite_testkit::rng::Rng;

/// A table of topics on pages in memory.
struct Table {
    root: Tree,
    pages: ScratchPages,
}

impl Table {
    fn new(page_size: usize, options: TopicOptions) -> Self {
        tidalite_testkit::watch();
        let (mut root, mut pages) = (Tree::new(20), ScratchPages::new(page_size));
        TopicsWriter::create(&mut root, &mut pages, options).unwrap();
        Self { root, pages }
    }

    fn writer(&mut self) -> TopicsWriter<'_, ScratchPages> {
        TopicsWriter::open(&mut self.root, &mut self.pages).unwrap()
    }

    fn reader(&self) -> TopicsReader<&ScratchPages> {
        TopicsReader::open(&self.root, &self.pages).unwrap()
    }

    /// Publishes messages with the RETAIN flag at time 1.
    fn publish(&mut self, messages: &[(&str, &str)]) {
        let messages: Vec<Message<'_>> = messages
            .iter()
            .map(|(topic, payload)| Message::new(topic, payload.as_bytes()))
            .collect();
        let retained = messages.iter().map(|message| (message, true));
        self.writer().publish_batch(1, retained).unwrap();
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
}

fn filters(texts: &[&str]) -> Vec<Filter> {
    texts
        .iter()
        .map(|text| Filter::parse(text).unwrap())
        .collect()
}

/// Topics of all matches in the order in which they are returned, each with the filters that match it.
fn found<R: PageRead>(
    reader: &TopicsReader<R>,
    texts: &[&str],
    now: i64,
) -> Vec<(String, Vec<usize>)> {
    let mut search = TopicSearch::new(filters(texts), SearchOptions::default());
    let mut found = Vec::new();
    while !search.is_done() {
        search
            .page(reader, now, 7, &mut |found_match| {
                let topic = found_match.retained.message.topic.to_owned();
                found.push((topic, found_match.filters.to_vec()));
                Ok(())
            })
            .unwrap();
    }
    found
}

/// Names of levels: short, empty, with bytes that sort next to the separator, prefixes of each other, and one that is
/// longer than a term can be.
fn names() -> Vec<String> {
    let mut names: Vec<String> = ["a", "b", "", "a\u{1}", "ab", "$", "$b", "a!", "ä", "\u{1}"]
        .map(str::to_owned)
        .to_vec();
    names.push("long".repeat(30));
    names.push(format!("{}x", "long".repeat(30)));
    names
}

fn random_topic(rng: &mut Rng, names: &[String]) -> String {
    loop {
        let levels = 1 + rng.index(4);
        let topic: Vec<&str> = (0..levels).map(|_| rng.pick(names).as_str()).collect();
        let topic = topic.join("/");
        if !topic.is_empty() {
            return topic;
        }
    }
}

fn random_filter(rng: &mut Rng, names: &[String]) -> String {
    loop {
        let levels = rng.index(5);
        let mut filter: Vec<&str> = (0..levels)
            .map(|_| {
                if rng.one_in(3) {
                    "+"
                } else {
                    rng.pick(names).as_str()
                }
            })
            .collect();
        if rng.one_in(3) {
            filter.push("#");
        }
        let filter = filter.join("/");
        if !filter.is_empty() {
            return filter;
        }
    }
}

/// Whether a filter matches a topic, decided level by level as the text of the standard says.
fn oracle(filter: &str, topic: &str) -> bool {
    fn levels(filter: &[&str], topic: &[&str]) -> bool {
        match (filter, topic) {
            ([], []) | (["#"], _) => true,
            (["+", filter @ ..], [_, topic @ ..]) => levels(filter, topic),
            ([name, filter @ ..], [level, topic @ ..]) => name == level && levels(filter, topic),
            _ => false,
        }
    }
    let (filter, topic): (Vec<&str>, Vec<&str>) =
        (filter.split('/').collect(), topic.split('/').collect());
    let is_hidden = topic[0].starts_with('$') && matches!(filter[0], "+" | "#");
    !is_hidden && levels(&filter, &topic)
}
