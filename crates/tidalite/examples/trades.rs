//! A struct of one's own as the point type: the trade record of the LMDB time-series article, forty bytes.
//!
//! `cargo run --release -p tidalite --example trades`

#![expect(clippy::print_stdout, reason = "an example talks")]

use tidalite::{ColumnType, Database, Point, Schema, Unit};

struct Trade {
    at: i64,
    bid: u64,
    offer: u64,
    volume: f64,
    /// In 1/10,000 of the currency unit.
    price: i64,
}

impl Point for Trade {
    fn schema() -> Schema {
        Schema::new(
            Unit::Micros,
            [
                ("bid", ColumnType::U64),
                ("offer", ColumnType::U64),
                ("volume", ColumnType::F64),
                ("price", ColumnType::I64),
            ],
        )
    }

    fn time(&self) -> i64 {
        self.at
    }

    fn write_words(&self, words: &mut [u64]) {
        words[0] = self.bid;
        words[1] = self.offer;
        words[2] = self.volume.to_bits();
        words[3] = self.price as u64;
    }

    fn from_words(time: i64, words: &[u64]) -> Self {
        Self {
            at: time,
            bid: words[0],
            offer: words[1],
            volume: f64::from_bits(words[2]),
            price: words[3] as i64,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tidalite-trades-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let db = Database::open(dir.join("market.tdl"))?;

    let mut tx = db.begin_write()?;
    let mut series = tx.series_of::<Trade>(r#"trades{venue="XNAS",symbol="TIDE"}"#)?;
    for i in 0..100_000_i64 {
        let number = i as u64;
        let trade = Trade {
            at: 1_601_510_400_000_000 + i * 850,
            bid: number * 3,
            offer: number * 3 + 1,
            volume: (i % 900 + 1) as f64,
            price: 1_250_000 + (i % 250) * 100,
        };
        series.insert_record(&trade)?;
    }
    tx.commit()?;

    let snap = db.begin_read()?;
    let series = snap
        .series(r#"trades{symbol="TIDE",venue="XNAS"}"#)?
        .ok_or("no such series")?;
    let mut turnover = 0.0;
    series.query(..).for_each_record(|trade: Trade| {
        turnover += trade.volume * trade.price as f64 / 10_000.0;
    })?;
    println!("{} trades, turnover {turnover:.2}", series.count()?);
    println!(
        "highest price: {:?}",
        series.query(..).aggregate("price")?.max()
    );

    drop(snap);
    std::fs::remove_dir_all(dir)?;
    Ok(())
}
