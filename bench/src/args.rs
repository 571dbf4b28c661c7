//! Parses the command line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The text that `--help` prints.
pub(crate) const HELP: &str = "\
Benchmarks of Tidalite against its peers, both in one run on one machine.

usage: cargo run --release --manifest-path bench/Cargo.toml -- SUITE [options]

suites:
  harlinn        the five programs of \"An Ultrafast Light Timeseries Storage Engine\",
                 against a port of that engine on LMDB
  commit         durable commits of 1, 10 and 1,000 rows, and of 1 to 16 threads
  mdbx           small transactions in three degrees of durability, loads, gets, ranges,
                 removals, sizes: the workloads that libmdbx and redb publish
  ioarena        set, get, iterate, crud, batch and delete as IOArena does them, each
                 operation a transaction, in three degrees of durability
  beyond-memory  a file eight times as large as the memory that its process may use
  long-reader    one snapshot held while everything is overwritten
  ticks          a point for each of 100, 10,000 and 100,000 series in every durable commit
  growth         open, append, aggregate and latest as points and series become more
  akumuli        the two tables of the numeric B+tree, opening after a kill, aggregates
  codec          bits a value and values a second of real columns, beside pco, zstd, Gorilla, ALP
  nested         a million small tables in a table, topics found level by level; LMDB's flat keys
  import         files in CSV, gzip, JSON lines and line protocol into a database, by the
                 programs: CPU seconds beside DuckDB and sqlite3
  catalog        many series with ten points each: write, find by tags; SQLite
  raptor         the tests of RaptorDB's article, its figures beside; durable random sets and gets of
                 GUIDs, LMDB, libmdbx, redb and fjall beside
  buffered       random keys in durable transactions into a buffered table, a plain table, LMDB and fjall
  flespi         retained topics overwritten every second, wildcards, layouts of topics, containers,
                 queues, objects; LMDB, SQLite, plain files
  cpu            a hundred hosts with ten metrics each: write, size, eight questions; SQLite

options:
  --rounds R     rounds, of which the median is taken (default 3)
  --only LIST    cases, with commas: 01,03r (default: all); codec: parts of names of columns
  --peers LIST   peers, with commas: lmdb,libmdbx,redb,fjall,sqlite; none (default: all that the suite has)
  --dir DIR      where the files go, one at a time (default: the system's temporary directory)
  --json FILE    also write a JSON object per line
  --points N     harlinn: points of a case (default 10000000; the published figures: 100000000);
                 growth: of the largest database (default 100000000);
                 cpu: rows (default 2592000, three days); akumuli: of a case (default 40000000)
  --commits N    commit: commits of a case (default 5000); long-reader: overwrites (default 1000000);
                 ticks: commits (default 10000; with fewer there are fewer series, too)
  --pairs N      mdbx: pairs of the large tables (default 5000000), of which the rest is scaled;
                 ioarena: 5000000 stands for the published counts;
                 long-reader: of its table (default 1000000); nested: five a table or topic;
                 buffered: of the table (default 5000000)
  --series N     catalog: number of series (default 1000000)
  --keys N       raptor: number of GUIDs (default 10000000), of which the rest is scaled;
                 flespi: topics of the part `load` (default 10000000)
  --topics N     flespi: topics of the other parts, overwritten once a second (default 1000000)
  --batch N      flespi: topics of a commit (default 50000)
  --seconds N    flespi: time for which topics are overwritten (default 600)
  --documents N  flespi: messages of the containers (default 2000000)
  --messages N   flespi: messages of a queue (default 1000000)
  --mib N        beyond-memory: size of the file (default 8192); import: of the CSV (default 100);
                 flespi: of an object (default 1024)
  --memory-mib N beyond-memory: memory of the process (default 1024; 0: no bound)
";

/// The suites of benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suite {
    Harlinn,
    Commit,
    Mdbx,
    Ioarena,
    BeyondMemory,
    /// A single engine of the suite `BeyondMemory`, in a process of its own.
    BeyondMemoryOne,
    LongReader,
    Ticks,
    Growth,
    Nested,
    Import,
    Catalog,
    Raptor,
    /// A single engine of the suite `Raptor`, in a process of its own.
    RaptorOne,
    Buffered,
    Flespi,
    /// A single engine and part of the suite `Flespi`, in a process of its own.
    FlespiOne,
    Cpu,
    Codec,
    Akumuli,
    /// The writing process that the suite `Akumuli` kills.
    AkumuliWriter,
}

/// The suite to run, its sizes, number of repetitions and paths.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) suite: Suite,
    pub(crate) rounds: usize,
    /// Names of the cases to run; all cases if empty.
    pub(crate) only: Vec<String>,
    /// Names of the participating peers; all peers if empty.
    pub(crate) peers: Vec<String>,
    /// Directory in which the engines create their files.
    pub(crate) dir: PathBuf,
    pub(crate) json: Option<PathBuf>,
    pub(crate) points: u64,
    pub(crate) commits: u64,
    pub(crate) pairs: u64,
    pub(crate) series: u64,
    pub(crate) keys: u64,
    pub(crate) topics: u64,
    pub(crate) batch: u64,
    pub(crate) seconds: u64,
    pub(crate) documents: u64,
    pub(crate) messages: u64,
    pub(crate) mib: u64,
    pub(crate) memory_mib: u64,
    /// Names of the cases that the suite has offered while it ran, for the error that lists them.
    asked: Arc<Mutex<BTreeSet<String>>>,
}

impl Options {
    /// True if the case with this name is to run.
    pub(crate) fn chosen(&self, case: &str) -> bool {
        if self.only.is_empty() {
            return true;
        }
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.insert(case.to_owned());
        self.only.iter().any(|only| only == case)
    }

    /// After the suite has run, returns an error if a name in `--only` has matched no case.
    pub(crate) fn all_known(&self) -> Result<(), String> {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unknown) = self.only.iter().find(|only| !asked.contains(*only)) else {
            return Ok(());
        };
        let cases: Vec<&str> = asked.iter().map(String::as_str).collect();
        let cases = cases.join(", ");
        Err(format!(
            "no case is named \"{unknown}\"; --only takes: {cases}"
        ))
    }

    fn new(suite: Suite) -> Self {
        let long_reader = suite == Suite::LongReader;
        let commits = match suite {
            Suite::LongReader => 1_000_000,
            Suite::Ticks => 10_000,
            _ => 5000,
        };
        let points = match suite {
            Suite::Growth => 100_000_000,
            Suite::Cpu => 2_592_000,
            Suite::Akumuli | Suite::AkumuliWriter => 40_000_000,
            _ => 10_000_000,
        };
        Self {
            suite,
            rounds: 3,
            only: Vec::new(),
            peers: Vec::new(),
            dir: std::env::temp_dir(),
            json: None,
            points,
            commits,
            pairs: if long_reader { 1_000_000 } else { 5_000_000 },
            series: 1_000_000,
            keys: 10_000_000,
            topics: 1_000_000,
            batch: 50_000,
            seconds: 600,
            documents: 2_000_000,
            messages: 1_000_000,
            mib: match suite {
                Suite::Import => 100,
                Suite::Flespi | Suite::FlespiOne => 1024,
                _ => 8192,
            },
            memory_mib: 1024,
            asked: Arc::default(),
        }
    }
}

/// Parses the arguments; `None` if help was requested.
pub(crate) fn parse(args: impl IntoIterator<Item = String>) -> Result<Option<Options>, String> {
    let mut args = args.into_iter();
    let suite = match args.next().as_deref() {
        None | Some("--help" | "-h" | "help") => return Ok(None),
        Some("harlinn") => Suite::Harlinn,
        Some("commit") => Suite::Commit,
        Some("mdbx") => Suite::Mdbx,
        Some("ioarena") => Suite::Ioarena,
        Some("beyond-memory") => Suite::BeyondMemory,
        Some("beyond-memory-one") => Suite::BeyondMemoryOne,
        Some("long-reader") => Suite::LongReader,
        Some("ticks") => Suite::Ticks,
        Some("growth") => Suite::Growth,
        Some("nested") => Suite::Nested,
        Some("import") => Suite::Import,
        Some("catalog") => Suite::Catalog,
        Some("raptor") => Suite::Raptor,
        Some("raptor-one") => Suite::RaptorOne,
        Some("buffered") => Suite::Buffered,
        Some("flespi") => Suite::Flespi,
        Some("flespi-one") => Suite::FlespiOne,
        Some("cpu") => Suite::Cpu,
        Some("codec") => Suite::Codec,
        Some("akumuli") => Suite::Akumuli,
        Some("akumuli-writer") => Suite::AkumuliWriter,
        Some(other) => return Err(format!("there is no suite {other}")),
    };
    let mut options = Options::new(suite);
    while let Some(option) = args.next() {
        if matches!(option.as_str(), "--help" | "-h") {
            return Ok(None);
        }
        let value = args
            .next()
            .ok_or_else(|| format!("{option} wants a value"))?;
        match option.as_str() {
            "--points" => options.points = number(&option, &value)?,
            "--commits" => options.commits = number(&option, &value)?,
            "--pairs" => options.pairs = number(&option, &value)?,
            "--series" => options.series = number(&option, &value)?,
            "--keys" => options.keys = number(&option, &value)?,
            "--topics" => options.topics = number(&option, &value)?,
            "--batch" => options.batch = number(&option, &value)?,
            "--seconds" => options.seconds = number(&option, &value)?,
            "--documents" => options.documents = number(&option, &value)?,
            "--messages" => options.messages = number(&option, &value)?,
            "--mib" => options.mib = number(&option, &value)?,
            "--memory-mib" if value == "0" => options.memory_mib = 0,
            "--memory-mib" => options.memory_mib = number(&option, &value)?,
            "--rounds" => options.rounds = number(&option, &value)? as usize,
            "--only" => options.only = list(&value),
            "--peers" => options.peers = list(&value),
            "--dir" => options.dir = value.into(),
            "--json" => options.json = Some(value.into()),
            _ => return Err(format!("there is no option {option}")),
        }
    }
    Ok(Some(options))
}

fn list(value: &str) -> Vec<String> {
    value
        .split(',')
        .map(|item| item.trim().to_owned())
        .collect()
}

/// Parses a positive integer; digits may be grouped with underscores and commas.
fn number(option: &str, value: &str) -> Result<u64, String> {
    let digits: String = value.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    match digits.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(format!("{option} wants a positive number, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Option<Options>, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn reads_what_help_describes() {
        let line = "harlinn --points 1_000_000 --rounds 5 --only 01,03r --dir /x --json y";
        let options = parsed(line).unwrap().unwrap();
        assert_eq!((options.points, options.rounds), (1_000_000, 5));
        assert_eq!(options.only, ["01", "03r"]);
        assert!(options.chosen("01") && !options.chosen("04"));
        // The name 03r is still unknown, because no suite has asked for it.
        let unknown = options.all_known().unwrap_err();
        assert_eq!(unknown, "no case is named \"03r\"; --only takes: 01, 04");
        assert!(options.chosen("03r") && options.all_known().is_ok());
        let (dir, json) = ("/x".into(), Some("y".into()));
        assert_eq!((options.dir, options.json), (dir, json));
        let line = "beyond-memory --mib 64 --memory-mib 0 --peers lmdb";
        let options = parsed(line).unwrap().unwrap();
        assert_eq!(options.suite, Suite::BeyondMemory);
        assert_eq!((options.mib, options.memory_mib), (64, 0));
        assert_eq!(options.peers, ["lmdb"]);
        let line =
            "flespi --only topics --topics 100 --batch 50 --seconds 2 --messages 7 --documents 9";
        let options = parsed(line).unwrap().unwrap();
        assert_eq!((options.suite, options.mib), (Suite::Flespi, 1024));
        let sizes = [options.topics, options.batch, options.seconds];
        assert_eq!((sizes, options.messages), ([100, 50, 2], 7));
        assert_eq!(options.documents, 9);
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(parsed("").unwrap().is_none());
        assert!(parsed("harlinn --help").unwrap().is_none());
        for bad in [
            "other",
            "harlinn --points",
            "harlinn --points 0",
            "harlinn --fast 1",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
