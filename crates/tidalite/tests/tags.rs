//! The index of tags: random creations, removals, renames and rollbacks; random patterns, each compared with a test of
//! all names; listings compared with counts of all names.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidalite::query::TagCount;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Database, ErrorKind, Options, Schema, SeriesId, SeriesName, SeriesPattern, Tuning, WriteTxn,
};
use tidalite_testkit::rng::Rng;

/// Names of series by id; a GUID in place of the name of a series without one.
type Model = BTreeMap<SeriesId, Result<SeriesName, [u8; 16]>>;

const METRICS: [&str; 5] = ["power", "power.max", "wind", "wind speed", "\0"];
const KEYS: [&str; 5] = ["farm", "turbine", "far", "odd\0", "state"];

fn small() -> Database {
    Options::new()
        .page_size(512)
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn random_name(rng: &mut Rng) -> SeriesName {
    let mut tags = Vec::new();
    for (key, values) in KEYS.into_iter().zip([3, 400, 2, 2, 12]) {
        if rng.one_in(4) {
            continue;
        }
        let value = match rng.below(values) {
            0 => String::new(),
            1 => "a\0b".to_owned(),
            n => format!("v{n}"),
        };
        tags.push((key.to_owned(), value));
    }
    SeriesName::new(*rng.pick(&METRICS), tags).unwrap()
}

/// A condition; the texts in it are the ones of `random_name`, or similar.
fn random_condition(rng: &mut Rng) -> String {
    let key = format!("{:?}", rng.pick(&KEYS)).replace("\\0", "\0");
    let value = |rng: &mut Rng| match rng.below(8) {
        0 => r#""""#.to_owned(),
        1 => "\"a\0b\"".to_owned(),
        2 => format!("\"v{}\"*", rng.below(5)),
        3 => "*".to_owned(),
        4 => "?*".to_owned(),
        _ => format!("\"v{}\"", rng.below(30)),
    };
    match rng.below(8) {
        0 | 1 => format!("{key}={}", value(rng)),
        2 => format!("{key}!={}", value(rng)),
        3 => format!("{key} in ({},{},{})", value(rng), value(rng), value(rng)),
        4 => format!("{key} not in ({},{})", value(rng), value(rng)),
        5 => format!(r#"{key}=~"v[1-3].*|{}""#, ["", "x", "a.b"][rng.index(3)]),
        6 => format!(r#"{key}!~"v[1-3].*|{}""#, ["", "x"][rng.index(2)]),
        _ => format!("not ({},{})", random_condition(rng), random_condition(rng)),
    }
}

fn random_pattern(rng: &mut Rng) -> String {
    let mut pattern = (*rng.pick(&[
        "",
        "power",
        "power*",
        "wind*",
        "*",
        "\"wind speed\"",
        "none",
    ]))
    .to_owned();
    for _ in 0..rng.index(3) {
        let conditions: Vec<_> = (0..rng.index(3) + 1)
            .map(|_| random_condition(rng))
            .collect();
        pattern += &format!("{{{}}}", conditions.join(","));
    }
    pattern
}

/// The name that patterns see.
fn seen(name: &Result<SeriesName, [u8; 16]>) -> SeriesName {
    match name {
        Ok(name) => name.clone(),
        Err(guid) => SeriesName::new(tidalite::text::guid_text(guid), []).unwrap(),
    }
}

fn compare(db: &Database, model: &Model, rng: &mut Rng) {
    let snap = db.begin_read().unwrap();
    for _ in 0..30 {
        let text = random_pattern(rng);
        let pattern = SeriesPattern::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let found: Vec<_> = snap
            .list(&text)
            .unwrap()
            .iter()
            .map(|info| info.id)
            .collect();
        let selected = model
            .iter()
            .filter(|(_, name)| pattern.matches(&seen(name)));
        let expected: Vec<_> = selected.map(|(id, _)| *id).collect();
        let same = found
            .iter()
            .zip(&expected)
            .take_while(|(a, b)| a == b)
            .count();
        let next = (found.get(same), expected.get(same));
        assert_eq!(next, (None, None), "found, expected: {text}");
    }
    let names = || model.values().filter_map(|name| name.as_ref().ok());
    let counts = |texts: &mut dyn Iterator<Item = String>, prefix: &str, limit: usize| {
        let mut counts = BTreeMap::new();
        for text in texts.filter(|text| text.starts_with(prefix)) {
            *counts.entry(text).or_insert(0) += 1;
        }
        let counts = counts.into_iter().take(limit);
        counts
            .map(|(text, series)| TagCount { text, series })
            .collect::<Vec<_>>()
    };
    for prefix in ["", "p", "power", "w", "f", "far", "farm", "\0", "zz"] {
        for limit in [0, 2, usize::MAX] {
            let mut metrics = names().map(|name| name.metric().to_owned());
            assert_eq!(
                snap.metrics(prefix, limit).unwrap(),
                counts(&mut metrics, prefix, limit)
            );
            let mut keys = names().flat_map(|name| name.tags().iter().map(|(key, _)| key.clone()));
            assert_eq!(
                snap.tag_keys(prefix, limit).unwrap(),
                counts(&mut keys, prefix, limit)
            );
        }
    }
    for key in KEYS {
        for prefix in ["", "v", "v1", "a\0"] {
            let mut values = names().filter_map(|name| name.tag(key).map(str::to_owned));
            let found = snap.tag_values(key, prefix, 7).unwrap();
            assert_eq!(found, counts(&mut values, prefix, 7), "{key} {prefix}");
        }
    }
    assert_eq!(snap.tag_values("", "", 9).unwrap(), []);
    let found = snap.cardinality().unwrap();
    assert_eq!(found.series, model.len() as u64);
    let metrics: BTreeSet<_> = names().map(SeriesName::metric).collect();
    assert_eq!(found.metrics, metrics.len() as u64);
    for tag in &found.tags {
        let values: Vec<_> = names().filter_map(|name| name.tag(&tag.key)).collect();
        assert_eq!(tag.series, values.len() as u64);
        assert_eq!(
            tag.values,
            values.iter().collect::<BTreeSet<_>>().len() as u64
        );
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
}

fn change(tx: &mut WriteTxn, model: &mut Model, rng: &mut Rng) {
    let free =
        |model: &Model, name: &SeriesName| !model.values().any(|own| own.as_ref() == Ok(name));
    let some = |model: &Model, rng: &mut Rng| *model.keys().nth(rng.index(model.len())).unwrap();
    match rng.below(20) {
        0 if !model.is_empty() => {
            let id = some(model, rng);
            assert!(tx.remove_series_by_id(id).unwrap());
            model.remove(&id);
        }
        1 | 2 if !model.is_empty() => {
            let (id, name) = (some(model, rng), random_name(rng));
            if free(model, &name) {
                tx.rename_series(id, &name.to_string()).unwrap();
                model.insert(id, Ok(name));
            }
        }
        3 => {
            let mut guid = [0; 16];
            rng.fill(&mut guid);
            let id = tx.series_of_guid(guid, &Schema::point()).unwrap().info().id;
            model.insert(id, Err(guid));
        }
        _ => {
            let name = random_name(rng);
            let id = tx.series(&name.to_string()).unwrap().info().id;
            model.insert(id, Ok(name));
        }
    }
}

#[test]
fn patterns_select_what_a_test_of_all_names_selects() {
    tidalite_testkit::watch();
    for seed in 0..4 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = small();
        let mut model = Model::new();
        for round in 0..12 {
            let mut tx = db.begin_write().unwrap();
            for _ in 0..[40, 700][round % 2] {
                change(&mut tx, &mut model, &mut rng);
                if rng.one_in(200) {
                    let savepoint = tx.savepoint().unwrap();
                    let mut undone = model.clone();
                    for _ in 0..10 {
                        change(&mut tx, &mut undone, &mut rng);
                    }
                    tx.rollback_to(&savepoint).unwrap();
                }
            }
            tx.commit().unwrap();
            compare(&db, &model, &mut rng);
        }
        assert!(
            model.len() > 2000,
            "enough series that walks are worth their cost"
        );
    }
}

#[test]
fn uncommitted_series_are_selected() {
    tidalite_testkit::watch();
    let db = small();
    let mut tx = db.begin_write().unwrap();
    tx.series(r#"load{host="a"}"#).unwrap();
    let reader = tx.reader().unwrap();
    assert_eq!(reader.list(r#"load{host="a"}"#).unwrap().len(), 1);
    tx.remove_series(r#"load{host="a"}"#).unwrap();
    let reader = tx.reader().unwrap();
    assert_eq!(reader.list("load").unwrap().len(), 0);
    assert_eq!(reader.tag_keys("", 9).unwrap(), []);
}

#[test]
fn tags_of_many_series_change_together_or_not_at_all() {
    tidalite_testkit::watch();
    let db = small();
    let mut tx = db.begin_write().unwrap();
    for host in 0..300 {
        tx.series(&format!(r#"load{{host="{host}"}}"#)).unwrap();
    }
    tx.series(r#"load{host="1",site="north"}"#).unwrap();
    // A series keeps its rows when its name changes, including rows written earlier in the transaction.
    tx.series(r#"load{host="7"}"#)
        .unwrap()
        .insert_point(tidalite::Steps(7), 0, 0.5)
        .unwrap();
    let error = tx.set_tag("load", "site", Some("north")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidName, "{error}");
    assert_eq!(
        tx.set_tag("load", "host", None).unwrap_err().kind(),
        ErrorKind::InvalidName
    );
    assert_eq!(tx.set_tag("load", "", None).unwrap(), 0);
    assert_eq!(
        tx.set_tag("load", "", Some("x")).unwrap_err().kind(),
        ErrorKind::InvalidName
    );
    assert_eq!(
        tx.set_tag("load{", "a", None).unwrap_err().kind(),
        ErrorKind::InvalidName
    );
    let error = tx
        .rename_tag(r#"load{site="north"}"#, "host", "site")
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidName, "{error}");
    assert_eq!(
        tx.reader().unwrap().list(r#"load{site=""}"#).unwrap().len(),
        300
    );
    assert_eq!(
        tx.set_tag(r#"load{site=""}"#, "site", Some("south"))
            .unwrap(),
        300
    );
    assert_eq!(tx.set_tag(r#"load"#, "rack", Some("1")).unwrap(), 301);
    assert_eq!(
        tx.rename_tag(r#"load{host="7"}"#, "rack", "shelf").unwrap(),
        1
    );
    assert_eq!(tx.rename_tag("load", "none", "shelf").unwrap(), 0);
    tx.series(r#"load{host="7",shelf="1",site="south"}"#)
        .unwrap()
        .insert_point(tidalite::Steps(8), 0, 0.5)
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let renamed = snap
        .series(r#"load{host="7",shelf="1",site="south"}"#)
        .unwrap()
        .unwrap();
    assert_eq!(renamed.query(..).count().unwrap(), 2);
    assert_eq!(snap.list(r#"{site="south",rack="1"}"#).unwrap().len(), 299);
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_transaction_of_many_series_keeps_its_index() {
    tidalite_testkit::watch();
    let db = Options::new()
        .tuning(Tuning::default())
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut tx = db.begin_write().unwrap();
    for host in 0..20_000 {
        let name = format!(r#"load{{host="h{host}",rack="r{}"}}"#, host % 100);
        tx.series(&name).unwrap();
    }
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let before = snap
        .counters()
        .pages_read
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(snap.list(r#"load{host="h777"}"#).unwrap().len(), 1);
    let after = snap
        .counters()
        .pages_read
        .load(std::sync::atomic::Ordering::Relaxed);
    assert!(
        after - before < 40,
        "{} pages for one series of 20,000",
        after - before
    );
    assert_eq!(snap.list(r#"load{rack="r7"}"#).unwrap().len(), 200);
    assert_eq!(snap.list(r#"load{host="h77"*}"#).unwrap().len(), 111);
    assert_eq!(
        snap.list(r#"load{rack=~"r.",host=~"h1.*"}"#).unwrap().len(),
        1111
    );
    assert!(db.check().unwrap().is_clean());
}

#[test]
fn a_selection_that_cannot_be_read_returns_the_error_from_every_query() {
    tidalite_testkit::watch();
    let db = small();
    let mut tx = db.begin_write().unwrap();
    for host in ["a", "b"] {
        let name = format!(r#"load{{host="{host}"}}"#);
        tx.series(&name)
            .unwrap()
            .insert_point(tidalite::Steps(7), 0, 0.5)
            .unwrap();
    }
    let reader = tx.reader().unwrap();
    let chosen = reader.select("load").unwrap();
    drop(tx);
    let query = || chosen.query(..);
    let groups = [
        query().each(),
        query().group_by(["host"]),
        query().without(["host"]),
    ];
    let mut errors = vec![
        query().aggregate("value").unwrap_err(),
        chosen.series().err().unwrap(),
    ];
    for mut group in groups {
        assert_eq!(group.len(), 1);
        errors.push(group.remove(0).aggregate("value").unwrap_err());
    }
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::Evicted, "{error}");
    }
}
