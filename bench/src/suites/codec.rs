//! `codec`: bits per value and values per second for every column of `columns.toml`, and for generated columns: our
//! codec, pco, zstd, Gorilla and ALP.
//!
//! ```text
//! columns     real columns to measure, from the files of TIDALITE_TEST_DATA
//! generated   columns of kinds that the real ones lack, in a tuning and a judging half
//! coders      our codec and the others, with a common interface
//! gorilla     bit by bit, as in its paper
//! plain_alp   the crates alp and fastlanes, one vector at a time
//! oracles     compares all coders with each other, on random columns (tests)
//! ```
//!
//! Tidalite's cold form is measured by leaves: a model and its vectors, for 16,384 rows. Tidalite's codec, ALP and
//! Gorilla encode vectors of 1024 rows, each of which can be read alone; Tidalite's size includes the 32 bytes of its
//! chunk. pco and zstd encode 16,384 rows at once, as many as a leaf of Tidalite has. All decoded values are compared
//! with the originals bit by bit.

mod coders;
mod columns;
mod generated;
mod gorilla;
#[cfg(test)]
mod oracles;
mod plain_alp;

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use crate::args::Options;
use crate::engine::Result;
use crate::report::{median, short};
use coders::{CODERS, Coder, Encoded, Room, encodings};
use columns::{Column, Half, Kind};

/// Results of one coder (a compression method) on one column.
struct Figures {
    coder: Coder,
    bits: f64,
    /// Speed of encoding (and below, of decoding) in millions of values per second, the best of the rounds.
    encode: f64,
    decode: f64,
    /// Speed in millions of values per second of decoding and adding up the values.
    sum: f64,
}

/// A column and the results of all coders on it.
struct Row {
    name: String,
    kind: Kind,
    half: Half,
    family: &'static str,
    values: usize,
    encodings: String,
    figures: Vec<Figures>,
}

/// Runs the suite and prints its tables.
pub(crate) fn run(options: &Options, json: Option<File>) -> Result<()> {
    let mut columns = match std::env::var_os("TIDALITE_TEST_DATA").map(PathBuf::from) {
        Some(folder) => columns::read(&folder, &options.only)?,
        None => {
            println!("generated columns only: TIDALITE_TEST_DATA names no folder of real series");
            Vec::new()
        }
    };
    columns.extend(generated::columns(&options.only));
    let mut rows = Vec::new();
    for column in &columns {
        let row = of_column(column, options)?;
        eprintln!(
            "  {:<72} {}",
            row.name,
            row.figures
                .iter()
                .map(|f| format!("{} {}", f.coder.name(), short(f.bits)))
                .collect::<Vec<_>>()
                .join("  ")
        );
        rows.push(row);
    }
    if let Some(mut json) = json {
        for row in &rows {
            for figures in &row.figures {
                writeln!(json, "{}", line(row, figures))?;
            }
        }
    }
    tell(&rows);
    Ok(())
}

fn of_column(column: &Column, options: &Options) -> Result<Row> {
    let mut row = Row {
        name: column.name.clone(),
        kind: column.kind,
        half: column.half,
        family: column.family,
        values: column.values(),
        encodings: String::new(),
        figures: Vec::new(),
    };
    for coder in CODERS {
        if !coder.takes(column.kind) {
            continue;
        }
        let (encoded, figures) = measured(coder, column, options)?;
        if coder == Coder::Ours {
            row.encodings = encodings(&encoded);
        }
        row.figures.push(figures);
    }
    Ok(row)
}

fn measured(coder: Coder, column: &Column, options: &Options) -> Result<(Encoded, Figures)> {
    let values = column.values();
    let encode = || -> Result<Encoded> {
        let mut encoded = Encoded::default();
        for series in &column.series {
            coder.encode(column.kind, series, &mut encoded)?;
        }
        Ok(encoded)
    };
    let encoded = encode()?;
    let mut room = Room::new();
    // Checks that decoding returns the words that were encoded.
    let mut series = column.series.iter();
    let mut rest: &[u64] = &[];
    let mut wrong = 0;
    coder.decode(column.kind, &encoded, &mut room, |seen| {
        if rest.is_empty() {
            rest = series.next().map_or(&[], Vec::as_slice);
        }
        let (expected, behind) = rest.split_at(seen.len().min(rest.len()));
        wrong += usize::from(!seen.is(expected));
        rest = behind;
    })?;
    if wrong > 0 {
        return Err(format!("{}: {wrong} blocks differ in {}", coder.name(), column.name).into());
    }
    let rate = |work: &mut dyn FnMut() -> Result<()>| best(values, options.rounds, work);
    let encode_rate = rate(&mut || {
        black_box(encode()?);
        Ok(())
    })?;
    let decode = rate(&mut || {
        coder.decode(column.kind, &encoded, &mut room, |seen| {
            black_box(seen.len());
        })
    })?;
    let sum = rate(&mut || {
        let mut total = 0.0;
        coder.decode(column.kind, &encoded, &mut room, |seen| total += seen.sum())?;
        black_box(total);
        Ok(())
    })?;
    let figures = Figures {
        coder,
        bits: 8.0 * encoded.size() as f64 / values as f64,
        encode: encode_rate,
        decode,
        sum,
    };
    Ok((encoded, figures))
}

/// Millions of values per second in the fastest pass of all rounds; a round lasts at least a few milliseconds.
fn best(values: usize, rounds: usize, work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    const SECONDS_MIN: f64 = 0.003;
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let round = Instant::now();
        while round.elapsed().as_secs_f64() < SECONDS_MIN {
            let start = Instant::now();
            work()?;
            best = best.min(start.elapsed().as_secs_f64());
        }
    }
    Ok(values as f64 / best / 1e6)
}

fn line(row: &Row, figures: &Figures) -> String {
    let Figures {
        coder,
        bits,
        encode,
        decode,
        sum,
    } = figures;
    let (name, values, kind) = (&row.name, row.values, row.kind);
    let (half, family) = (row.half.name(), row.family);
    format!(
        r#"{{"suite":"codec","case":"{name}","half":"{half}","family":"{family}","kind":"{kind:?}","values":{values},"coder":"{}","bits":{bits:.4},"encode":{encode:.2},"decode":{decode:.2},"sum":{sum:.2}}}"#,
        coder.name(),
    )
}

fn tell(rows: &[Row]) {
    println!("bits a value; millions of values a second, one thread\n");
    println!(
        "| column | values | tidalite | cold | pco-8 | zstd-3 | gorilla | alp | ours / pco | encode | decode | sum | decode / pco | encodings |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|");
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|a, b| excess(b).total_cmp(&excess(a)));
    for row in &sorted {
        let bits = |coder| of(row, coder).map_or(String::new(), |f| short(f.bits));
        let (ours, pco) = (of(row, Coder::Ours), of(row, Coder::Pco));
        let (Some(ours), Some(pco)) = (ours, pco) else {
            continue;
        };
        println!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {} | {:.1} | {} |",
            row.name,
            row.values,
            short(ours.bits),
            bits(Coder::Cold),
            short(pco.bits),
            bits(Coder::Zstd),
            bits(Coder::Gorilla),
            bits(Coder::Alp),
            ours.bits / pco.bits,
            short(ours.encode),
            short(ours.decode),
            short(ours.sum),
            ours.decode / pco.decode,
            row.encodings,
        );
    }
    let measured: Vec<&Row> = rows.iter().filter(|row| row.kind != Kind::Time).collect();
    for half in [Half::Known, Half::Tuning, Half::Judging] {
        let of_half: Vec<&Row> = measured
            .iter()
            .copied()
            .filter(|row| row.half == half)
            .collect();
        if !of_half.is_empty() {
            tell_coders(half, &of_half);
        }
    }
    tell_families(&measured);
}

/// Prints the means of each coder over the columns of a half.
fn tell_coders(half: Half, rows: &[&Row]) {
    println!(
        "\n| {} columns | number | mean bits | of pco's | geometric mean of ratios | median encode M/s | median decode M/s | median decode and sum M/s |",
        half.name()
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for coder in CODERS {
        let with: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| of(row, coder).is_some())
            .collect();
        let all = |of_one: &dyn Fn(&Figures) -> f64, coder| -> Vec<f64> {
            with.iter()
                .filter_map(|row| of(row, coder))
                .map(of_one)
                .collect()
        };
        let mean = |coder| {
            let bits = all(&|f| f.bits, coder);
            bits.iter().sum::<f64>() / bits.len() as f64
        };
        if with.is_empty() {
            continue;
        }
        println!(
            "| {} | {} | {:.3} | {:+.1} % | {:+.1} % | {} | {} | {} |",
            coder.name(),
            with.len(),
            mean(coder),
            (mean(coder) / mean(Coder::Pco) - 1.0) * 100.0,
            (geometric_mean(&with, coder) - 1.0) * 100.0,
            short(median(&all(&|f| f.encode, coder))),
            short(median(&all(&|f| f.decode, coder))),
            short(median(&all(&|f| f.sum, coder))),
        );
    }
}

/// Prints bits and rates, and their ratios to the figures of pco, for each half and each family of columns.
fn tell_families(rows: &[&Row]) {
    println!(
        "\n| half | family | columns | hot bits | cold bits | pco-8 bits | hot / pco | cold / pco | decode / pco: median | least |"
    );
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|");
    let mut told: Vec<(Half, &str)> = Vec::new();
    for half in [Half::Known, Half::Tuning, Half::Judging] {
        for family in rows
            .iter()
            .map(|row| row.family)
            .chain(std::iter::once("all"))
        {
            let with: Vec<&Row> = rows
                .iter()
                .copied()
                .filter(|row| row.half == half && (family == "all" || row.family == family))
                .collect();
            if with.is_empty() || told.contains(&(half, family)) {
                continue;
            }
            told.push((half, family));
            let bits = |coder| {
                let bits = with.iter().filter_map(|row| of(row, coder));
                bits.map(|f| f.bits).sum::<f64>() / with.len() as f64
            };
            let rates: Vec<f64> = with
                .iter()
                .filter_map(|row| Some(of(row, Coder::Ours)?.decode / of(row, Coder::Pco)?.decode))
                .collect();
            println!(
                "| {} | {family} | {} | {:.2} | {:.2} | {:.2} | {:+.1} % | {:+.1} % | {:.1} | {:.1} |",
                half.name(),
                with.len(),
                bits(Coder::Ours),
                bits(Coder::Cold),
                bits(Coder::Pco),
                (geometric_mean(&with, Coder::Ours) - 1.0) * 100.0,
                (geometric_mean(&with, Coder::Cold) - 1.0) * 100.0,
                median(&rates),
                rates.iter().copied().fold(f64::INFINITY, f64::min),
            );
        }
    }
}

/// The geometric mean of the ratios between the sizes of a coder and of pco.
fn geometric_mean(rows: &[&Row], coder: Coder) -> f64 {
    let logs: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some((of(row, coder)?.bits / of(row, Coder::Pco)?.bits).ln()))
        .collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

fn of(row: &Row, coder: Coder) -> Option<&Figures> {
    row.figures.iter().find(|figures| figures.coder == coder)
}

/// Number of bits per value that Tidalite's codec needs more than pco.
fn excess(row: &Row) -> f64 {
    match (of(row, Coder::Ours), of(row, Coder::Pco)) {
        (Some(ours), Some(pco)) => ours.bits - pco.bits,
        _ => 0.0,
    }
}
