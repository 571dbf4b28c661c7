//! Create a file, write points and a table entry in one transaction, step through them, search.
//!
//! `cargo run --release -p tidalite --example first_steps`

#![expect(clippy::print_stdout, reason = "an example talks")]

use tidalite::{Database, Timestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tidalite-first-steps-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let db = Database::open(dir.join("plant.tdl"))?;

    let mut tx = db.begin_write()?; // one writer at a time; drop = roll back
    let mut wind = tx.series(r#"wind.speed{farm="hb",turbine="R80711"}"#)?;
    wind.insert("2020-01-01", 1.0)?;
    wind.insert("2020-01-02", 2.0)?;
    wind.insert("2020-01-04", 4.0)?;
    wind.insert("2020-01-03", 3.0)?; // anywhere between
    tx.table("config")?.put(b"hub_height", b"80")?; // the same transaction
    tx.commit()?; // durable when it returns

    let snap = db.begin_read()?; // never blocks, never changes
    let wind = snap
        .series(r#"wind.speed{farm="hb",turbine="R80711"}"#)?
        .ok_or("no such series")?;
    let unit = wind.info().schema.unit;

    let mut at = wind.cursor();
    let mut row = at.first()?;
    while let Some(current) = row {
        println!(
            "{}  flags {}  value {}",
            unit.text(current.time),
            current.i64(0),
            current.f64(1)
        );
        row = at.next()?;
    }

    let noon = Timestamp::parse("2020-01-02T12:00:00Z")?;
    if let Some(found) = at.search(noon)? {
        println!(
            "at or before {noon}: {} at {}",
            found.f64(1),
            unit.text(found.time)
        );
    }

    let from = Timestamp::parse("2020-01-02")?;
    let aggregate = wind.from(from)?.aggregate(1)?;
    println!(
        "from January 2nd: {} points, mean {:?}",
        aggregate.count(),
        aggregate.mean()
    );

    drop(snap);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
