//! Rows are read as records and as typed values, by every call that reads rows.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;
use tidalite::query::Join;
use tidalite::storage::MemoryStorage;
use tidalite::{
    Column, ColumnType, Database, Decimal, Direction, ErrorKind, Grid, MergePolicy, Options,
    Record, Result, Row, SearchResult, Series, Steps, Timestamp, Unit,
};
use tidalite_testkit::rng::Rng;

#[derive(Record, Clone, Debug, PartialEq)]
#[record(unit = "ms")]
struct Sale {
    time: Timestamp,
    number: i64,
    #[record(scale = 2)]
    price: Decimal,
    shop: String,
    weight: Option<f32>,
    pieces: u16,
}

fn db() -> Database {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    Options::new()
        .page_size(1024)
        .open_storage(storage)
        .unwrap()
}

fn sale(rng: &mut Rng, number: i64, millis: i64) -> Sale {
    Sale {
        time: Timestamp::from_millis(millis).unwrap(),
        number,
        price: Decimal {
            units: rng.between(-999, 999),
            scale: 2,
        },
        shop: ["north", "south", "a shop with a name that is longer"][rng.index(3)].to_owned(),
        weight: (!rng.one_in(3)).then(|| rng.between(0, 100) as f32 / 8.0),
        pieces: rng.below(5) as u16,
    }
}

/// Inserts random sales, several of them at one time; some are in leaves and some in the delta.
fn sales(db: &Database, name: &str, rng: &mut Rng) -> Vec<Sale> {
    let mut all: Vec<Sale> = Vec::new();
    for rows in [rng.below(4000), rng.below(60), 3] {
        let mut tx = db.begin_write().unwrap();
        let merge = MergePolicy::KeepAll;
        let mut series = tx
            .open_series(name)
            .schema(&Sale::schema())
            .merge(merge)
            .open()
            .unwrap();
        for _ in 0..rows {
            let time = rng.between(-500, 2000);
            let own = sale(rng, all.len() as i64, time);
            series.insert_record(&own).unwrap();
            all.push(own);
        }
        tx.commit().unwrap();
    }
    all.sort_by_key(|sale| sale.time);
    all
}

fn taken<R>(mut step: impl FnMut() -> Result<Option<R>>) -> Vec<R> {
    std::iter::from_fn(|| step().unwrap()).collect()
}

#[test]
fn a_record_is_read_by_every_way_to_its_row() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let db = db();
        let all = sales(&db, "sales", &mut rng);
        let snap = db.begin_read().unwrap();
        let series = snap.series("sales").unwrap().unwrap();
        let mut cursor = series.cursor_of::<Sale>().unwrap();
        assert_eq!(taken(|| cursor.next()), all);
        let mut backward = taken(|| cursor.previous());
        backward.reverse();
        assert_eq!(backward, all);
        assert_eq!(cursor.first().unwrap().as_ref(), all.first());
        assert_eq!(cursor.last().unwrap().as_ref(), all.last());
        assert_eq!(
            cursor.time(),
            all.last().map(|sale| sale.time.0 / 1_000_000)
        );
        let row = series.latest().unwrap().unwrap();
        assert_eq!(Some(&series.record::<Sale>(&row).unwrap()), all.last());
        for _ in 0..30 {
            let t = Timestamp(rng.between(-600_000_000, 2_100_000_000));
            let behind = all.partition_point(|sale| sale.time <= t);
            let current = behind.checked_sub(1).map(|last| &all[last]);
            assert_eq!(cursor.search(t).unwrap().as_ref(), current);
            let kind = match (current, all.first()) {
                (Some(sale), _) if sale.time == t => SearchResult::Equal,
                (Some(_), _) => SearchResult::Less,
                (None, Some(_)) => SearchResult::Greater,
                (None, None) => SearchResult::Empty,
            };
            assert_eq!(cursor.seek(t).unwrap(), kind);
            assert_eq!(cursor.current().unwrap().as_ref(), current.or(all.first()));
            let n = rng.index(all.len() + 2);
            assert_eq!(cursor.nth(n as u64).unwrap().as_ref(), all.get(n));
            both_ends(&mut rng, &series, &all);
            matching(&mut rng, &series, &all);
        }
    }
}

/// Reads the records of an interval from both ends in turn.
fn both_ends(rng: &mut Rng, series: &Series<'_>, all: &[Sale]) {
    let from = rng.between(-600, 2100);
    let to = from + rng.between(-5, 400);
    let (first, end) = (
        all.partition_point(|sale| sale.time.0 / 1_000_000 < from),
        all.partition_point(|sale| sale.time.0 / 1_000_000 < to),
    );
    let expected = &all[first..end.max(first)];
    let range = series.query(Steps(from)..Steps(to));
    let records = range.records::<Sale>().unwrap();
    assert_eq!(records.size_hint().1, Some(expected.len()));
    assert_eq!(records.map(Result::unwrap).collect::<Vec<_>>(), expected);
    let mut records = range.records::<Sale>().unwrap();
    let (mut front, mut back) = (Vec::new(), Vec::new());
    loop {
        let forward = rng.one_in(2);
        let next = if forward {
            records.next()
        } else {
            records.next_back()
        };
        let Some(next) = next else { break };
        let side = if forward { &mut front } else { &mut back };
        side.push(next.unwrap());
    }
    assert!(records.next().is_none() && records.next_back().is_none());
    front.extend(back.into_iter().rev());
    assert_eq!(front, expected);
}

fn matching(rng: &mut Rng, series: &Series<'_>, all: &[Sale]) {
    let least = rng.between(-10, 10) as f64;
    let wanted = |sale: &&Sale| sale.price.units as f64 >= 100.0 * least;
    let mut expected: Vec<Sale> = all.iter().filter(wanted).cloned().collect();
    let dear = series.query(..).filter(1, least..);
    for direction in [Direction::Forward, Direction::Backward] {
        let mut found = Vec::new();
        let query = match direction {
            Direction::Forward => dear.clone(),
            Direction::Backward => dear.clone().reverse(),
        };
        let rows = query.for_each_record(|sale: Sale| found.push(sale));
        assert_eq!(rows.unwrap(), expected.len() as u64);
        assert_eq!(found, expected, "{direction:?}");
        let records = query.records::<Sale>().unwrap();
        assert_eq!(records.map(Result::unwrap).collect::<Vec<_>>(), expected);
        let records = query.records::<Sale>().unwrap().rev();
        let records: Vec<Sale> = records.map(Result::unwrap).collect();
        assert!(records.iter().eq(expected.iter().rev()), "{direction:?}");
        expected.reverse();
    }
}

#[test]
fn merged_and_joined_rows_are_records_too() {
    let mut rng = Rng::new(1);
    let db = db();
    let (a, b) = (sales(&db, "a", &mut rng), sales(&db, "b", &mut rng));
    let snap = db.begin_read().unwrap();
    let both = snap.select("").unwrap();
    let readers = both.readers_of::<Sale>().unwrap();
    let tagged = |i: usize, all: &[Sale]| -> Vec<(usize, Sale)> {
        all.iter().map(|sale| (i, sale.clone())).collect()
    };
    let mut expected = [tagged(0, &a), tagged(1, &b)].concat();
    expected.sort_by_key(|(_, sale)| sale.time);
    for backward in [false, true] {
        let rows = if backward {
            both.query(..).reverse().rows()
        } else {
            both.query(..).rows()
        };
        let mut rows = rows.unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let own = readers[row.series].read_words(row.time, row.words).unwrap();
            let series = &both.series().unwrap()[row.series];
            assert_eq!(series.get::<i64>(&row, "number").unwrap(), own.number);
            found.push((row.series, own));
        }
        assert_eq!(found, expected);
        expected.reverse();
    }
    // Among several rows of one time, the last to arrive is found, in both directions, with and without a filter.
    let last = |all: &[Sale], t: Timestamp| all.iter().rfind(|sale| sale.time == t).cloned();
    let mut times: Vec<Timestamp> = a.iter().map(|sale| sale.time).collect();
    times.dedup();
    let cheap = |sale: &Sale| sale.price.units <= 0;
    let pairs = times.iter().filter_map(|&t| last(&a, t).zip(last(&b, t)));
    let mut pairs: Vec<(Sale, Sale)> = pairs.filter(|(_, b)| cheap(b)).collect();
    assert!(pairs.len() > 50);
    let cheap = both.query(..).filter_series(1, 1, ..=0.0);
    for backward in [false, true] {
        let rows = match backward {
            true => cheap.clone().reverse().join(Join::Inner),
            false => cheap.clone().join(Join::Inner),
        };
        let mut rows = rows.unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            let own = |i: usize| {
                let words = row.words(i).unwrap();
                readers[i]
                    .read_words(row.time_of(i).unwrap(), words)
                    .unwrap()
            };
            found.push((own(0), own(1)));
        }
        assert_eq!(found, pairs);
        pairs.reverse();
    }
}

fn schema_problem<T>(result: Result<T>, parts: &[&str]) {
    match result {
        Err(error) if error.kind() == ErrorKind::Schema => {
            for part in parts {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("{parts:?} was taken"),
    }
}

#[derive(Record)]
struct Other {
    time: Timestamp,
    number: f64,
}

#[derive(Record)]
struct OnlyNumber {
    time: Timestamp,
    number: i64,
}

#[test]
fn a_value_has_the_type_of_its_column() {
    let db = db();
    let mut rng = Rng::new(7);
    let mut own = sale(&mut rng, 41, 9);
    own.weight = None;
    own.shop = "north".to_owned();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series_of::<Sale>("sales").unwrap();
    series.insert_record(&own).unwrap();
    let series = series.view().unwrap();
    let row = series.latest().unwrap().unwrap();

    assert_eq!(series.column("shop").unwrap(), 2);
    assert_eq!(series.get::<i64>(&row, "number").unwrap(), 41);
    assert_eq!(series.get::<u8>(&row, "pieces").unwrap(), own.pieces as u8);
    assert_eq!(series.get::<Decimal>(&row, "price").unwrap(), own.price);
    assert_eq!(series.get::<String>(&row, 2).unwrap(), "north");
    assert_eq!(
        series.get::<Option<String>>(&row, 2).unwrap().as_deref(),
        Some("north")
    );
    assert_eq!(series.get::<Option<f32>>(&row, "weight").unwrap(), None);
    // 32-bit floats are stored as the 64-bit floats of the same values, so they can be read as `f64`, too.
    assert_eq!(
        series
            .get::<Option<f64>>(&row, &"weight".to_owned())
            .unwrap(),
        None
    );
    schema_problem(series.get::<f64>(&row, "number"), &["number", "i64", "f64"]);
    schema_problem(
        series.get::<i64>(&row, "price"),
        &["price", "decimal(2)", "i64"],
    );
    schema_problem(series.get::<u64>(&row, "shop"), &["shop", "string"]);
    schema_problem(series.get::<f32>(&row, "weight"), &["weight", "null"]);
    schema_problem(series.get::<i64>(&row, "colour"), &["colour"]);
    schema_problem(series.get::<i64>(&row, 5), &["5 columns", "number 5"]);
    schema_problem(series.get::<i8>(&row.words[..0], 0), &["0 words"]);
    schema_problem(series.column(9), &["number 9"]);

    schema_problem(series.record::<Other>(&row), &["number"]);
    schema_problem(series.cursor_of::<Other>().map(drop), &["number"]);
    schema_problem(series.query(..).records::<Other>().map(drop), &["number"]);
    let reader = series.reader_of::<Sale>().unwrap();
    let cut = Row {
        time: 1,
        words: vec![1],
    };
    schema_problem(reader.read(&cut), &["1 words"]);
    // A row may lack the columns that follow the last one of the record.
    assert_eq!(series.record::<OnlyNumber>(&cut).unwrap().number, 1);

    let (mut floats, mut integers) = (0, 0);
    series
        .query(..)
        .columns([0, 1, 3])
        .for_each_vector(|vector| {
            assert_eq!(vector.integers("number").unwrap(), [41]);
            assert_eq!(vector.integers(1).unwrap(), [own.price.units]);
            floats += vector.floats("weight").unwrap().len();
            integers += vector.integers(0).unwrap().len();
            schema_problem(vector.floats("number"), &["number", "i64", "floats"]);
            schema_problem(vector.integers("weight"), &["weight", "f32", "integers"]);
            schema_problem(vector.integers("pieces"), &["pieces", "u64"]);
            schema_problem(vector.integers("colour"), &["colour"]);
        })
        .unwrap();
    assert_eq!((floats, integers), (1, 1));
    series
        .query(..)
        .columns([0])
        .for_each_vector(|vector| {
            schema_problem(vector.floats("weight"), &["weight", "read"]);
        })
        .unwrap();
}

#[test]
#[cfg(debug_assertions)]
fn bits_of_the_wrong_type_are_caught_by_assertions() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    series.insert(Steps(1), 0.5).unwrap();
    let view = series.view().unwrap();
    for asked in [false, true] {
        let read = || {
            view.query(..).for_each_vector(|vector| match asked {
                false => drop(vector.f64(0).to_vec()),
                true => drop(vector.i64(1).to_vec()),
            })
        };
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(read));
        assert!(read.is_err());
    }
}

#[test]
fn columns_by_name_and_windows_on_the_clock() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let schema = tidalite::Schema::new(Unit::Ticks, [("n", ColumnType::I64)])
        .with(Column::new("text", ColumnType::String));
    let mut series = tx.series_with("a", &schema).unwrap();
    for minute in 0..240 {
        let time = Timestamp::from_secs(60 * minute).unwrap();
        let text = if minute % 60 == 0 { "hour" } else { "minute" };
        series
            .insert_values(time, &[minute.into(), text.into()])
            .unwrap();
    }
    let series = series.view().unwrap();
    let all = series.query(..);
    let hour = 3600 * 10_000_000;
    let grid = Grid::hours(1);
    let by_number = all
        .windows((Steps(hour), Steps(Unit::Ticks.steps_to_1970())), 0)
        .unwrap();
    assert_eq!(by_number.len(), 4);
    assert_eq!(all.windows(&grid, "n").unwrap(), by_number);
    assert_eq!(all.aggregate("n").unwrap(), all.aggregate(0).unwrap());
    let mean = tidalite::Figure::Mean;
    let means = all.clone().figures(mean).windows(&grid, "n").unwrap();
    assert_eq!(means[3].aggregate, Some(209.5));
    assert_eq!(
        all.clone().figures(mean).aggregate("n").unwrap(),
        Some(119.5)
    );
    let late = all.clone().filter(0, 100.0..);
    assert_eq!(late.windows(&grid, "n").unwrap().len(), 3);
    assert_eq!(late.aggregate("n").unwrap().count(), 140);
    let size = tidalite::query::CandleSize::Level(0);
    let candles = all.candles(size, "n").unwrap();
    assert_eq!(candles, all.candles(size, 0).unwrap());
    assert_eq!(all.dots("n").unwrap().count(), 240);
    assert_eq!(
        all.text_matches("text", |text| text == "hour")
            .unwrap()
            .count(),
        4
    );
    assert_eq!(all.frequent_items("text", 2).unwrap()[0].weight, 236.0);
    assert_eq!(all.heavy_hitters("text", "n", 2).unwrap()[1].weight, 360.0);
    schema_problem(all.aggregate("m"), &["no column m", "text"]);
    schema_problem(all.windows(Steps(hour), 2), &["2 columns", "number 2"]);
    schema_problem(all.windows(Grid::nanos(150), "n"), &["150 ns", "100 ns"]);
    schema_problem(late.windows(Steps(hour), "m"), &["no column m"]);
}

#[test]
fn a_search_of_a_series_without_rows_is_empty() {
    let db = db();
    let mut tx = db.begin_write().unwrap();
    let mut series = tx.series("a").unwrap();
    let view = series.view().unwrap();
    let mut cursor = view.cursor();
    assert_eq!(cursor.seek(Steps(0)).unwrap(), SearchResult::Empty);
    assert_eq!(cursor.current(), None);
}
