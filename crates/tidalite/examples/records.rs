//! Records by `#[derive(Record)]`, and a record that grows by a field while the series stays.
//!
//! `cargo run -p tidalite --example records`
#![expect(clippy::print_stdout, reason = "an example talks")]

use tidalite::{Database, Decimal, Record, Timestamp};

/// The record written by the first version of a program.
#[derive(Record)]
struct Sale {
    time: Timestamp,
    #[record(scale = 2)]
    price: Decimal,
    pieces: u32,
}

/// The next version: a field more, at the end. It is an `Option`, because older rows do not have it.
#[derive(Record)]
struct SaleWithWeight {
    time: Timestamp,
    #[record(scale = 2)]
    price: Decimal,
    pieces: u32,
    #[record(name = "weight.kg")]
    weight: Option<f32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("tidalite-records-{}.tdl", std::process::id()));
    let db = Database::open(&path)?;
    let at = Timestamp::parse("2014-06-01T09:00:00Z")?;

    let mut tx = db.begin_write()?;
    tx.series_of::<Sale>("shop.sales")?.insert_record(&Sale {
        time: at,
        price: Decimal {
            units: 1999,
            scale: 2,
        },
        pieces: 3,
    })?;
    tx.commit()?;

    // Existing data is not rewritten.
    let mut tx = db.begin_write()?;
    let mut sales = tx
        .open_series("shop.sales")
        .schema(&SaleWithWeight::schema())
        .add_columns()
        .open()?;
    sales.insert_record(&SaleWithWeight {
        time: Timestamp(at.0 + 1),
        price: Decimal { units: 5, scale: 1 },
        pieces: 1,
        weight: Some(0.25),
    })?;
    tx.commit()?;

    let snap = db.begin_read()?;
    let sales = snap.series("shop.sales")?.ok_or("no such series")?;
    sales.query(..).for_each_record(|sale: SaleWithWeight| {
        println!("{} {} {:?}", sale.time, sale.price, sale.weight);
    })?;
    // The old record reads the grown series too.
    let mut pieces = 0;
    sales
        .query(..)
        .for_each_record(|sale: Sale| pieces += sale.pieces)?;
    println!(
        "{pieces} pieces, {} in all",
        sales.query(..).aggregate("price")?.sum()
    );

    drop((snap, db));
    std::fs::remove_file(&path)?;
    std::fs::remove_file(path.with_extension("tdl-lock"))?;
    Ok(())
}
