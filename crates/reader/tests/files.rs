//! Reads stored files, and files that the engine has just written, with the second reader.
//!
//! If `TIDALITE_REWRITE` is set, the test writes the stored files and their exports anew.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod make;

use make::{FILES, Made};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tidalite_reader::bucket::Bucket;
use tidalite_reader::catalog::{self, Column, Layout, Roots, plain_rows};
use tidalite_reader::containers::Containers;
use tidalite_reader::delta::Delta;
use tidalite_reader::queue::Queue;
use tidalite_reader::relation::Relation;
use tidalite_reader::series::SeriesReader;
use tidalite_reader::space::Space;
use tidalite_reader::table::{Rows, Value};
use tidalite_reader::topics::Topics;
use tidalite_reader::{Contents, Error, Image};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn read(first: Vec<u8>, second: Option<Vec<u8>>) -> Result<Contents, Error> {
    let mut image = Image::open(first)?;
    if let Some(second) = second {
        image.attach(second)?;
    }
    Contents::read(&image)
}

fn stored(name: &str) -> (Vec<u8>, Option<Vec<u8>>, String) {
    let path = |ending: &str| folder().join(format!("{name}{ending}"));
    (
        std::fs::read(path(".tdl")).expect("a stored file"),
        std::fs::read(path(".values.tdl")).ok(),
        std::fs::read_to_string(path(".txt")).expect("a stored export"),
    )
}

#[test]
fn stored_files_have_the_contents_of_their_exports() {
    if std::env::var_os("TIDALITE_REWRITE").is_some() {
        write_files_anew();
    }
    for (name, _) in FILES {
        let (first, second, export) = stored(name);
        let contents = read(first, second).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(contents.to_string(), export, "{name}");
    }
}

fn write_files_anew() {
    for (name, make) in FILES {
        let made = make();
        let write = |ending: &str, bytes: &[u8]| {
            std::fs::write(folder().join(format!("{name}{ending}")), bytes).expect("a file");
        };
        write(".tdl", &made.first);
        if let Some(second) = &made.second {
            write(".values.tdl", second);
        }
        write(".txt", made.contents.to_string().as_bytes());
    }
}

fn compare(name: &str, made: Made) {
    let found = read(made.first, made.second).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(found.to_string(), made.contents.to_string(), "{name}");
    assert_eq!(found, made.contents, "{name}");
}

#[test]
fn reader_and_engine_agree_on_files_made_now() {
    for (name, make) in FILES {
        compare(name, make());
    }
}

/// A generator of pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A damaged file must give an error or the right contents; with a damaged redo log, the contents may be of an earlier
/// commit.
fn expect_no_lie(made: &Made, first: Vec<u8>, second: Option<Vec<u8>>, damage: &str) {
    match read(first, second) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(found) => assert!(
            found == made.contents || made.earlier.contains(&found),
            "{damage}: other contents without an error"
        ),
    }
}

#[test]
fn damage_gives_an_error_or_the_right_contents() {
    for (name, make) in FILES {
        let made = make();
        let mut random = Random(0x51ed_270b);
        // Reading the file "tree" takes long, so the test damages it fewer times.
        let flips = if name == "tree" { 30 } else { 120 };
        for _ in 0..flips {
            let (at, bit) = (random.below(made.first.len()), random.below(8));
            let mut first = made.first.clone();
            first[at] ^= 1 << bit;
            let damage = format!("{name}, byte {at}, bit {bit}");
            expect_no_lie(&made, first, made.second.clone(), &damage);
            if let Some(second) = &made.second {
                let mut second = second.clone();
                let at = random.below(second.len());
                second[at] ^= 1 << bit;
                expect_no_lie(&made, made.first.clone(), Some(second), &damage);
            }
        }
        for _ in 0..10 {
            let length = random.below(made.first.len());
            let damage = format!("{name}, {length} bytes");
            let first = made.first[..length].to_vec();
            expect_no_lie(&made, first, made.second.clone(), &damage);
            if let Some(second) = &made.second {
                let second = second[..random.below(second.len())].to_vec();
                expect_no_lie(&made, made.first.clone(), Some(second), &damage);
            }
        }
    }
}

fn read_series(image: &Image) -> SeriesReader<'_> {
    let roots = Roots::read(&image.meta().app).unwrap().unwrap();
    let mut reader = SeriesReader::new(image);
    let mut records = BTreeMap::new();
    for (key, record) in plain_rows(image, &roots.records).unwrap() {
        records.insert(catalog::series_id(&key).unwrap(), record);
    }
    for entry in catalog::series(image, &roots).unwrap() {
        let types: Vec<u8> = entry.columns.iter().map(Column::words).collect();
        if let Some(record) = records.get(&entry.id) {
            reader.rows(entry.id, record, &types).unwrap();
        }
    }
    reader
}

#[test]
fn the_stored_files_have_each_encoding_where_the_matrix_shows_it() {
    let images = ["types", "tree"].map(|name| Image::open(stored(name).0).unwrap());
    let mut found = BTreeSet::new();
    for image in &images {
        found.extend(read_series(image).encodings().iter().copied());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/reading.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, matrix) = page.split_once("| code | times |").unwrap();
    let mut shown = BTreeMap::new();
    for line in matrix.lines().skip(2).take_while(|line| line.contains('|')) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let codes = cells[1].trim_end_matches(|c: char| !c.is_ascii_digit());
        for code in codes
            .split(|c: char| !c.is_ascii_digit())
            .filter(|code| !code.is_empty())
        {
            let code: u8 = code.parse().unwrap();
            shown.insert(code, [cells[2], cells[3], cells[4]].map(|cell| cell == "+"));
        }
    }
    assert!(shown.keys().copied().eq(1..=13), "{shown:?}");
    for (code, kind) in &found {
        let column = match kind & 15 {
            0 => 0,
            1 | 4 => 2,
            _ => 1,
        };
        assert!(shown[code][column], "encoding {code} of type {kind}");
    }
    let codes: BTreeSet<u8> = found.iter().map(|(code, _)| *code).collect();
    assert!(codes.iter().copied().eq(1..=13), "{codes:?}");
}

#[test]
fn pages_that_are_read_are_in_use_and_pages_behind_the_file_are_free() {
    let mut free = 0;
    for (name, _) in FILES {
        let (first, second, _) = stored(name);
        let mut image = Image::open(first).unwrap();
        if let Some(second) = second {
            image.attach(second).unwrap();
        }
        Contents::read(&image).unwrap();
        let space = Space::read(&image).unwrap();
        let pages = image.meta().pages;
        let read = image.pages_read();
        assert!(read.iter().all(|page| space.is_used(*page)), "{name}");
        let head = 24_576_u64.div_ceil(image.page_bytes() as u64);
        assert!(!space.is_used(pages.max(head)), "{name}");
        free += (head..pages).filter(|page| !space.is_used(*page)).count();
    }
    assert!(free > 0, "no file has a free page");
}

#[test]
fn a_stored_file_has_the_structures_that_it_is_there_for() {
    let image = |name: &str| Image::open(stored(name).0).expect("a stored file");
    assert!(image("empty").meta().app.is_empty());
    let log = image("log");
    assert!(log.meta().log.is_some() && log.replayed_pages() > 0);
    assert!(image("two_files").second_file() != Ok(None));
    let tables = image("tables");
    let pins = tables.pins().expect("pins");
    let before = tables.at_pin(&pins[0]).expect("a pinned version");
    let tables = |image: &Image| Contents::read(image).map(|contents| contents.tables.len());
    assert_eq!(tables(&before), Ok(2));

    let hashes = image("hashes");
    let roots = Roots::read(&hashes.meta().app).unwrap().unwrap();
    let tables = catalog::tables(&hashes, &roots).unwrap();
    let merging = tables.iter().find(|table| table.name == "merging").unwrap();
    let rows = merging.tree.rows(&hashes).unwrap().rows;
    let Value::Bytes(state) = &rows[1].1 else {
        panic!("a state");
    };
    let (runs, merging) = (state[48], state[50]);
    let watermark = state.len() - 52 - 28 * usize::from(runs);
    assert!(runs > merging && merging > 0 && watermark > 0);

    let image_of_delta = image("delta");
    let roots = Roots::read(&image_of_delta.meta().app).unwrap().unwrap();
    let delta = Delta::read(&image_of_delta, &roots.delta).unwrap();
    assert!(delta.places() >= 3, "a tail and two runs");
    let image_of_tree = image("tree");
    let series = read_series(&image_of_tree);
    let (leaves, cold, height) = series.seen();
    assert!(
        leaves > 70 && cold > 0 && height > 1,
        "{leaves} {cold} {height}"
    );
}

/// Compares each line of the dump in the description with the stored files. A line is the name of a file, or an offset,
/// bytes and their meaning.
#[test]
fn the_dump_in_the_description_shows_bytes_of_stored_files() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/format/reading.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, dump) = page.split_once("## Annotated dump").unwrap();
    let (_, dump) = dump.split_once("```text\n").unwrap();
    let (dump, _) = dump.split_once("```").unwrap();
    let (mut file, mut compared) = (Vec::new(), 0);
    for line in dump.lines() {
        let mut cells = line.split('|').map(str::trim);
        let (first, Some(hex)) = (cells.next().unwrap(), cells.next()) else {
            file = std::fs::read(folder().join(line)).unwrap();
            continue;
        };
        let offset: usize = first.parse().unwrap();
        let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
        let bytes: Vec<u8> = hex.split(' ').map(byte).collect();
        assert_eq!(file[offset..offset + bytes.len()], bytes, "{line}");
        compared += bytes.len();
    }
    assert!(compared > 500, "{compared} bytes");
}

#[test]
fn pages_beyond_64_kib_have_wide_offsets() {
    compare("large pages", make::large_pages());
}

#[test]
fn objects_of_several_chunks_have_their_hashes() {
    compare("large objects", make::large_objects());
}

/// Flips a bit in the key or the value of a row, also of a nested table.
fn flip_a_bit(rows: &mut Rows, random: &mut Random) {
    if rows.rows.is_empty() {
        return;
    }
    let at = random.below(rows.rows.len());
    let (key, value) = &mut rows.rows[at];
    let bytes = match value {
        Value::Table(nested) => return flip_a_bit(nested, random),
        Value::Bytes(bytes) if random.below(3) > 0 => bytes,
        _ => key,
    };
    if !bytes.is_empty() {
        let at = random.below(bytes.len());
        bytes[at] ^= 1 << random.below(8);
    }
}

/// The checksums of pages hide damage from the readers of rows, so this test damages the rows themselves.
#[test]
fn damaged_rows_give_errors_and_no_panic() {
    for name in ["messages", "relations"] {
        damage_rows(name);
    }
}

fn damage_rows(name: &str) {
    let image = Image::open(stored(name).0).unwrap();
    let roots = Roots::read(&image.meta().app).unwrap().unwrap();
    let mut random = Random(0x2545_f491);
    for table in catalog::tables(&image, &roots).unwrap() {
        let read = |rows: &Rows| match table.layout {
            Layout::Topics => Topics::read(rows).is_ok(),
            Layout::Queue => Queue::read(rows).is_ok(),
            Layout::Bucket => Bucket::read(rows).is_ok(),
            Layout::Containers => Containers::read(rows).is_ok(),
            Layout::Relation => Relation::read(rows).is_ok(),
            other => panic!("a table with the layout {other:?}"),
        };
        let rows = table.tree.rows(&image).unwrap();
        assert!(read(&rows), "{}", table.name);
        let mut refused = 0;
        for _ in 0..300 {
            let mut damaged = rows.clone();
            flip_a_bit(&mut damaged, &mut random);
            refused += usize::from(!read(&damaged));
        }
        assert!(refused > 50, "{}: {refused} of 300 refused", table.name);
    }
}
