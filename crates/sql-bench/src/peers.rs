//! DuckDB and SQLite, run by a program in Python: rows go to it as CSV, queries as lines.

use crate::data;
use crate::options::Options;
use crate::queries::Query;
use crate::report::{Peer, Timed};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Runs all queries in both peers.
pub(crate) fn run(options: &Options, queries: &[Query]) -> Result<Vec<Peer>, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let rows = scratch.path().join("rows.csv");
    write_rows(options, &rows)?;
    let program = scratch.path().join("peers.py");
    std::fs::write(&program, include_str!("peers.py"))?;
    let mut peers = Vec::new();
    for name in ["duckdb", "sqlite"] {
        let asked = scratch.path().join(format!("{name}.txt"));
        let mut file = BufWriter::new(File::create(&asked)?);
        for query in queries {
            let texts = if name == "duckdb" {
                &query.duckdb
            } else {
                &query.sqlite
            };
            for text in texts {
                writeln!(file, "{}\t{text}", query.name)?;
            }
        }
        file.flush()?;
        let output = Command::new("python3")
            .arg(&program)
            .arg(name)
            .arg(&rows)
            .arg(&asked)
            .output()?;
        if !output.status.success() {
            return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        peers.push(parsed(name, queries, &String::from_utf8(output.stdout)?)?);
    }
    Ok(peers)
}

fn write_rows(options: &Options, path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for host in 0..options.hosts {
        let region = data::region(host);
        let mut line = String::new();
        data::rows(options, host, |time, values| {
            line.clear();
            line.push_str(&format!("{time},host_{host},{region}"));
            for value in values {
                line.push_str(&format!(",{value}"));
            }
            Ok(writeln!(file, "{line}")?)
        })?;
    }
    file.flush()?;
    Ok(())
}

/// Reads lines of `name milliseconds rows sum`; lines that begin with `#` are printed.
fn parsed(name: &str, queries: &[Query], text: &str) -> Result<Peer, Box<dyn Error>> {
    let mut timed = Vec::new();
    for query in queries {
        let (mut times, mut found) = (Vec::new(), Vec::new());
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if let [own, time, rows, sum] = fields[..]
                && own == query.name
            {
                times.push(time.parse()?);
                found.push((rows.parse()?, sum.parse()?));
            }
        }
        if !times.is_empty() {
            timed.push(Timed::new(query, times, found));
        }
    }
    for note in text.lines().filter_map(|line| line.strip_prefix("# ")) {
        println!("{name}: {note}");
    }
    Ok(Peer {
        name: name.to_owned(),
        timed,
    })
}
