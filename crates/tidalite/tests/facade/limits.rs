//! Every limit of docs/limits.md that the library exposes is tested at the limit and one beyond. (Values of 4 GiB and
//! 2^48 series are too much for a test, so only one beyond is tried.)

use crate::common::{Folder, Pairs, assert_clean, content_of, in_memory, pairs_of};
use tidalite::limits::{COLUMN_NAME_BYTES_MAX, SERIES_NAME_BYTES_MAX, TABLE_NAME_BYTES_MAX};
use tidalite::{Column, ColumnType, Database, Error, ErrorKind, Options, Schema, Steps, Unit};
use tidalite_base::limits::{CHECKSUM_SPAN_MAX, COLUMNS_MAX, PAGE_SIZE_MAX, PAGE_SIZE_MIN};
use tidalite_delta::LAYOUTS_MAX;
use tidalite_kv::{KEY_BYTES_MAX, VALUE_BYTES_MAX, key_bytes_max};

fn sized(page_size: usize) -> Database {
    in_memory(&Options::new().page_size(page_size))
}

/// Returns the text of a limit error, the requested number and the limit.
fn limit(error: Error) -> (String, u64, u64) {
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Limit, "{text}");
    let (found, limit) = error.limit().unwrap();
    let (what, rest) = text.split_once(": ").unwrap();
    assert!(rest.contains(&limit.to_string()), "{text}");
    (what.to_owned(), found, limit)
}

fn page_sizes() -> impl Iterator<Item = usize> {
    (9..=18).map(|bits| 1 << bits)
}

#[test]
fn page_sizes_from_512_bytes_to_256_kib() {
    assert_eq!(page_sizes().next(), Some(PAGE_SIZE_MIN));
    assert_eq!(page_sizes().last(), Some(PAGE_SIZE_MAX));
    let folder = Folder::new("page-sizes");
    for page_size in page_sizes() {
        let path = folder.file(&format!("{page_size}.tdl"));
        let db = Options::new().page_size(page_size).open(&path).unwrap();
        for commit in 0..3 {
            let mut tx = db.begin_write().unwrap();
            let mut series = tx.series("a").unwrap();
            for i in 0..2_500 {
                series
                    .insert_point(Steps(commit * 1_000 + i), 0, (i * commit) as f64)
                    .unwrap();
            }
            let mut table = tx.table("t").unwrap();
            for i in 0..300u32 {
                table
                    .put(&(i * 7).to_be_bytes(), &vec![i as u8; (i * 11) as usize])
                    .unwrap();
            }
            tx.commit().unwrap();
        }
        let before = content_of(&db.begin_read().unwrap()).unwrap();
        drop(db);
        // For a file that exists, its own page size counts, whatever the options say.
        let db = Options::new().page_size(8192).open(&path).unwrap();
        assert_eq!(db.stat().unwrap().page_size, page_size);
        assert_eq!(content_of(&db.begin_read().unwrap()).unwrap(), before);
        assert_clean(&db);
    }
    for bad in [
        0,
        1,
        256,
        511,
        513,
        1_000,
        4_095,
        4_097,
        PAGE_SIZE_MAX + 1,
        2 * PAGE_SIZE_MAX,
        usize::MAX,
    ] {
        let path = folder.file("bad.tdl");
        let error = Options::new().page_size(bad).open(&path).err().unwrap();
        let (what, found, _) = limit(error);
        assert_eq!((what.contains("page size"), found), (true, bad as u64));
        assert!(!path.exists());
    }
}

#[test]
fn keys_around_a_third_of_a_page() {
    for page_size in page_sizes() {
        let most = key_bytes_max(page_size);
        assert_eq!(most, page_size.div_ceil(3));
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let mut expected = Pairs::new();
        for i in 0..60u8 {
            let mut key = vec![i ^ 0x55; most];
            key[most - 1] = i;
            let value = vec![i; usize::from(i) * 40];
            table.put(&key, &value).unwrap();
            expected.insert(key, value);
        }
        table.put(b"", b"the empty key").unwrap();
        expected.insert(Vec::new(), b"the empty key".to_vec());
        let beyond = vec![1; most + 1];
        assert!(table.put(&beyond, b"spilled").unwrap());
        assert_eq!(table.get(&beyond).unwrap(), Some(b"spilled".to_vec()));
        expected.insert(beyond, b"spilled".to_vec());
        assert_eq!(pairs_of(&table.view().unwrap()).unwrap(), expected);
        let removed: Vec<_> = expected.keys().step_by(2).cloned().collect();
        for key in removed {
            assert!(table.remove(&key).unwrap());
            expected.remove(&key);
        }
        tx.commit().unwrap();
        assert_clean(&db);
        let snap = db.begin_read().unwrap();
        assert_eq!(
            pairs_of(&snap.table("t").unwrap().unwrap()).unwrap(),
            expected
        );
    }
}

#[test]
fn keys_up_to_16_mib() {
    let db = sized(4096);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    let mut key = vec![3; KEY_BYTES_MAX];
    table.put(&key, b"longest").unwrap();
    key.push(0);
    let (_, found, bound) = limit(table.put(&key, b"").unwrap_err());
    assert_eq!(
        (found, bound),
        (KEY_BYTES_MAX as u64 + 1, KEY_BYTES_MAX as u64)
    );
    assert_eq!(table.get(&key).unwrap(), None);
    assert!(!table.remove(&key).unwrap());
    assert_eq!(table.get(&key[1..]).unwrap(), None);
    let mut pairs = tx.set_table("m").unwrap();
    let (_, found, _) = limit(pairs.put(b"k", &key).unwrap_err());
    assert_eq!(found, KEY_BYTES_MAX as u64 + 1);
    assert!(pairs.put(b"k", &key[1..]).unwrap());
    tx.commit().unwrap();
    assert_clean(&db);
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    key.pop();
    assert_eq!(table.get(&key).unwrap(), Some(b"longest".to_vec()));
}

/// The pairs before an invalid one are stored, and the transaction can continue.
#[test]
fn bulk_pairs_end_at_the_first_that_cannot_be() {
    let db = sized(4096);
    for commit in 0..2u8 {
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        let good = (0..500u16).map(|i| (vec![commit, (i >> 8) as u8, i as u8], vec![commit; 40]));
        let long = vec![9; KEY_BYTES_MAX + 1];
        let pairs = good.chain([(long, Vec::new()), (vec![10], Vec::new())]);
        let (_, found, _) = limit(table.extend(pairs).unwrap_err());
        assert_eq!(found, KEY_BYTES_MAX as u64 + 1);
        assert_eq!(table.view().unwrap().count(), 500 * (u64::from(commit) + 1));
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let stored = pairs_of(&snap.table("t").unwrap().unwrap()).unwrap();
        assert_eq!(stored.len(), 500 * (usize::from(commit) + 1));
        assert_clean(&db);
    }
}

#[test]
fn values_of_every_size_around_every_border() {
    for page_size in [512usize, 4096, 65_536] {
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        let mut table = tx.table("t").unwrap();
        // A value is stored in the page if its entry, including its own header, takes at most half of the page's
        // capacity.
        let inline = (page_size - 48) / 2;
        let chunk = CHECKSUM_SPAN_MAX - 48;
        let mut sizes: Vec<usize> = (inline - 40..=inline + 4).collect();
        for border in [
            page_size - 48,
            page_size,
            2 * page_size - 48,
            chunk,
            2 * chunk,
            3 * chunk,
        ] {
            sizes.extend(border - 2..=border + 2);
        }
        sizes.extend([0, 1, 1 << 20]);
        let value = |size: usize| -> Vec<u8> { (0..size).map(|i| (i * 7 + size) as u8).collect() };
        for &size in &sizes {
            table
                .put(&(size as u32).to_be_bytes(), &value(size))
                .unwrap();
        }
        // Overwriting frees the extent of the old value.
        for pair in sizes.chunks(2) {
            table
                .put(&(pair[0] as u32).to_be_bytes(), &value(pair[0] ^ 1))
                .unwrap();
        }
        tx.commit().unwrap();
        assert_clean(&db);
        let snap = db.begin_read().unwrap();
        let table = snap.table("t").unwrap().unwrap();
        for (i, &size) in sizes.iter().enumerate() {
            let last_write = sizes.iter().rposition(|&s| s == size).unwrap();
            if i == last_write {
                let found = table.get(&(size as u32).to_be_bytes()).unwrap().unwrap();
                let overwritten = sizes.chunks(2).any(|pair| pair[0] == size);
                let expected = if overwritten { size ^ 1 } else { size };
                assert_eq!(
                    found,
                    value(expected),
                    "{size} bytes in pages of {page_size}"
                );
            }
        }
    }
    // The memory of the value is zeroed lazily and never touched, so the test needs no real memory for it.
    let beyond = vec![0u8; VALUE_BYTES_MAX as usize + 1];
    let db = sized(4096);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    let (_, found, bound) = limit(table.put(b"k", &beyond).unwrap_err());
    assert_eq!((found, bound), (VALUE_BYTES_MAX + 1, VALUE_BYTES_MAX));
    table.put(b"k", b"v").unwrap();
    tx.commit().unwrap();
    assert_clean(&db);
}

/// A series name with a tag whose canonical form has this number of bytes.
fn series_name(bytes: usize, number: usize) -> String {
    let head = format!("m{number}{{k=\"");
    format!("{head}{}\"}}", "v".repeat(bytes - head.len() - 2))
}

#[test]
fn names_of_series_up_to_their_bound_and_that_of_keys() {
    for page_size in page_sizes() {
        // A name is a key in the catalog, and in pages below 4 KiB the maximum key is shorter than the maximum name.
        let most = SERIES_NAME_BYTES_MAX.min(key_bytes_max(page_size));
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        for number in 0..9 {
            let name = series_name(most, number);
            tx.series(&name)
                .unwrap()
                .insert_point(Steps(1), 0, number as f64)
                .unwrap();
        }
        let beyond = tx.series(&series_name(most + 1, 0)).err().unwrap();
        assert!(
            beyond.kind() == ErrorKind::InvalidName,
            "{page_size}: {beyond:?}"
        );
        assert!(beyond.to_string().contains(&most.to_string()), "{beyond}");
        tx.series("short")
            .unwrap()
            .insert_point(Steps(1), 0, 2.0)
            .unwrap();
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        assert_eq!(snap.list("").unwrap().len(), 10);
        let series = snap.series(&series_name(most, 8)).unwrap().unwrap();
        assert_eq!(series.latest().unwrap().unwrap().f64(1), 8.0);
        if most < SERIES_NAME_BYTES_MAX {
            assert!(snap.series(&series_name(most + 1, 0)).unwrap().is_none());
        }
        assert_clean(&db);
    }
}

#[test]
fn names_of_tables_up_to_their_bound_and_that_of_keys() {
    for page_size in page_sizes() {
        let most = TABLE_NAME_BYTES_MAX.min(key_bytes_max(page_size));
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        tx.table(&"ü".repeat(most / 2))
            .unwrap()
            .put(b"k", b"v")
            .unwrap();
        tx.table(&"t".repeat(most))
            .unwrap()
            .put(b"k", b"w")
            .unwrap();
        let beyond = tx.table(&"t".repeat(most + 1)).err().unwrap();
        assert!(
            beyond.kind() == ErrorKind::InvalidName,
            "{page_size}: {beyond:?}"
        );
        assert!(beyond.to_string().contains(&most.to_string()), "{beyond}");
        tx.commit().unwrap();
        let snap = db.begin_read().unwrap();
        let table = snap.table(&"t".repeat(most)).unwrap().unwrap();
        assert_eq!(table.get(b"k").unwrap().unwrap(), b"w");
        assert!(snap.table(&"t".repeat(most + 1)).unwrap().is_none());
        assert_eq!(snap.tables().unwrap().len(), 2);
        assert_clean(&db);
    }
}

fn schema_of(columns: usize, name_bytes: usize) -> Schema {
    let column = |i| Column {
        name: format!("{i:0width$}", width = name_bytes),
        ty: [ColumnType::F64, ColumnType::I64, ColumnType::U64][i % 3],
        nullable: i % 2 == 1,
    };
    Schema {
        unit: Unit::Millis,
        columns: (0..columns).map(column).collect(),
    }
}

#[test]
fn columns_and_their_names() {
    for page_size in [512, 4096] {
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        for (columns, bytes) in [(COLUMNS_MAX + 1, 3), (0, 3), (1, COLUMN_NAME_BYTES_MAX + 1)] {
            let error = tx
                .series_with("a", &schema_of(columns, bytes))
                .err()
                .unwrap();
            assert!(error.kind() == ErrorKind::Schema, "{error:?}");
        }
        let widest = schema_of(COLUMNS_MAX, COLUMN_NAME_BYTES_MAX);
        let mut series = tx.series_with("a", &widest).unwrap();
        let row = |t: i64| {
            (0..COLUMNS_MAX as i64)
                .map(|c| (c * 1_000 + t % 77) as u64)
                .collect::<Vec<_>>()
        };
        for t in 0..3_000 {
            series.insert_row(Steps(t), &row(t)).unwrap();
        }
        tx.commit().unwrap();
        // Rows are also committed one by one, because the tail page may be smaller than a row.
        for t in 3_000..3_020 {
            let mut tx = db.begin_write().unwrap();
            tx.series("a")
                .unwrap()
                .insert_row(Steps(t), &row(t))
                .unwrap();
            tx.commit().unwrap();
        }
        let snap = db.begin_read().unwrap();
        let series = snap.series("a").unwrap().unwrap();
        assert_eq!(series.info().schema, widest);
        let mut t = 0;
        let compare = |time, words: &[u64]| {
            assert_eq!((time, words), (t, &row(t)[..]));
            t += 1;
        };
        series.query(..).for_each(compare).unwrap();
        assert_eq!(t, 3_020);
        assert_clean(&db);
    }
}

#[test]
fn layouts_of_a_file() {
    let db = sized(4096);
    let schema = |number: usize| {
        let ty = |i: usize| {
            if number >> i & 1 == 0 {
                ColumnType::F64
            } else {
                ColumnType::I64
            }
        };
        let columns = (0..9)
            .map(|i| Column {
                name: format!("c{i}"),
                ty: ty(i),
                nullable: false,
            })
            .collect();
        Schema {
            unit: Unit::Nanos,
            columns,
        }
    };
    let write = |number: usize| {
        let mut tx = db.begin_write()?;
        let mut series = tx.series_with(&format!("s{number}"), &schema(number))?;
        series.insert_row(Steps(1), &[number as u64; 9])?;
        tx.commit()
    };
    for number in 0..LAYOUTS_MAX {
        write(number).unwrap();
    }
    let (what, found, bound) = limit(write(LAYOUTS_MAX).unwrap_err());
    assert!(what.contains("layouts"), "{what}");
    assert_eq!((found, bound), (LAYOUTS_MAX as u64 + 1, LAYOUTS_MAX as u64));
    // Series with existing layouts still work.
    let mut tx = db.begin_write().unwrap();
    tx.series_with("another", &schema(7))
        .unwrap()
        .insert_row(Steps(1), &[1; 9])
        .unwrap();
    tx.commit().unwrap();
    let stat = db.stat().unwrap();
    assert_eq!(
        (stat.series, stat.rows()),
        (LAYOUTS_MAX as u64 + 1, LAYOUTS_MAX as u64 + 1)
    );
    assert_clean(&db);
}

#[test]
fn hundreds_of_tables() {
    const TABLES: usize = 400;
    let name = |i: usize| format!("table {i}");
    for page_size in [512, 4096] {
        let db = sized(page_size);
        let mut tx = db.begin_write().unwrap();
        for i in 0..TABLES {
            tx.table(&name(i))
                .unwrap()
                .put(b"first", &i.to_be_bytes())
                .unwrap();
        }
        tx.commit().unwrap();
        // The meta record has room for eight changed roots. The test changes one fewer, as many, one more, and many
        // more.
        let mut changed = vec![1usize; TABLES];
        for (round, many) in [7, 8, 9, 1, 8, 30, 3, TABLES, 2].into_iter().enumerate() {
            let mut tx = db.begin_write().unwrap();
            for i in 0..many {
                let i = (i * 37 + round * 11) % TABLES;
                let mut table = tx.table(&name(i)).unwrap();
                if table.put(&[b'r', round as u8], b"").unwrap() {
                    changed[i] += 1;
                }
            }
            tx.commit().unwrap();
            assert_clean(&db);
        }
        let snap = db.begin_read().unwrap();
        assert_eq!(snap.tables().unwrap().len(), TABLES);
        for (i, &changed) in changed.iter().enumerate() {
            let table = snap.table(&name(i)).unwrap().unwrap();
            assert_eq!(table.count(), changed as u64, "{}", name(i));
            assert_eq!(table.get(b"first").unwrap().unwrap(), i.to_be_bytes());
        }
    }
}

#[test]
fn twenty_thousand_series() {
    const SERIES: usize = 20_000;
    let folder = Folder::new("many-series");
    let path = folder.file("plant.tdl");
    let name = |i: usize| format!("m{{site=\"{}\",sensor=\"{i}\"}}", i % 50);
    let db = Database::open(&path).unwrap();
    for half in 0..2 {
        let mut tx = db.begin_write().unwrap();
        for i in (half..SERIES).step_by(2) {
            tx.series(&name(i))
                .unwrap()
                .insert_point(Steps(i as i64), 0, half as f64)
                .unwrap();
        }
        tx.commit().unwrap();
    }
    let mut tx = db.begin_write().unwrap();
    for i in (0..SERIES).step_by(1_000) {
        tx.series(&name(i))
            .unwrap()
            .insert_point(Steps(-1), 0, 9.0)
            .unwrap();
    }
    tx.commit().unwrap();
    drop(db);
    let db = Database::open(&path).unwrap();
    let stat = db.stat().unwrap();
    assert_eq!(
        (stat.series, stat.rows()),
        (SERIES as u64, SERIES as u64 + 20)
    );
    let snap = db.begin_read().unwrap();
    assert_eq!(snap.list("m{site=\"7\"}").unwrap().len(), SERIES / 50);
    for i in (0..SERIES).step_by(499) {
        let series = snap.series(&name(i)).unwrap().unwrap();
        assert_eq!(series.latest().unwrap().unwrap().time, i as i64);
        let by_id = snap.series_by_id(series.id()).unwrap().unwrap();
        assert_eq!(by_id.info().label(), series.info().label());
    }
    assert_clean(&db);
}
