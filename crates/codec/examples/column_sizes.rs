//! Prints the encoded size of every column of a folder of CSV files (`.csv`, `.csv.gz`, `.csv.zip`), and of some
//! generated columns; then, for each encoding, the number of its vectors and their bytes.
//! `cargo run --release -p tidalite-codec --example column_sizes -- FOLDER`
//!
//! The size of a vector is the length of its payload and of its description (chunk), in bytes, without statistics and
//! checksums.
#![expect(clippy::print_stdout, reason = "prints its measurements")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidalite_codec::{
    ColumnType, EncoderState, decode_column, decode_times, encode_column, encode_times, words,
};

const ROWS: usize = 1024;

enum Column {
    Times(Vec<i64>),
    Words(ColumnType, Vec<u64>),
}

/// Number of vectors, and total length of these vectors in bytes.
#[derive(Clone, Copy, Default)]
struct Size {
    vectors: usize,
    rows: usize,
    bytes: usize,
}

#[derive(Default)]
struct Report {
    total: Size,
    by_encoding: BTreeMap<&'static str, Size>,
}

impl Report {
    fn add(&mut self, name: &str, column: &Column) {
        let mut own = Size::default();
        let mut names = BTreeMap::<&'static str, usize>::new();
        let mut state = EncoderState::default();
        let rows = match column {
            Column::Times(times) => times.len(),
            Column::Words(_, words) => words.len(),
        };
        for from in (0..rows).step_by(ROWS) {
            let range = from..rows.min(from + ROWS);
            let mut bytes = Vec::new();
            let mut back = vec![0; range.len()];
            let chunk = match column {
                Column::Times(times) => {
                    let vector = &times[range.clone()];
                    let chunk = encode_times(vector, &mut state, &mut bytes);
                    let mut read = vec![0; range.len()];
                    assert!(decode_times(&chunk, &bytes, &mut read).is_ok() && read == vector);
                    chunk
                }
                Column::Words(ty, words) => {
                    let vector = &words[range.clone()];
                    let chunk = encode_column(*ty, vector, &mut state, &mut bytes);
                    assert!(decode_column(&chunk, &bytes, &mut back).is_ok() && back == vector);
                    chunk
                }
            };
            chunk.put(&mut bytes);
            *names.entry(chunk.encoding_name()).or_default() += 1;
            for size in [
                &mut own,
                &mut self.total,
                self.by_encoding.entry(chunk.encoding_name()).or_default(),
            ] {
                size.vectors += 1;
                size.rows += range.len();
                size.bytes += bytes.len();
            }
        }
        let bits = own.bytes as f64 * 8.0 / own.rows as f64;
        println!("{:>9} B {bits:6.2} bits  {name}  {names:?}", own.bytes);
    }

    fn print(&self, title: &str) {
        let all = self.total;
        println!(
            "== {title}: {} vectors, {} rows, {} B",
            all.vectors, all.rows, all.bytes
        );
        for (name, size) in &self.by_encoding {
            let vectors = size.vectors as f64 * 100.0 / all.vectors as f64;
            let bytes = size.bytes as f64 * 100.0 / all.bytes as f64;
            println!("{name:<14} {vectors:6.2} % of vectors {bytes:6.2} % of bytes");
        }
    }
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            files(&path, found);
        } else if [".csv", ".csv.gz", ".csv.zip"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

fn text_of(path: &Path) -> String {
    let bytes = match path.extension().and_then(|end| end.to_str()) {
        Some("gz") => Command::new("gzip").arg("-dc").arg(path).output(),
        Some("zip") => Command::new("unzip").arg("-p").arg(path).output(),
        _ => return std::fs::read_to_string(path).unwrap_or_default(),
    };
    let bytes = bytes.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Parses `YYYY-MM-DD HH:MM:SS` with an optional fraction and time zone to milliseconds; the time zone is ignored.
fn time_of(field: &str) -> Option<i64> {
    let number = |range: std::ops::Range<usize>| field.get(range)?.parse::<i64>().ok();
    let bytes = field.as_bytes();
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let (y, m, d) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let y = if m <= 2 { y - 1 } else { y };
    let day_of_year = (153 * ((m + 9) % 12) + 2) / 5 + d - 1;
    let days = 365 * y + y.div_euclid(4) - y.div_euclid(100) + y.div_euclid(400) + day_of_year;
    let mut seconds = days * 86_400;
    if bytes.len() >= 16 {
        seconds += number(11..13)? * 3600 + number(14..16)? * 60;
        seconds += number(17..19).unwrap_or(0);
    }
    Some(seconds * 1000)
}

fn column_of(fields: &[&str]) -> Option<Column> {
    let filled = || fields.iter().copied().filter(|field| !is_blank(field));
    let nullable = filled().count() < fields.len();
    filled().next()?;
    if !nullable && let Some(times) = filled().map(time_of).collect() {
        return Some(Column::Times(times));
    }
    let of_type = |ty: ColumnType| if nullable { ty.or_null() } else { ty };
    let all = |ty: ColumnType, parse: &dyn Fn(&str) -> Option<u64>| {
        let ty = of_type(ty);
        let word = |field: &&str| match is_blank(field) {
            true => ty.null(),
            false => parse(field),
        };
        let words: Option<Vec<u64>> = fields.iter().map(word).collect();
        words.map(|words| Column::Words(ty, words))
    };
    let int = |field: &str| field.parse::<i64>().ok().map(|x| x as u64);
    let float = |field: &str| field.parse::<f64>().ok().map(f64::to_bits);
    all(ColumnType::I64, &int).or_else(|| all(ColumnType::F64, &float))
}

fn is_blank(field: &str) -> bool {
    matches!(field, "" | "NA" | "." | "NaN")
}

fn add_file(path: &Path, report: &mut Report) {
    let text = text_of(path);
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let Some(head) = lines.next() else { return };
    let split = if head.contains(';') { ';' } else { ',' };
    let fields = |line: &str| -> Vec<String> {
        let trimmed = line
            .split(split)
            .map(|field| field.trim().trim_matches('"'));
        trimmed.map(str::to_owned).collect()
    };
    let names = fields(head);
    let headless = names.iter().all(|name| name.parse::<f64>().is_ok());
    let first = headless.then_some(head);
    let rows: Vec<Vec<String>> = first.into_iter().chain(lines).map(fields).collect();
    for (column, name) in names.iter().enumerate() {
        let cells: Vec<&str> = rows
            .iter()
            .map(|row| row.get(column).map_or("", String::as_str))
            .collect();
        if let Some(found) = column_of(&cells) {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            report.add(&format!("{file}: {name}"), &found);
        }
    }
}

/// Reports generated columns, of kinds that the files lack.
fn generated(report: &mut Report) {
    let mut seed = 7u64;
    let mut random = move |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut total = 0;
    let mut walk = 20.0f32;
    let mut level = 0.0;
    type Generator = Box<dyn FnMut(u64) -> f64>;
    let mut kinds: Vec<(&str, Generator)> = Vec::new();
    kinds.push(("zero-inflated decimals", {
        let mut random = random;
        Box::new(move |_| match random(20) {
            0..15 => 0.0,
            _ => random(10_000) as f64 / 100.0,
        })
    }));
    kinds.push(("restarting sums", {
        let mut random = random;
        Box::new(move |i| {
            total = if i % 144 == 0 { 0 } else { total + random(50) };
            total as f64 / 10.0
        })
    }));
    kinds.push(("NaN in a tenth of the rows", {
        let mut random = random;
        Box::new(move |_| match random(10) {
            0 => f64::NAN,
            _ => random(1000) as f64 / 10.0,
        })
    }));
    kinds.push(("two kinds of infinity in 2 %", {
        let mut random = random;
        Box::new(move |_| match random(100) {
            0 => f64::INFINITY,
            1 => f64::NEG_INFINITY,
            _ => random(1000) as f64 / 10.0,
        })
    }));
    kinds.push(("small alphabet", {
        let mut random = random;
        Box::new(move |_| ((random(6) + 2) as f64).sqrt())
    }));
    kinds.push(("levels", {
        let mut random = random;
        Box::new(move |_| {
            if random(40) == 0 {
                level = ((random(50) + 3) as f64).sqrt();
            }
            level
        })
    }));
    kinds.push(("f32 walk as f64", {
        let mut random = random;
        Box::new(move |_| {
            walk += (random(2000) as f32 - 1000.0) / 7777.0;
            f64::from(walk)
        })
    }));
    kinds.push(("f32 noise as f64", {
        let mut random = random;
        Box::new(move |_| f64::from(random(1 << 24) as f32 / 3.0))
    }));
    kinds.push(("f32 noise of both signs as f64", {
        let mut random = random;
        Box::new(move |_| f64::from((random(1 << 24) as f32 - 8_388_608.0) / 3e6))
    }));
    kinds.push((
        "f64 noise",
        Box::new(move |_| (random(1 << 30) as f64).sqrt()),
    ));
    for (name, mut of) in kinds {
        let floats: Vec<f64> = (0..20 * ROWS as u64).map(&mut of).collect();
        let bits: Vec<i64> = floats.iter().map(|x| x.to_bits() as i64).collect();
        let bits = words(&bits).to_vec();
        report.add(name, &Column::Words(ColumnType::F64, bits));
        if name.starts_with("f32") {
            let narrow = floats.iter().map(|&x| ColumnType::widen(x as f32));
            let of = Column::Words(ColumnType::F32, narrow.collect());
            report.add(&format!("{name}, type f32"), &of);
        }
    }
}

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_default();
    let mut paths = Vec::new();
    files(Path::new(&folder), &mut paths);
    paths.sort();
    let mut real = Report::default();
    for path in paths {
        add_file(&path, &mut real);
    }
    let mut made = Report::default();
    generated(&mut made);
    real.print("files");
    made.print("generated");
}
