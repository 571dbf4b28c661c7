//! Fills a file with a table of containers that has rows of every kind.

use super::base_file::file;
use super::files::Files;
use crate::model::clock;
use crate::model::messages::DEVICES;
use std::time::Duration;
use tidalite::containers::{
    Append, ContainerOptions, ContainerTableOptions, DeleteRange, Document, Thinning,
    ThinningFigure, ThinningRule,
};
use tidalite::{Database, Result, Timestamp};

/// Number of nanoseconds of a second.
const SECOND: i64 = 1_000_000_000;
/// Time of the newest message and of the commits. It lies long before the file is read, so that the current time is
/// taken from the commits.
const NOW: i64 = clock::START;
/// Number of messages of the largest container.
const MESSAGES: i64 = 300;

/// Creates the file.
///
/// # Errors
/// An error of the database.
pub(super) fn containers() -> Result<Files> {
    file(512, |db| clock::at(NOW, || fill(db)))
}

fn options() -> ContainerTableOptions {
    ContainerTableOptions {
        idempotency_window: Some(Duration::from_secs(3600)),
        defaults: ContainerOptions {
            keep_deleted: Duration::from_secs(3600),
            protect: Some("keep".to_owned()),
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    }
}

/// A document with values of every kind; some are larger than a page.
fn document(i: i64) -> Result<Document> {
    let text = "long ".repeat(if i % 50 == 7 { 300 } else { 1 });
    let json = format!(
        r#"{{"n": {i}, "f": {}.25, "u": 18446744073709551614, "text": "{text}", "none": null,
        "list": [1, {{"x": [true, -300]}}], "gps": {{"lat": -33.5, "deep": {{"x": {i}}}}}, "keep": {}}}"#,
        i * 3,
        i % 9 == 0
    );
    Ok(Document::from_json(&json)?)
}

fn fill(db: &Database) -> Result<()> {
    let documents = (0..MESSAGES).map(document).collect::<Result<Vec<_>>>()?;
    let mut tx = db.begin_write()?;
    let mut table = tx.containers_with(DEVICES, &options())?;
    table.create_container("empty", None)?;
    let short = ContainerOptions {
        ttl: Some(Duration::from_secs(500)),
        messages_max: Some(50),
        ..options().defaults
    };
    table.create_container("short", Some(&short))?;
    let keys: Vec<String> = (0..MESSAGES).map(|i| format!("key {i}")).collect();
    let mut messages = Vec::new();
    for (i, document) in (0..MESSAGES).zip(&documents) {
        // Of some times there are several messages.
        let time = NOW - (MESSAGES - i / 2 * 2) * SECOND;
        let container = if i % 4 == 0 { "short" } else { "pump" };
        messages.push(Append {
            idempotency_key: (i % 5 == 0).then_some(keys[i as usize].as_bytes()),
            ..Append::new(container, Timestamp(time), document)
        });
    }
    table.append_batch(&messages)?;
    table.append(&Append::new("dropped", Timestamp(NOW), &documents[1]))?;
    table.append(&Append::new("dropped", Timestamp(NOW), &documents[2]))?;
    tx.commit()?;
    let mut tx = db.begin_write()?;
    let mut table = tx.containers(DEVICES)?;
    for from in [200, 100] {
        let range = DeleteRange {
            from: Timestamp(NOW - from * SECOND),
            to: Timestamp(NOW - (from - 30) * SECOND),
            ..DeleteRange::default()
        };
        table.delete_messages("pump", &range, None)?;
    }
    table.delete_messages(
        "dropped",
        &DeleteRange {
            examined_max: 1,
            ..DeleteRange::default()
        },
        None,
    )?;
    table.drop_container("dropped")?;
    let rule = |age: u64, step: u64| ThinningRule {
        age: Duration::from_secs(age),
        step: Duration::from_secs(step),
    };
    let thinning = Thinning {
        rules: vec![rule(20, 10), rule(150, 60)],
        others: ThinningFigure::Last,
        fields: vec![("f".to_owned(), ThinningFigure::Mean)],
    };
    table.set_thinning("short", Some(&thinning))?;
    table.thin(10_000)?;
    tx.commit()?;
    Ok(())
}
