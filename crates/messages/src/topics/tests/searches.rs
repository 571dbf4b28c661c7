//! Searches return every match, in pages and across snapshots; counters check their cost.

use super::{Table, filters, found};
use crate::topics::token::{self, Place};
use crate::topics::{
    Filter, SearchCounters, SearchOptions, TopicOptions, TopicSearch, TopicsReader,
};
use std::collections::BTreeSet;
use tidalite_pager::{Error, PageRead};

fn counters<R: PageRead>(reader: &TopicsReader<R>, texts: &[&str]) -> SearchCounters {
    let mut search = TopicSearch::new(filters(texts), SearchOptions::default());
    while !search.is_done() {
        search.page(reader, 2, u64::MAX, &mut |_| Ok(())).unwrap();
    }
    *search.counters()
}

/// Topics `device/NNN/param/M`, and some of another form.
fn devices(count: usize) -> Table {
    let mut table = Table::new(4096, TopicOptions::default());
    let of = |device| (0..20).map(move |param| format!("device/{device:03}/param/{param}"));
    let mut topics: Vec<String> = (0..count).flat_map(of).collect();
    topics.push("house/kitchen/rare".to_owned());
    topics.push("house/007/lamp".to_owned());
    topics.push("$SYS/007/rare".to_owned());
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "x")).collect();
    table.publish(&rows);
    table
}

#[test]
fn a_window_of_twenty_delivers_every_one_of_many_matches() {
    let table = devices(1000);
    let reader = table.reader();
    let (mut seen, mut pages) = (BTreeSet::new(), 0);
    let mut search = TopicSearch::new(
        filters(&["device/#", "+/+/param/+"]),
        SearchOptions::default(),
    );
    while !search.is_done() {
        let page = search.page(&reader, 2, 20, &mut |found| {
            assert_eq!(found.filters, [0, 1]);
            assert!(seen.insert(found.retained.id));
            Ok(())
        });
        pages += 1;
        assert!(page.unwrap().delivered <= 20);
    }
    assert_eq!(seen.len(), 20_000);
    assert!(pages <= 1002, "{pages} pages");
}

#[test]
fn all_topics_are_found_with_those_that_begin_with_a_dollar() {
    let table = devices(3);
    let reader = table.reader();
    let with_dollar = |text: &str| Filter::parse(text).unwrap().with_dollar_topics();
    let topics = |filters: Vec<Filter>| {
        let mut search = TopicSearch::new(filters, SearchOptions::default());
        let mut topics = Vec::new();
        while !search.is_done() {
            let mut add = |found: crate::topics::Match<'_>| {
                topics.push(found.retained.message.topic.to_owned());
                Ok(())
            };
            search.page(&reader, 2, 7, &mut add).unwrap();
        }
        topics
    };
    let count = |filter: &Filter| reader.count(filter, 2, None, u64::MAX).unwrap().messages;
    let all = with_dollar("#");
    assert_eq!((count(&all), count(&filters(&["#"])[0])), (63, 62));
    assert_eq!(topics(vec![all.clone()]).len(), 63);
    assert_eq!(topics(vec![with_dollar("+/+/rare")]).len(), 2);
    assert_eq!(topics(filters(&["+/+/rare"])).len(), 1);
    // Each topic is returned once, whichever of its filters comes first.
    let plain = filters(&["#"]).remove(0);
    assert_eq!(topics(vec![all.clone(), plain.clone()]).len(), 63);
    assert_eq!(topics(vec![plain.clone(), all.clone()]).len(), 63);
    // A token of one search is not valid in another search.
    let mut search = TopicSearch::new(vec![all], SearchOptions::default());
    search.page(&reader, 2, 5, &mut |_| Ok(())).unwrap();
    let resumed = TopicSearch::resume(vec![plain], SearchOptions::default(), &search.token());
    assert!(matches!(resumed, Err(Error::Refused { .. })));
}

#[test]
fn plus_skips_subtrees_instead_of_reading_them() {
    let table = devices(1000);
    let reader = table.reader();
    let own = counters(&reader, &["device/017/+/4"]);
    assert!(own.delivered == 1 && own.rows < 6, "{own:?}");
    let children = counters(&reader, &["device/+"]);
    assert!(
        children.delivered == 0 && children.rows <= 1001,
        "{children:?}"
    );
    let prefix = counters(&reader, &["device/017/#"]);
    assert!(
        prefix.delivered == 20 && prefix.rows <= 21 && prefix.pages < 20,
        "{prefix:?}"
    );
    let first = counters(&reader, &["+/007/#"]);
    assert!(first.delivered == 21 && first.rows < 40, "{first:?}");
}

#[test]
fn names_behind_wildcards_are_found_by_sets_if_they_are_rare() {
    let table = devices(1000);
    let reader = table.reader();
    let rare = counters(&reader, &["+/+/rare"]);
    assert_eq!(
        (rare.delivered, rare.term_lookups, rare.candidates),
        (1, 1, 2)
    );
    assert!(rare.rows < 10 && rare.pages < 200, "{rare:?}");
    // A pattern that made other brokers slow: many filters without a match.
    for number in 0..50 {
        let none = counters(&reader, &[&format!("+/+/none{number}/#")]);
        assert!(
            none.delivered == 0 && none.rows <= 4 && none.pages < 200,
            "{none:?}"
        );
    }
    // Names that most topics have are found with a walk.
    let common = counters(&reader, &["+/+/param/+"]);
    assert_eq!((common.delivered, common.term_lookups), (20_000, 0));
}

#[test]
fn matches_of_the_first_rows_are_not_delivered_again_by_sets() {
    let mut table = devices(1000);
    let topics: Vec<String> = (0..9).map(|i| format!("a/{i}/rare")).collect();
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "x")).collect();
    table.publish(&rows);
    let reader = table.reader();
    assert_eq!(counters(&reader, &["+/+/rare"]).term_lookups, 1);
    for credit in [1, 2, 4, 5, 20] {
        let mut search = TopicSearch::new(filters(&["+/+/rare"]), SearchOptions::default());
        let (mut seen, mut lookups) = (BTreeSet::new(), 0);
        while !search.is_done() {
            let page = search.page(&reader, 2, credit, &mut |found| {
                let topic = found.retained.message.topic.to_owned();
                assert!(seen.insert(topic), "delivered twice");
                Ok(())
            });
            assert!(page.unwrap().delivered <= credit);
            lookups += search.counters().term_lookups;
            let token = search.token();
            search = TopicSearch::resume(filters(&["+/+/rare"]), SearchOptions::default(), &token)
                .unwrap();
        }
        assert_eq!((seen.len(), lookups), (10, 1));
    }
}

#[test]
fn sets_are_read_again_when_topics_were_added_between_pages() {
    let mut table = devices(100);
    let topics: Vec<String> = (0..9).map(|i| format!("a/{i}/rare")).collect();
    let rows: Vec<(&str, &str)> = topics.iter().map(|topic| (topic.as_str(), "x")).collect();
    table.publish(&rows);
    let filters = filters(&["a/+/rare"]);
    let token = token::encode(&filters, 0, &Place::Terms(0, Vec::new()));
    let mut search = TopicSearch::resume(filters, SearchOptions::default(), &token).unwrap();
    let mut seen = Vec::new();
    let mut page = |table: &Table, credit| {
        let page = search.page(&table.reader(), 2, credit, &mut |found| {
            seen.push(found.retained.message.topic.to_owned());
            Ok(())
        });
        assert!(page.unwrap().delivered <= credit);
        search.counters().candidates
    };
    let candidates = page(&table, 3);
    // An overwrite assigns no new id, so the sets that were read remain valid.
    table.publish(&[("a/7/rare", "y")]);
    assert_eq!(page(&table, 1), candidates);
    // The last topic, and the first one, which was already returned, get new ids.
    table.publish(&[("a/8/rare", ""), ("a/0/rare", "")]);
    table.publish(&[("a/8/rare", "x"), ("a/0/rare", "x")]);
    page(&table, 100);
    let mut expected: Vec<&str> = topics.iter().map(String::as_str).collect();
    expected.extend(["a/0/rare"]);
    seen.sort();
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

#[test]
fn sets_of_several_names_are_intersected_before_topics_are_read() {
    let table = devices(100);
    let filters = filters(&["+/007/+/7"]);
    let token = token::encode(&filters, 0, &Place::Terms(0, Vec::new()));
    let options = SearchOptions::default();
    let mut search = TopicSearch::resume(filters, options, &token).unwrap();
    let page = search
        .page(&table.reader(), 2, 10, &mut |_| Ok(()))
        .unwrap();
    assert_eq!((page.delivered, page.is_done), (1, true));
    // Twenty topics have the first name, and a hundred have the second.
    let counters = search.counters();
    assert_eq!((counters.candidates, counters.rows), (1, 1));
}

#[test]
fn overlapping_filters_deliver_each_topic_once_with_all_its_filters() {
    let mut table = Table::new(512, TopicOptions::default());
    table.publish(&[
        ("a", "1"),
        ("a/b", "1"),
        ("a/b/c", "1"),
        ("b", "1"),
        ("$x", "1"),
        ("/", "1"),
    ]);
    let reader = table.reader();
    let own = |topic: &str, filters: &[usize]| (topic.to_owned(), filters.to_vec());
    assert_eq!(
        found(&reader, &["a/+", "$share/g/#", "#", "a/#", "$x", "a/+"], 2),
        [
            own("a/b", &[0, 2, 3, 5]),
            own("/", &[2]),
            own("a", &[2, 3]),
            own("a/b/c", &[2, 3]),
            own("b", &[2]),
            own("$x", &[4]),
        ]
    );
    assert_eq!(found(&reader, &["$share/g/a"], 2), []);
}

#[test]
fn an_earlier_range_is_skipped_and_not_read_again() {
    let table = devices(1000);
    let twice = counters(&table.reader(), &["device/#", "#"]);
    assert!(
        twice.delivered == 20_002 && twice.rows < 20_020,
        "{twice:?}"
    );
}

#[test]
fn a_page_reads_no_more_rows_than_it_may() {
    let table = devices(100);
    let options = SearchOptions {
        since: u64::MAX - 1,
        rows_max: 100,
        ..SearchOptions::default()
    };
    let mut search = TopicSearch::new(filters(&["#"]), options);
    for page in 1..=20 {
        let done = search
            .page(&table.reader(), 2, 10, &mut |_| Ok(()))
            .unwrap();
        assert_eq!((done.delivered, done.is_done), (0, false));
        assert_eq!(search.counters().rows, 100 * page);
    }
}

#[test]
fn tokens_go_on_in_another_search_and_others_are_refused() {
    let table = devices(10);
    let reader = table.reader();
    let mut search = TopicSearch::new(filters(&["device/+/param/3"]), SearchOptions::default());
    search.page(&reader, 2, 4, &mut |_| Ok(())).unwrap();
    let token = search.token();
    let resume = |texts: &[&str], token: &[u8]| {
        TopicSearch::resume(filters(texts), SearchOptions::default(), token)
    };
    let mut rest = resume(&["device/+/param/3"], &token).unwrap();
    let page = rest.page(&reader, 2, 100, &mut |_| Ok(())).unwrap();
    assert_eq!((page.delivered, page.is_done), (6, true));
    assert!(
        resume(&["device/+/param/3"], &rest.token())
            .unwrap()
            .is_done()
    );
    for wrong in [
        resume(&["#"], &token),
        resume(&["device/+/param/3"], &token[..9]),
    ] {
        assert!(matches!(wrong, Err(Error::Refused { .. })));
    }
    for at in 0..token.len() {
        for bit in 0..8 {
            let mut other = token.clone();
            other[at] ^= 1 << bit;
            // A damaged token is refused, or the search continues at another position.
            if let Ok(mut search) = resume(&["device/+/param/3"], &other) {
                search.page(&reader, 2, 100, &mut |_| Ok(())).unwrap();
            }
        }
    }
}

#[test]
fn a_count_of_a_range_reads_few_pages() {
    let table = devices(1000);
    let reader = table.reader();
    for (filter, expected) in [
        ("device/#", 20_000),
        ("#", 20_002),
        ("device/017/#", 20),
        ("house/007/lamp", 1),
    ] {
        let before = table
            .pages
            .counters()
            .pages_read
            .load(std::sync::atomic::Ordering::Relaxed);
        let filter = Filter::parse(filter).unwrap();
        let count = reader.count(&filter, 2, None, 1000).unwrap();
        assert_eq!((count.messages, count.next), (expected, None));
        let after = table
            .pages
            .counters()
            .pages_read
            .load(std::sync::atomic::Ordering::Relaxed);
        assert!(after - before < 20, "{} pages", after - before);
    }
}

#[test]
fn a_removal_by_filter_goes_in_steps_and_a_dry_run_only_counts() {
    let mut table = devices(50);
    let filter = Filter::parse("device/+/param/7").unwrap();
    let dry = table
        .writer()
        .remove_matches(&filter, None, 1000, true)
        .unwrap();
    assert_eq!((dry.messages, dry.next), (50, None));
    let (mut token, mut removed) = (None, 0);
    loop {
        let step = table
            .writer()
            .remove_matches(&filter, token.as_deref(), 8, false)
            .unwrap();
        assert!(step.messages <= 8);
        removed += step.messages;
        token = step.next;
        if token.is_none() {
            break;
        }
    }
    assert_eq!(removed, 50);
    assert_eq!(table.reader().stat().unwrap().messages, 50 * 19 + 3);
    table.assert_whole();
}
