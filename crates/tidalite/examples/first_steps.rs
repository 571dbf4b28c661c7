//! Create a file, write points and a table entry in one transaction, step through them, search.
//!
//! `cargo run --release -p tidalite --example first_steps`

#![expect(clippy::print_stdout, reason = "an example talks")]

use tidalite::{Database, Direction, Row, Series, Timestamp};

fn print(what: &str, series: &Series<'_>, row: Option<Row>) {
    let unit = series.info().schema.unit;
    match row {
        Some(row) => println!("{what}: {} at {}", row.f64(1), unit.text(row.time)),
        None => println!("{what}: none"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tidalite-first-steps-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let db = Database::open(dir.join("plant.tdl"))?; // creates it, or opens what is there

    let mut tx = db.begin_write()?; // one writer at a time; drop = roll back
    let mut wind = tx.series(r#"wind.speed{farm="hb"}"#)?;
    wind.insert("2020-01-01", 1.0)?;
    wind.insert("2020-01-04", 4.0)?;
    wind.insert("2020-01-03", 3.0)?; // anywhere between
    tx.table("config")?.put(b"hub_height", b"80")?; // the same transaction
    tx.commit()?; // durable when it returns

    let snap = db.begin_read()?; // never blocks, never changes
    let wind = snap
        .series(r#"wind.speed{farm="hb"}"#)?
        .ok_or("no such series")?;
    let mut at = wind.cursor();
    let mut row = at.first()?;
    while let Some(current) = row {
        let value = wind.get::<f64>(&current, "value")?;
        println!("{:?}: {value}", current.time);
        row = at.next()?; // and at.previous()
    }
    let noon = Timestamp::parse("2020-01-03T12:00:00Z")?;
    let at_or_before = at.search(noon)?; // January 3rd; step on from here
    let before = at.previous()?; // January 1st
    let at_or_after = wind.nearest(noon, Direction::Forward)?; // January 4th
    let just_then = wind.at(noon)?; // none
    let mean = wind.query("2020-01-02"..).aggregate("value")?.mean(); // 3.5, read from the tree

    print("at or before", &wind, at_or_before);
    print("the one before that", &wind, before);
    print("at or after", &wind, at_or_after);
    print("just then", &wind, just_then);
    println!("mean from January 2nd on: {mean:?}");
    assert_eq!(mean, Some(3.5));

    drop(snap);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
