//! Files with tables, with a redo log, and with a catalog.

use super::answers::contents;
use super::{Made, make, make_two, small, small_tuning};
use std::time::Duration;
use tidalite::retention::{Downsample, KeepFrom, Retention};
use tidalite::{Column, ColumnType, Figure, Grid, MergePolicy, Options, Schema, Unit, WriteTxn};

/// Pseudo-random bytes, which are the same for each call with the same arguments.
pub(crate) fn noise(seed: u64, count: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..count).map(|_| next()).collect()
}

pub(crate) fn empty() -> Made {
    make(&small(4096), |_| ())
}

pub(crate) fn tables() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        tx.set_user_data(b"for the user").unwrap();
        let mut many = tx.table("many").unwrap();
        for i in 0..400_u32 {
            let key = format!("key of a row {:03}", i * 7 % 400);
            many.put(key.as_bytes(), &noise(u64::from(i), i as usize % 23))
                .unwrap();
        }
        many.take_sequence(41).unwrap();
        tx.table("small").unwrap().put(b"", b"below all").unwrap();
        tx.commit().unwrap();
        db.pin("before").unwrap();

        let mut tx = db.begin_write().unwrap();
        let mut long = tx.table("long").unwrap();
        for i in 0..12_u8 {
            let mut key = vec![b'k'; 150 + 60 * usize::from(i)];
            key.push(i);
            long.put(&key, &noise(u64::from(i), 100 * usize::from(i)))
                .unwrap();
        }
        long.put(b"several chunks", &noise(9, 70_000)).unwrap();
        long.put(b"whole chunks", &noise(8, 65_488)).unwrap();
        let mut typed = tx.typed_table::<u64, String>("typed").unwrap();
        typed.put(&5, &"five".to_owned()).unwrap();
        typed.put(&700, &"seven hundred".to_owned()).unwrap();
        let mut many = tx.table("many").unwrap();
        many.remove_range(&b"key of a row 100"[..]..&b"key of a row 160"[..])
            .unwrap();
        tx.commit().unwrap();
    })
}

pub(crate) fn nested() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("of tables").unwrap();
        table.put(b"plain", b"value").unwrap();
        let mut small = table.nested(b"small");
        small.put(b"a", b"1").unwrap();
        small.put(b"bc", b"23").unwrap();
        table.nested(b"empty").make().unwrap();
        for i in 0..9_u8 {
            let mut keys = table.nested(b"keys of one length");
            keys.put(&[i, i], b"").unwrap();
        }
        let mut counted = table.nested(b"with a sequence");
        counted.take_sequence(7).unwrap();
        counted.put(b"x", b"y").unwrap();
        for i in 0..200_u32 {
            let mut large = table.nested(b"large");
            large
                .put(&i.to_be_bytes(), &noise(u64::from(i), 9))
                .unwrap();
        }
        table.nested(b"large").take_sequence(3).unwrap();
        let path: Vec<[u8; 1]> = (0..63).map(|level| [b'0' + level]).collect();
        table.nested_at(&path[1..]).put(b"deep", b"down").unwrap();
        table
            .nested_at(&[&b"large"[..], b"\xff\xff\xff\xff\xff", b"inside"])
            .put(&noise(1, 400), &noise(2, 1000))
            .unwrap();
        tx.commit().unwrap();
    })
}

pub(crate) fn sets() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        let mut sets = tx.set_table("sets").unwrap();
        sets.put(b"one", b"value").unwrap();
        sets.put(b"empty", b"").unwrap();
        for value in ["a", "bb", "ccc", ""] {
            sets.put(b"some", value.as_bytes()).unwrap();
        }
        for i in 0..300_u16 {
            sets.put(b"many", &i.to_be_bytes()).unwrap();
            let key = format!("key {:03}", i % 100);
            sets.put(key.as_bytes(), &(i / 100).to_le_bytes()).unwrap();
        }
        sets.put(b"long", &noise(1, 700)).unwrap();
        sets.put(b"two long", &noise(2, 700)).unwrap();
        sets.put(b"two long", &noise(3, 700)).unwrap();
        sets.take_sequence(2).unwrap();
        let mut typed = tx.typed_set_table::<String, u32>("typed").unwrap();
        typed.put(&"a".to_owned(), &1).unwrap();
        typed.put(&"a".to_owned(), &2).unwrap();
        tx.commit().unwrap();
    })
}

pub(crate) fn two_files() -> Made {
    make_two(small(512), 1000, |db| {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("values").unwrap();
        for i in 0..8_u8 {
            let bytes = noise(u64::from(i), 300 * usize::from(i));
            table.put(&[i], &bytes).unwrap();
        }
        table.put(b"long", &noise(77, 66_000)).unwrap();
        tx.commit().unwrap();
        let mut tx = db.begin_write().unwrap();
        tx.table("values").unwrap().remove(&[5]).unwrap();
        tx.commit().unwrap();
    })
}

/// A file with small commits in the redo log, which is not emptied.
pub(crate) fn log() -> Made {
    let options = small(512).tuning(small_tuning(512).log_bytes(64 << 10));
    let mut earlier = Vec::new();
    let made = make(&options, |db| {
        for i in 0..20_u8 {
            let mut tx = db.begin_write().unwrap();
            fill_a_row(&mut tx, i);
            tx.commit().unwrap();
            earlier.push(contents(db));
        }
    });
    Made { earlier, ..made }
}

fn fill_a_row(tx: &mut WriteTxn, i: u8) {
    let mut table = tx.table("log").unwrap();
    table.put(&[i], &noise(u64::from(i), 30)).unwrap();
    table.put(b"last", &[i]).unwrap();
    tx.set_user_data(&[i]).unwrap();
}

pub(crate) fn catalog() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        let wind = r#"wind.speed{turbine="R80711",site="a, \"b\""}"#;
        let mut series = tx.series(wind).unwrap();
        series.annotate("unit", "m/s").unwrap();
        series.annotate("made by", "\u{fc}ber alles").unwrap();
        let units = [
            Unit::Nanos,
            Unit::Micros,
            Unit::Millis,
            Unit::Seconds,
            Unit::Ticks,
        ];
        for (unit, merge) in units.into_iter().zip(MergePolicy::ALL) {
            let name = format!("merge.{}", merge.name());
            let schema = Schema::new(unit, [("price", ColumnType::Decimal(2))])
                .with(Column::nullable("note", ColumnType::String));
            tx.open_series(&name)
                .schema(&schema)
                .merge(merge)
                .open()
                .unwrap();
        }
        let schema = Schema::new(Unit::Seconds, [("value", ColumnType::F32)]);
        let guid = *b"sixteen bytes ok";
        tx.series_of_guid(guid, &schema).unwrap();
        tx.series("removed").unwrap();
        tx.remove_series("removed").unwrap();
        tx.set_retention(
            "old",
            &Retention {
                pattern: "wind*{site=[\"a\",\"b\"]}".to_owned(),
                keep: Some(Duration::from_secs(86_400)),
                keep_from: KeepFrom::Newest,
                bytes: Some(1 << 20),
                cold: Some(Duration::from_nanos(5)),
                downsample: Some(Downsample {
                    grid: Grid::hours(1),
                    figures: vec![Figure::Count, Figure::Percentile(95.0)],
                    suffix: "1h".to_owned(),
                }),
            },
        )
        .unwrap();
        for i in 0..10 {
            tx.table(&format!("table {i}")).unwrap();
        }
        tx.commit().unwrap();
    })
}

/// A file with pages so large that offsets inside a page take four bytes.
pub(crate) fn large_pages() -> Made {
    tidalite_testkit::watch();
    make(&Options::new().page_size(256 << 10), |db| {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("rows").unwrap();
        for i in 0..20_000_u32 {
            table
                .put(&i.to_be_bytes(), &noise(u64::from(i), 20))
                .unwrap();
        }
        table.put(b"large", &noise(1, 300_000)).unwrap();
        tx.commit().unwrap();
    })
}
