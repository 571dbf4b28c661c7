//! Thinning: single rules, bounds on the work of a call, and damage.

use super::damage::{full, put, rows};
use super::rules::is_refused;
use super::{Table, doc};
use crate::containers::document::Document;
use crate::containers::edit::DeleteRange;
use crate::containers::options::{ContainerOptions, OnDuplicate};
use crate::containers::parts::Part;
use crate::containers::restore::RestoreRange;
use crate::containers::thin::Thinned;
use crate::containers::thinning::{
    THINNING_FIELDS_MAX, THINNING_RULES_MAX, Thinning, ThinningFigure, ThinningRow, ThinningRule,
};
use crate::containers::value::FieldValue;
use crate::containers::write::ContainersWriter;
use std::time::Duration;
use tidalite_pager::Error;

/// Rules with these ages and steps. The figure of a field is given by its name.
pub(super) fn rules(ages_and_steps: &[(i64, i64)]) -> Thinning {
    let rules = ages_and_steps.iter();
    let figures = [
        ("first", ThinningFigure::First),
        ("min", ThinningFigure::Min),
        ("max", ThinningFigure::Max),
        ("mean", ThinningFigure::Mean),
        ("sum", ThinningFigure::Sum),
        ("drop", ThinningFigure::Drop),
    ];
    Thinning {
        rules: rules
            .map(|&(age, step)| ThinningRule {
                age: Duration::from_nanos(age as u64),
                step: Duration::from_nanos(step as u64),
            })
            .collect(),
        others: ThinningFigure::Last,
        fields: figures.map(|(name, figure)| (name.into(), figure)).into(),
    }
}

/// A table whose container `x` has these rules.
fn thinned_by(options: ContainerOptions, ages_and_steps: &[(i64, i64)]) -> Table {
    let mut table = Table::with(options);
    let mut writer = table.writer();
    writer.create_container(0, "x", None).unwrap();
    writer
        .set_thinning("x", Some(rules(ages_and_steps)))
        .unwrap();
    table
}

fn protecting() -> ContainerOptions {
    ContainerOptions {
        protect: Some("keep".into()),
        ..ContainerOptions::default()
    }
}

fn kept() -> Document {
    let mut document = doc(&[("n", 1)]);
    document.set("keep", FieldValue::Bool(true));
    document
}

fn thin(table: &mut Table, now: i64, examined_max: u64) -> Thinned {
    let thinned = table.writer().thin(now, "x", examined_max).unwrap();
    table.assert_whole();
    thinned
}

fn mean(value: f64) -> Document {
    let mut document = Document::default();
    document.set("mean", FieldValue::Float(value));
    document
}

#[test]
fn a_step_that_does_not_fit_into_one_message_stays() {
    let fields = |from: usize| {
        let mut document = Document::default();
        for at in from..from + 400 {
            document.set(&format!("f{at}"), FieldValue::Null);
        }
        document
    };
    let large = |name: &str| {
        let mut document = Document::default();
        document.set(name, FieldValue::Text("x".repeat(9 << 20)));
        document
    };
    let wide = vec![FieldValue::Null; 600_000];
    let many = |name: &str| {
        let mut document = Document::default();
        document.set(name, FieldValue::List(wide.clone()));
        document
    };
    let mut table = thinned_by(ContainerOptions::default(), &[(1, 10), (2, 100)]);
    let small = doc(&[("n", 1)]);
    table.append_all(
        0,
        &[
            ("x", 1, fields(0)),
            ("x", 2, fields(400)),
            ("x", 3, fields(800)),
            ("x", 4, small.clone()),
            ("x", 110, large("a")),
            ("x", 111, large("b")),
            ("x", 210, many("c")),
            ("x", 211, many("d")),
            ("x", 310, small.clone()),
            ("x", 311, small),
        ],
    );
    let thinned = thin(&mut table, 1000, 1000);
    assert!(!thinned.more);
    assert_eq!((thinned.changed, thinned.removed), (1, 1));
    assert_eq!(thinned.spans, [(310, 311)]);
    assert_eq!(table.times("x", 0), [1, 2, 3, 4, 110, 111, 210, 211, 310]);
    // A message with the maximum number of fields fits.
    let mut table = thinned_by(ContainerOptions::default(), &[(1, 10)]);
    table.append_all(
        0,
        &[
            ("x", 1, fields(0)),
            ("x", 2, fields(400)),
            ("x", 3, fields(600)),
        ],
    );
    thin(&mut table, 1000, 1000);
    assert_eq!(table.documents("x", 0)[0].2.len(), 1000);
}

#[test]
fn spans_join_neighbouring_steps_only() {
    let mut table = thinned_by(ContainerOptions::default(), &[(10, 10), (1000, 100)]);
    let items = [0, 1, 500, 501, 510, 511, 530, 531].map(|time| ("x", time, doc(&[("n", time)])));
    table.append_all(0, &items);
    let thinned = thin(&mut table, 10_000, 1000);
    let expected = [(0, 1), (500, 511), (530, 531), (500, 530)];
    assert_eq!(thinned.spans, expected);
    assert_eq!(table.times("x", 0), [0, 500]);
    assert_eq!(thin(&mut table, 10_000, 1000).spans, []);
}

#[test]
fn expired_messages_are_not_merged_with_others() {
    let mut table = thinned_by(
        ContainerOptions {
            ttl: Some(Duration::from_nanos(1000)),
            ..ContainerOptions::default()
        },
        &[(100, 100)],
    );
    let items = [45, 46, 55, 56, 57].map(|time| ("x", time, doc(&[("n", time)])));
    table.append_all(0, &items);
    let thinned = thin(&mut table, 1050, 1000);
    assert_eq!((thinned.removed, thinned.more), (2, false));
    assert_eq!(table.documents("x", 1050), [(55, 0, doc(&[("n", 57)]))]);
    assert_eq!(table.times("x", 0), [45, 46, 55]);
}

#[test]
fn a_call_is_bounded_among_protected_messages() {
    tidalite_testkit::watch();
    for (every, step) in [(1, 100), (1, 1_000_000), (0, 100)] {
        let mut table = thinned_by(protecting(), &[(1, step)]);
        let mut items: Vec<_> = (0..500).map(|at| ("x", at * every, kept())).collect();
        items.push(("x", 600, doc(&[("n", 2)])));
        items.push(("x", 601, doc(&[("n", 3)])));
        table.append_all(0, &items);
        let (mut calls, mut examined, mut removed) = (0, 0, 0);
        loop {
            let thinned = table.writer().thin(10_000_000, "x", 10).unwrap();
            // Messages of one time are read together.
            assert!(thinned.examined <= if every == 0 { 502 } else { 12 });
            calls += 1;
            examined += thinned.examined;
            removed += thinned.removed;
            if !thinned.more {
                break;
            }
            assert!(calls < 60, "every {every}, step {step}");
        }
        table.assert_whole();
        assert_eq!(removed, 1);
        assert!(examined < 600, "{examined}");
    }
}

#[test]
fn a_large_step_is_thinned_in_parts() {
    let document = |at: i64| {
        let mut document = doc(&[("first", at + 3), ("last", at), ("drop", at)]);
        let number = (at * 7919) % 10_007;
        for name in ["min", "max", "sum"] {
            document.set(name, FieldValue::Integer(number.into()));
        }
        document.set("mean", FieldValue::Integer((at % 101).into()));
        if at == 13_000 {
            document.set("late", FieldValue::Bool(true));
        }
        document
    };
    let count = 25_000;
    let mut results = Vec::new();
    for examined_max in [u64::MAX, 100] {
        let mut table = thinned_by(ContainerOptions::default(), &[(1, 1_000_000)]);
        let items: Vec<_> = (0..count).map(|at| ("x", at, document(at))).collect();
        table.append_all(0, &items);
        let mut calls = 0;
        loop {
            let thinned = table.writer().thin(10_000_000, "x", examined_max).unwrap();
            assert!(thinned.examined < 10_100 || examined_max == u64::MAX);
            calls += 1;
            if !thinned.more {
                break;
            }
            assert!(calls < 10);
        }
        table.assert_whole();
        let reader = table.reader();
        let found = reader.get("x", 0, 0).unwrap();
        assert_eq!(found[0].stands_for, count as u32);
        results.push((calls, table.documents("x", 0)));
    }
    assert_eq!((results[0].0, results[1].0), (1, 3));
    assert_eq!(results[0].1, results[1].1);
    let (_, _, document) = &results[0].1[0];
    let sum: i64 = (0..count).map(|at| at % 101).sum();
    let mean = FieldValue::Float(sum as f64 / count as f64);
    assert_eq!(document.get("mean"), Some(&mean));
    assert_eq!(document.get("drop"), None);
}

#[test]
fn a_mean_of_means_counts_all_messages() {
    let mut table = thinned_by(ContainerOptions::default(), &[(10, 10), (100, 100)]);
    for (time, value) in [
        (0, 1.0),
        (1, 2.0),
        (2, 3.0),
        (10, 10.0),
        (20, 4.0),
        (21, 5.0),
    ] {
        table.append_all(0, &[("x", time, mean(value))]);
    }
    thin(&mut table, 50, 1000);
    assert_eq!(table.times("x", 0), [0, 10, 20]);
    let thinned = thin(&mut table, 1000, 1000);
    assert_eq!(thinned.removed, 2);
    assert_eq!(table.documents("x", 0), [(0, 0, mean(25.0 / 6.0))]);
    // Numbers whose sum is too large for a float.
    let mut table = thinned_by(ContainerOptions::default(), &[(10, 10)]);
    let items = [
        (0, 1.5e308),
        (1, 1.5e308),
        (10, f64::MAX),
        (11, -f64::MAX),
        (20, f64::MAX),
        (21, f64::MAX),
    ];
    table.append_all(0, &items.map(|(time, value)| ("x", time, mean(value))));
    thin(&mut table, 1000, 1000);
    let found = table.documents("x", 0);
    let expected = [
        (0, 0, mean(1.5e308)),
        (10, 0, mean(0.0)),
        (20, 0, mean(f64::MAX)),
    ];
    assert_eq!(found, expected);
}

/// The number of messages for which a message stands does not change as long as the message exists.
#[test]
fn a_thinned_message_keeps_its_weight() {
    let mut table = thinned_by(
        ContainerOptions {
            on_duplicate: OnDuplicate::Merge,
            keep_deleted: Duration::from_nanos(1000),
            ..ContainerOptions::default()
        },
        &[(10, 10)],
    );
    let items = [1, 2, 3].map(|time| ("x", time, mean(time as f64)));
    table.append_all(0, &items);
    thin(&mut table, 100, 1000);
    let weight = |table: &Table| table.reader().get("x", 1, 0).unwrap()[0].stands_for;
    assert_eq!(weight(&table), 3);
    let mut writer = table.writer();
    writer
        .delete_messages(100, "x", &DeleteRange::default(), &mut |_| Ok(true))
        .unwrap();
    writer
        .restore_messages(100, "x", &RestoreRange::default())
        .unwrap();
    assert_eq!(weight(&table), 3);
    table.append(100, "x", 1, &[("n", 1)]);
    assert_eq!(weight(&table), 3);
    table.assert_whole();
    ContainersWriter::recover(&mut table.root, &mut table.pages, 100).unwrap();
    assert_eq!(weight(&table), 3);
    let mut writer = table.writer();
    writer
        .replace_message(100, "x", (1, 0), &mean(5.0))
        .unwrap();
    assert_eq!(weight(&table), 1);
    table.assert_whole();
}

/// The work for a message is linear in the number of its fields.
#[test]
fn messages_with_many_fields_in_other_orders_are_thinned() {
    let mut table = thinned_by(ContainerOptions::default(), &[(10, 1_000_000)]);
    let document = |shift: usize| {
        let mut fields: Vec<_> = (0..1000)
            .map(|at| (format!("f{at}"), FieldValue::Integer(1)))
            .collect();
        fields.rotate_left(shift);
        Document::new(fields).unwrap()
    };
    let items: Vec<_> = (0..300)
        .map(|at| ("x", at, document(at as usize)))
        .collect();
    table.append_all(0, &items);
    assert_eq!(thin(&mut table, 10_000_000, 1000).removed, 299);
}

#[test]
fn rules_have_limits() {
    let mut table = thinned_by(ContainerOptions::default(), &[(10, 10)]);
    let mut set = |change: &dyn Fn(&mut Thinning)| {
        let mut thinning = rules(&[(10, 10)]);
        change(&mut thinning);
        table.writer().set_thinning("x", Some(thinning))
    };
    let several = |count: usize| {
        move |thinning: &mut Thinning| {
            let rules = 1..=count as u64;
            thinning.rules = rules
                .map(|at| ThinningRule {
                    age: Duration::from_nanos(at),
                    step: Duration::from_nanos(at),
                })
                .collect();
        }
    };
    let named = |count: usize, len: usize| {
        move |thinning: &mut Thinning| {
            let fields = 0..count;
            thinning.fields = fields
                .map(|at| (format!("{at:0len$}"), ThinningFigure::Sum))
                .collect();
        }
    };
    set(&several(THINNING_RULES_MAX)).unwrap();
    set(&named(THINNING_FIELDS_MAX, 255)).unwrap();
    for wrong in [
        set(&several(0)),
        set(&several(THINNING_RULES_MAX + 1)),
        set(&named(THINNING_FIELDS_MAX + 1, 3)),
        set(&named(1, 256)),
        set(&|thinning| thinning.fields[1].0.clear()),
        set(&|thinning| thinning.fields[1].0 = "first".into()),
        set(&|thinning| thinning.rules[0].age = Duration::ZERO),
        set(&|thinning| thinning.rules[0].step = Duration::ZERO),
        set(&|thinning| thinning.rules.push(thinning.rules[0])),
    ] {
        assert!(is_refused(&wrong), "{wrong:?}");
    }
    assert!(is_refused(&table.writer().set_thinning("y", None)));
    assert!(is_refused(&table.writer().thin(0, "y", 1)));
    let stored = table.reader().thinning("x").unwrap().unwrap();
    assert_eq!(stored.fields.len(), THINNING_FIELDS_MAX);
}

/// Each changed bit of a row of rules causes a typed error or other rules, and a recovery drops rows that cause errors.
#[test]
fn damaged_rules_give_errors_and_are_dropped() {
    let mut table = full();
    let before = rows(&table, Part::Thinning);
    let (key, row) = before[0].clone();
    let name = table.reader().thinned_containers(None, 1).unwrap()[0]
        .1
        .clone();
    let mut refused = 0;
    for bit in 0..8 * row.len() {
        let mut wrong = row.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        put(&mut table, Part::Thinning, &key, Some(&wrong));
        let found = table.reader().thinning(&name);
        match ThinningRow::decode(&wrong) {
            Ok(row) => assert_eq!(found.unwrap(), Some(row.thinning), "bit {bit}"),
            Err(_) => {
                refused += 1;
                assert!(matches!(found, Err(Error::Corrupt(_))), "bit {bit}");
                let thinned = table.writer().thin(1000, &name, 10);
                assert!(matches!(thinned, Err(Error::Corrupt(_))), "bit {bit}");
                assert!(table.problems().is_err(), "bit {bit}");
                if refused % 16 == 1 {
                    ContainersWriter::recover(&mut table.root, &mut table.pages, 100).unwrap();
                    assert_eq!(table.reader().thinning(&name).unwrap(), None);
                    table.assert_whole();
                }
            }
        }
    }
    assert!(refused > 100, "{refused}");
}
