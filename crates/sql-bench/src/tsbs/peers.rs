//! DuckDB and SQLite, run by a program in Python: rows go to it as CSV, queries as lines.

use crate::options::Options;
use crate::python;
use crate::tsbs::data;
use crate::tsbs::queries::Query;
use crate::tsbs::report::{Peer, Timed};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use tempfile::TempDir;

/// Runs all queries in both peers.
pub(crate) fn run(options: &Options, queries: &[Query]) -> Result<Vec<Peer>, Box<dyn Error>> {
    let scratch = TempDir::new()?;
    let rows = scratch.path().join("rows.csv");
    write_rows(options, &rows)?;
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
        let arguments = [name.as_ref(), rows.as_os_str(), asked.as_os_str()];
        let output = python::run(include_str!("peers.py"), &arguments, name)?;
        peers.push(parsed(name, queries, &output)?);
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

/// Reads lines of `name milliseconds rows sum`.
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
    Ok(Peer {
        name: name.to_owned(),
        timed,
    })
}
