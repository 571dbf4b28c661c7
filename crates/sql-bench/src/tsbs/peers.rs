//! Measures the peers with a Python program, one after the other. The program receives rows in a file, and queries as
//! lines.
//!
//! Engines that run inside the Python process load the rows sorted by host and time; servers load them in the order of
//! their times.

use crate::options::Options;
use crate::python;
use crate::tsbs::files::{self, Format, Order, Values};
use crate::tsbs::promql;
use crate::tsbs::queries::{Kind, Place, Query};
use crate::tsbs::report::{Peer, Peers, Timed};
use crate::tsbs::sql::{CHDB, DUCKDB, QUESTDB, SQLITE};
use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use tempfile::TempDir;

/// The Python program: the embedded engines, the servers, and the measurement.
const PROGRAM: &str = concat!(
    include_str!("peers/embedded.py"),
    include_str!("peers/servers.py"),
    include_str!("peers/measure.py")
);

/// A peer, before its version is known.
struct Engine {
    /// The name of its function in the Python program.
    name: &'static str,
    format: Format,
    text: fn(Kind, &Place) -> Option<String>,
}

/// The peers, in the order of their columns.
const ENGINES: [Engine; 5] = [
    Engine {
        name: "duckdb",
        format: Format::Arrow,
        text: |kind, place| Some(DUCKDB.text(kind, place)),
    },
    Engine {
        name: "sqlite",
        format: Format::Csv,
        text: |kind, place| Some(SQLITE.text(kind, place)),
    },
    Engine {
        name: "chdb",
        format: Format::Arrow,
        text: |kind, place| Some(CHDB.text(kind, place)),
    },
    Engine {
        name: "questdb",
        format: Format::Lines,
        text: |kind, place| Some(QUESTDB.text(kind, place)),
    },
    Engine {
        name: "victoriametrics",
        format: Format::Lines,
        text: promql::text,
    },
];

/// Loads the rows and runs all queries in each installed peer. Rows are loaded in the given order, otherwise in the
/// order that suits the peer.
pub(crate) fn run(
    options: &Options,
    values: &Values,
    order: Option<Order>,
    queries: &[Query],
) -> Result<Peers, Box<dyn Error>> {
    let mut peers = Peers::default();
    if !options.peers {
        return Ok(peers);
    }
    for engine in &ENGINES {
        let scratch = TempDir::new()?;
        let rows = scratch.path().join("rows");
        let suits = match engine.format {
            Format::Lines => Order::ByTime,
            Format::Arrow | Format::Csv => Order::ByHost,
        };
        files::write(values, order.unwrap_or(suits), engine.format, &rows)?;
        let asked = scratch.path().join("queries");
        let mut file = BufWriter::new(File::create(&asked)?);
        for query in queries {
            let beforehand = query.beforehand();
            let places = std::iter::once(&beforehand).chain(&query.places);
            for text in places.filter_map(|place| (engine.text)(query.kind, place)) {
                writeln!(file, "{}\t{text}", query.name)?;
            }
        }
        file.flush()?;
        let arguments = [engine.name.as_ref(), rows.as_os_str(), asked.as_os_str()];
        let measured =
            python::run(PROGRAM, &arguments, engine.name).and_then(|output| parsed(&output));
        // The other peers are measured even if one fails.
        match measured {
            Ok(Some(peer)) => peers.measured.push(peer),
            Ok(None) => {}
            Err(error) => peers.failures.push(format!("{}: {error}", engine.name)),
        }
    }
    Ok(peers)
}

/// Parses lines `engine NAME VERSION`, `loaded SECONDS BYTES` and `query NAME MILLISECONDS ROWS SUM`, with tabs between
/// the values; `None` if the peer is not installed and the program has written only a note.
fn parsed(text: &str) -> Result<Option<Peer>, Box<dyn Error>> {
    let mut peer = None;
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        match (&fields[..], &mut peer) {
            (["engine", name], None) => {
                peer = Some(Peer {
                    name: (*name).to_owned(),
                    seconds: 0.0,
                    bytes: 0.0,
                    timed: Vec::new(),
                });
            }
            (["loaded", seconds, bytes], Some(peer)) => {
                (peer.seconds, peer.bytes) = (seconds.parse()?, bytes.parse()?);
            }
            (["query", name, time, rows, sum], Some(peer)) => {
                let last = peer.timed.last().is_some_and(|timed| timed.name == *name);
                if !last {
                    peer.timed.push(Timed::new(name));
                }
                if let Some(timed) = peer.timed.last_mut() {
                    timed.push(time.parse()?, (rows.parse()?, sum.parse()?));
                }
            }
            _ => return Err(format!("the program has written {line:?}").into()),
        }
    }
    Ok(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_program_are_read() {
        let output = "engine\tDuckDB 2\nloaded\t0.5\t100\nquery\tcheck\t1.5\t1\t42.0\n";
        let peer = parsed(output).unwrap().unwrap();
        assert_eq!(
            (peer.name.as_str(), peer.seconds, peer.bytes),
            ("DuckDB 2", 0.5, 100.0)
        );
        assert_eq!(peer.timed[0].name, "check");
        assert_eq!(peer.timed[0].found, [(1, 42.0)]);
        assert!(parsed("").unwrap().is_none());
        assert!(parsed("engine\tDuckDB 2\nanything\n").is_err());
        assert!(parsed("loaded\t0.5\t100\n").is_err());
    }
}
