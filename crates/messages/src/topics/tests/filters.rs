//! Filters: the rules of MQTT 5, and matching, compared with a naive implementation.

use super::{names, oracle, random_filter, random_topic};
use crate::topics::key::key_of;
use crate::topics::steps::{Step, first_target, step, step_after_match};
use crate::topics::{Filter, matches, topic_of_bytes};
use std::collections::BTreeSet;
use tidalite_pager::Error;
use tidalite_testkit::rng::Rng;

#[test]
fn filters_match_as_the_standard_says() {
    for (filter, topic, expected) in [
        ("a/#", "a", true),
        ("a/#", "a/b/c", true),
        ("a/#", "ab", false),
        ("#", "a/b", true),
        ("#", "/", true),
        ("#", "$SYS/a", false),
        ("+/a", "$SYS/a", false),
        ("$SYS/#", "$SYS/a", true),
        ("$SYS/+", "$SYS/a", true),
        ("+", "a", true),
        ("+", "/a", false),
        ("+/+", "/a", true),
        ("/+", "/a", true),
        ("a/+", "a", false),
        ("a/+", "a/", true),
        ("a/+/b", "a//b", true),
        ("a//b", "a/b", false),
        ("/a", "a", false),
        ("a/", "a", false),
        ("A", "a", false),
        ("+/b/#", "a/b", true),
        ("$share/g/a/+", "a/b", true),
        ("$share/g/#", "$SYS/a", false),
        ("$share/g//a", "/a", true),
        ("$shared/a", "$shared/a", true),
    ] {
        assert_eq!(
            matches(filter, topic).unwrap(),
            expected,
            "{filter} {topic}"
        );
    }
    let shared = Filter::parse("$share/group/a/+").unwrap();
    assert_eq!((shared.group(), shared.is_shared()), (Some("group"), true));
    assert_eq!(Filter::parse("$share").unwrap().group(), None);
}

#[test]
fn texts_that_are_no_filters_or_topics_are_refused() {
    for filter in [
        "",
        "a#",
        "a/b#",
        "#/a",
        "a/#/b",
        "a+",
        "+a/b",
        "a/b+",
        "a\0b",
        "$share/",
        "$share/g",
        "$share//a",
        "$share/g/",
        "$share/+/a",
        "$share/a#/b",
        "##",
    ] {
        assert!(
            matches!(Filter::parse(filter), Err(Error::Refused { .. })),
            "{filter}"
        );
    }
    for topic in [&b""[..], b"a/+", b"#", b"a\0", b"\xff"] {
        assert!(matches!(topic_of_bytes(topic), Err(Error::Refused { .. })));
    }
    let long = "a".repeat(65_536);
    assert!(matches!(Filter::parse(&long), Err(Error::Limit { .. })));
    assert!(matches!(
        topic_of_bytes(long.as_bytes()),
        Err(Error::Limit { .. })
    ));
    assert!(topic_of_bytes(&long.as_bytes()[1..]).is_ok());
}

#[test]
fn filters_match_like_the_oracle_and_skips_lose_no_match() {
    let (seed, names) = (1, names());
    println!("seed {seed}");
    let rng = &mut Rng::new(seed);
    for round in 0..3000 {
        let topics: BTreeSet<String> = (0..20).map(|_| random_topic(rng, &names)).collect();
        let keys: BTreeSet<Vec<u8>> = topics.iter().map(|topic| key_of(topic)).collect();
        let text = random_filter(rng, &names);
        let mut filter = Filter::parse(&text).unwrap();
        let has_dollar = round % 3 == 0;
        if has_dollar {
            filter = filter.with_dollar_topics();
        }
        let expected: BTreeSet<Vec<u8>> = topics
            .iter()
            .filter(|topic| {
                // If the first character is replaced, the naive implementation does not hide the topic.
                let expected = match has_dollar && topic.starts_with('$') {
                    true if text.starts_with(['+', '#']) => {
                        oracle(&text, &topic.replacen('$', "x", 1))
                    }
                    _ => oracle(&text, topic),
                };
                assert_eq!(filter.matches(topic), expected, "{text} {topic}");
                expected
            })
            .map(|topic| key_of(topic))
            .collect();
        let (mut found, mut target) = (BTreeSet::new(), first_target(&filter));
        while let Some(key) = keys.range(target.clone()..).next() {
            let mut next = step(&filter, key, &mut target);
            if next == Step::Match {
                found.insert(key.clone());
                next = step_after_match(&filter, key, &mut target);
            }
            if next == Step::End {
                break;
            }
            assert!(target > *key, "{text}: a skip from {key:?} to {target:?}");
        }
        assert_eq!(found, expected, "{text}");
    }
}
