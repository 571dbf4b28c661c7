//! Tests of patterns: their selections, and texts that are refused.

mod random;

use crate::types::pattern::ast::{Condition, REGEX_BYTES_MAX, Test};
use crate::types::pattern::parser::PATTERN_DEPTH_MAX;
use crate::{ErrorKind, SeriesName, SeriesPattern};

fn selects(pattern: &str, name: &str) -> bool {
    let name = SeriesName::parse(name).unwrap();
    SeriesPattern::parse(pattern).unwrap().matches(&name)
}

#[test]
fn patterns_select_by_glob_and_tags() {
    let name = SeriesName::parse(r#"hb.wind.speed{farm="hb",turbine="R80711"}"#).unwrap();
    for (pattern, expected) in [
        ("", true),
        ("hb.*", true),
        ("hb.*.speed", true),
        ("*", true),
        ("hb.wind.spee?", true),
        ("hb.wind.spee", false),
        ("h?.*{turbine=\"R80711\"}", true),
        ("{turbine=\"R80711\"}", true),
        ("{turbine=\"R80712\"}", false),
        ("{nosuch=\"\"}", true),
        ("{turbine=[\"R80711\"]}", true),
        ("{turbine=[ \"R80710\" , \"R80711\" ],farm=\"hb\"}", true),
        ("{turbine=[\"R80710\",\"R80711\"],farm=\"sea\"}", false),
        ("{farm=[\"sea\",\"land\"]}", false),
        ("hb.*{farm=\"sea\"}{turbine=\"R80711\"}", true),
        ("hb.*{farm=\"sea\"} {turbine=\"R1\"}", false),
        ("sea.*{farm=\"sea\"}{turbine=\"R80711\"}", false),
        ("hb.*{}", true),
        ("\"hb.wind.speed\"", true),
        ("\"hb.\"*", true),
        ("hb.\"wind\".*{farm=\"hb\"}", true),
        ("*\".speed\"", true),
        ("\"hb.*\"", false),
        ("\"hb.wind.spee?\"", false),
    ] {
        let found = SeriesPattern::parse(pattern).unwrap().matches(&name);
        assert_eq!(found, expected, "{pattern}");
    }
}

/// The test prints names and checks that each selects itself and no other metric.
#[test]
fn a_printed_name_selects_itself_alone() {
    let metrics = [
        "a*b", "aXb", "ab", "a?b", "a b", "a\"b", "a\\b", "*", "?", "**", "a\nb", "größe", "{",
        "\"", "\\*",
    ];
    let name = |metric: &str| SeriesName::new(metric, [("k".to_owned(), "*".to_owned())]).unwrap();
    for metric in metrics {
        let printed = name(metric).to_string();
        let pattern = SeriesPattern::parse(&printed).unwrap();
        for other in metrics {
            assert_eq!(
                pattern.matches(&name(other)),
                other == metric,
                "{printed} of {other}"
            );
        }
        let other = SeriesName::new(metric, [("k".to_owned(), "x".to_owned())]).unwrap();
        assert!(!pattern.matches(&other), "values of tags are no globs");
    }
    // Only the part of the pattern outside the quotes is a glob.
    let begins = SeriesPattern::parse(r#""a*"*"#).unwrap();
    assert!(begins.matches(&name("a*b")) && !begins.matches(&name("aXb")));
}

#[test]
fn conditions_select_by_tags() {
    let name = r#"wind.speed{farm="hb",host="b",site="north sea",turbine="R80711"}"#;
    for (pattern, expected) in [
        ("{farm!=\"hb\"}", false),
        ("{farm!=\"sea\"}", true),
        ("{farm != hb}", false),
        ("{farm=hb}", true),
        ("{farm=h*}", true),
        ("{farm!=h*}", false),
        ("{farm=h}", false),
        ("{turbine=R8?7*}", true),
        ("{turbine=\"R8*\"}", false),
        ("{site=\"north\"*}", true),
        ("{site=\"north \"*a}", true),
        ("{site=*\" sea\"}", true),
        ("{site!=\"south\"*}", true),
        ("{host in (\"a\",\"b\")}", true),
        ("{host in(a, b)}", true),
        ("{host in (a)}", false),
        ("{host not in (a, \"c\")}", true),
        ("{host  not  in (a,b*)}", false),
        ("{host=[\"a\",\"b\"]}", true),
        ("{host!=[\"a\",\"b\"]}", false),
        (r#"{turbine=~"R8.*"}"#, true),
        (r#"{turbine=~"R8"}"#, false),
        (r#"{turbine=~"80711"}"#, false),
        (r#"{turbine=~"R(80711|80721)"}"#, true),
        (r#"{turbine=~"R1|R80711"}"#, true),
        (r#"{turbine=~"R\\d{5}"}"#, true),
        (r#"{turbine=~"(?i)r80711"}"#, true),
        (r#"{turbine!~"R8.*"}"#, false),
        (r#"{turbine!~"R9.*"}"#, true),
        (r#"{not (farm="hb")}"#, false),
        (r#"{not (farm="hb",host="a")}"#, true),
        (r#"{not (farm="hb",not (host="a"))}"#, false),
        (r#"{farm="hb",not (host="a"),turbine=~"R8.*"}"#, true),
        (
            r#"wind.*{farm="hb",state!="VIC",turbine=~"R8.*",host in ("a","b"),site="north"*,not (a="x")}"#,
            true,
        ),
        (r#"{farm="sea"}{host!="a"}"#, true),
    ] {
        assert_eq!(selects(pattern, name), expected, "{pattern}");
    }
}

#[test]
fn a_missing_tag_has_the_empty_value() {
    for (pattern, without, empty, other) in [
        ("{t=\"\"}", true, true, false),
        ("{t!=\"\"}", false, false, true),
        ("{t!=\"x\"}", true, true, true),
        ("{t!=\"y\"}", true, true, false),
        ("{t=*}", true, true, true),
        ("{t=?*}", false, false, true),
        ("{t=~\".*\"}", true, true, true),
        ("{t=~\".+\"}", false, false, true),
        ("{t=~\"|z\"}", true, true, false),
        ("{t!~\".+\"}", true, true, false),
        ("{t in (\"\",\"y\")}", true, true, true),
        ("{t not in (\"x\",\"y\")}", true, true, false),
        ("{not (t=\"y\")}", true, true, false),
    ] {
        let found = ["m", "m{t=\"\"}", "m{t=\"y\"}"].map(|name| selects(pattern, name));
        assert_eq!(found, [without, empty, other], "{pattern}");
    }
}

/// An expression must match the whole value whatever it contains, and `.` stands for any character.
#[test]
fn expressions_are_anchored() {
    for (expression, value, expected) in [
        ("a|b", "ab", false),
        ("a|b", "b", true),
        ("^a$", "a", true),
        ("(?m)^a$", "a\\nb", false),
        ("a.b", "a\\nb", true),
        ("", "", true),
        ("", "a", false),
        ("a$", "a\\n", false),
    ] {
        let pattern = format!("{{t=~\"{expression}\"}}");
        let found = selects(&pattern, &format!("m{{t=\"{value}\"}}"));
        assert_eq!(found, expected, "{pattern} {value}");
    }
}

/// Words of the grammar may be keys, too.
#[test]
fn keywords_may_be_keys() {
    let name = r#"m{in="1",not="2","a!"="3",not(x="4"}"#;
    for (pattern, expected) in [
        ("{in=1}", true),
        ("{not=2}", true),
        ("{not!=2}", false),
        ("{in in (1)}", true),
        ("{not in (2)}", true),
        ("{not not in (2)}", false),
        ("{not (not=2)}", false),
        ("{\"not\"=\"2\"}", true),
        ("{\"a!\"=3}", true),
        ("{a!=3}", true),
        ("{not(x=4}", true),
        ("{inn!=1}", true),
    ] {
        assert_eq!(selects(pattern, name), expected, "{pattern}");
    }
}

#[test]
fn errors_have_a_position_and_the_next_step() {
    for (text, position, problem, next) in [
        ("a{b=[]}", 5, "expected a word or a quoted text", ""),
        ("a{b=[\"c\"}", 8, "expected , or ]", ""),
        ("a{b=[\"c\",]}", 9, "expected a word", ""),
        ("a{b=\"c\"}{", 9, "expected a word", ""),
        ("a{b=\"c\"}d", 8, "unexpected text", ""),
        ("a b", 2, "unexpected text", ""),
        ("\"a", 1, "quoted text without an end", ""),
        ("a{b}", 3, "expected =", "a condition is"),
        ("a{b>\"1\"}", 4, "expected =", "a condition is"),
        ("a{b in \"c\"}", 7, "expected (", ""),
        ("a{b in ()}", 8, "expected a word", ""),
        ("a{b not (c)}", 8, "expected =", "a condition is"),
        ("a{not(b=\"c\")}", 11, "expected , or }", ""),
        ("a{not(b)}", 2, "expected =", "a group needs a space"),
        ("a{not (b=\"c\"}", 12, "expected , or )", ""),
        ("a{\"\"=\"c\"}", 2, "at least one character", ""),
        ("größe{b=~c}", 9, "expected a quoted text", ""),
        ("a{b=~\"(\"}", 5, "invalid regular expression", "regex-lite"),
        (
            "a{b=~\"a)(b\"}",
            5,
            "invalid regular expression",
            "regex-lite",
        ),
        ("a{b=~\"\\d\"}", 6, "unknown escape", "needs \\\\"),
        (
            "a{b=~\"x{1000}{1000}\"}",
            5,
            "invalid regular expression",
            "",
        ),
        ("}", 0, "expected a word", ""),
    ] {
        let error = SeriesPattern::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidName);
        assert_eq!(
            (error.name(), error.position()),
            (Some(text), Some(position)),
            "{error}"
        );
        let error = error.to_string();
        assert!(
            error.contains(problem) && error.contains(next),
            "{text}: {error}"
        );
    }
}

/// Deep, long and malformed patterns are refused or evaluated; none of them overflows the stack.
#[test]
fn hostile_patterns_do_no_harm() {
    let nested =
        |depth: usize| format!("{{{}a=\"x\"{}}}", "not (".repeat(depth), ")".repeat(depth));
    let deepest = nested(PATTERN_DEPTH_MAX);
    assert!(!selects(&deepest, "m") && selects(&deepest, "m{a=\"x\"}"));
    for depth in [PATTERN_DEPTH_MAX + 1, 100_000] {
        let error = SeriesPattern::parse(&nested(depth)).unwrap_err();
        assert!(error.to_string().contains("inside each other"), "{error}");
    }
    let deep = format!("{{a=~\"{}\"}}", "(".repeat(100_000));
    assert!(SeriesPattern::parse(&deep).is_err());
    let stars = format!("{{a={}b}}", "*a".repeat(400));
    assert!(!selects(&stars, &format!("m{{a=\"{}\"}}", "a".repeat(900))));
    // Exponential for a backtracking engine.
    let slow = format!("{{a=~\"{}\"}}", "(a*)*".repeat(20) + "b");
    assert!(!selects(&slow, &format!("m{{a=\"{}\"}}", "a".repeat(900))));
    let many: Vec<String> = (0..20_000).map(|n| format!("\"v{n}\"")).collect();
    let list = format!("{{a in ({})}}", many.join(","));
    assert!(selects(&list, "m{a=\"v19999\"}") && !selects(&list, "m{a=\"v20000\"}"));
    // The bound on expressions leaves room for long lists of values.
    let choices = format!("{{a=~\"{}\"}}", vec!["turbine_80711"; 1_000].join("|"));
    assert!(
        selects(&choices, "m{a=\"turbine_80711\"}"),
        "{REGEX_BYTES_MAX}"
    );
}

/// A parsed pattern gives its exact values and prefixes, which an index of the catalog would need.
#[test]
fn conditions_tell_their_exact_values_and_prefixes() {
    let pattern = SeriesPattern::parse(r#"wind.*{farm in ("a",b*c),turbine="R8"*}"#).unwrap();
    assert_eq!(pattern.0.metric.as_ref().unwrap().prefix(), "wind.");
    assert_eq!(Vec::from_iter(pattern.keys()), ["farm", "turbine"]);
    let nested = SeriesPattern::parse("{a=b}{not (c=d,not (a=e))}").unwrap();
    assert_eq!(Vec::from_iter(nested.keys()), ["a", "c"]);
    let told = pattern.0.sets[0].iter().map(|condition| match condition {
        Condition::Tag {
            key,
            test: Test::Values(values),
            negated: false,
        } => {
            let exact: Vec<&str> = values.exact.iter().map(String::as_str).collect();
            let prefixes: Vec<String> = values.globs.iter().map(|glob| glob.prefix()).collect();
            (key.as_str(), exact, prefixes)
        }
        other => panic!("{other:?}"),
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told[0], ("farm", vec!["a"], vec!["b".to_owned()]));
    assert_eq!(told[1], ("turbine", vec![], vec!["R8".to_owned()]));
}
