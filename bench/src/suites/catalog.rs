//! `catalog`: many series with ten points each. Measures writing them, and finding them by their tags.
//!
//! | case | |
//! |---|---|
//! | `write` | series/s: created with ten points each, durable transactions of 10,000 series |
//! | `bytes` | file bytes for each point |
//! | `memory` | MiB of anonymous memory of the process, the greatest after a commit |
//! | `open` | ms to open the file and begin to read |
//! | `one` | us to find one series by metric and host |
//! | `host` | us to find the four series of a host |
//! | `in` | us to find ten series by a list of hosts |
//! | `prefix` | us to find the series of a metric whose host begins with a text, up to 111 |
//! | `rack` | us to find the 1,000 series of a rack |
//! | `not` | us to find the 250 series of a metric in a rack, without a host |
//! | `regex` | ns for each host to find the series of a metric by an expression that few hosts match |
//! | `latest` | us for each series to find the series of a rack and read their newest points |
//! | `named` | us to open a series by its name and compute the mean of its points |
//! | `suggest` | us to list ten hosts that begin with a text |
//!
//! Series have a metric and the tags host, rack and region; a host has four metrics, and a rack 1,000 series. SQLite
//! has a table of series with an index for each tag, and a table of points. Answers are counted and compared.

use std::path::Path;
use std::time::Instant;

use rusqlite::{Connection, params, params_from_iter};
use tidalite::{Database, Durability, ReadTxn, Steps};

use crate::args::Options;
use crate::engine::Result;
use crate::engine::data::Random;
use crate::os;
use crate::report::Line;

const POINTS: i64 = 10;
const METRICS: u64 = 4;
const RACK: u64 = 1000;
const REGIONS: u64 = 10;
/// Number of series in a transaction.
const EACH: u64 = 10_000;
/// Number of times that each question is asked, for random hosts and racks.
const ASKED: u64 = 200;

/// The tags of a series.
struct Series {
    metric: u64,
    host: u64,
    rack: u64,
}

impl Series {
    fn numbered(number: u64) -> Self {
        Self {
            metric: number % METRICS,
            host: number / METRICS,
            rack: number / RACK,
        }
    }

    fn name(&self) -> String {
        let Self { metric, host, rack } = self;
        let region = rack % REGIONS;
        format!(r#"m{metric}{{host="h{host}",rack="r{rack}",region="g{region}"}}"#)
    }

    fn value(&self, time: i64) -> f64 {
        (self.host % 100) as f64 + time as f64 / 4.0
    }
}

/// A question about series.
enum Question {
    One(Series),
    Host(u64),
    In(u64, Vec<u64>),
    Prefix(u64, String),
    Rack(u64),
    Not(Series),
    Regex(u64),
}

/// A database of series.
trait Store {
    /// Creates series and writes their points, in one durable transaction.
    fn write(&mut self, series: std::ops::Range<u64>) -> Result<()>;
    /// Number of series that a question selects.
    fn find(&mut self, question: &Question) -> Result<u64>;
    /// Sum of the newest values of the series of a rack.
    fn latest(&mut self, rack: u64) -> Result<f64>;
    /// Mean of the points of a series.
    fn mean(&mut self, series: &Series) -> Result<f64>;
    /// The first ten hosts that begin with a text.
    fn suggest(&mut self, prefix: &str) -> Result<Vec<String>>;
}

struct Ours {
    db: Database,
    snapshot: Option<ReadTxn>,
}

impl Ours {
    fn open(dir: &Path) -> Result<Self> {
        let db = Database::open(dir.join("catalog.tdl"))?;
        let snapshot = Some(db.begin_read()?);
        Ok(Self { db, snapshot })
    }

    fn snapshot(&self) -> Result<&ReadTxn> {
        self.snapshot.as_ref().ok_or_else(|| "no snapshot".into())
    }
}

impl Store for Ours {
    fn write(&mut self, series: std::ops::Range<u64>) -> Result<()> {
        self.snapshot = None;
        let mut txn = self.db.begin_write()?;
        for number in series {
            let series = Series::numbered(number);
            let mut open = txn.series(&series.name())?;
            for time in 0..POINTS {
                open.insert_point(Steps(time * 1_000_000_000), 0, series.value(time))?;
            }
        }
        txn.commit_with(Durability::Durable)?;
        self.snapshot = Some(self.db.begin_read()?);
        Ok(())
    }

    fn find(&mut self, question: &Question) -> Result<u64> {
        let pattern = match question {
            Question::One(series) => format!(r#"m{}{{host="h{}"}}"#, series.metric, series.host),
            Question::Host(host) => format!(r#"{{host="h{host}"}}"#),
            Question::In(metric, hosts) => {
                let hosts: Vec<_> = hosts.iter().map(|host| format!(r#""h{host}""#)).collect();
                format!("m{metric}{{host in ({})}}", hosts.join(","))
            }
            Question::Prefix(metric, prefix) => format!(r#"m{metric}{{host="{prefix}"*}}"#),
            Question::Rack(rack) => format!(r#"{{rack="r{rack}"}}"#),
            Question::Not(series) => {
                let Series { metric, host, rack } = series;
                format!(r#"m{metric}{{rack="r{rack}",host!="h{host}"}}"#)
            }
            Question::Regex(metric) => format!(r#"m{metric}{{host=~"h.*77.*5.*1"}}"#),
        };
        Ok(self.snapshot()?.list(&pattern)?.len() as u64)
    }

    fn latest(&mut self, rack: u64) -> Result<f64> {
        let selection = self.snapshot()?.select(&format!(r#"{{rack="r{rack}"}}"#))?;
        let rows = selection.latest()?.into_iter().flatten();
        Ok(rows.map(|row| f64::from_bits(row.words[1])).sum())
    }

    fn mean(&mut self, series: &Series) -> Result<f64> {
        let open = self.snapshot()?.series(&series.name())?;
        let open = open.ok_or("no such series")?;
        Ok(open
            .query(..)
            .aggregate("value")?
            .mean()
            .unwrap_or_default())
    }

    fn suggest(&mut self, prefix: &str) -> Result<Vec<String>> {
        let values = self.snapshot()?.tag_values("host", prefix, 10)?;
        Ok(values.into_iter().map(|value| value.text).collect())
    }
}

struct Sqlite(Connection);

impl Sqlite {
    fn open(dir: &Path) -> Result<Self> {
        let connection = Connection::open(dir.join("catalog.sqlite"))?;
        connection.execute_batch(
            "pragma journal_mode=wal; pragma synchronous=full; pragma mmap_size=68719476736;
             create table if not exists series(id integer primary key, metric text, host text, rack text, region text);
             create index if not exists by_metric on series(metric, host);
             create index if not exists by_host on series(host);
             create index if not exists by_rack on series(rack);
             create index if not exists by_region on series(region);
             create table if not exists points(series integer, time integer, value real, primary key(series, time))
             without rowid;",
        )?;
        Ok(Self(connection))
    }
}

impl Store for Sqlite {
    fn write(&mut self, series: std::ops::Range<u64>) -> Result<()> {
        let txn = self.0.transaction()?;
        {
            let mut create = txn.prepare_cached("insert into series values(?,?,?,?,?)")?;
            let mut point = txn.prepare_cached("insert into points values(?,?,?)")?;
            for number in series {
                let Series { metric, host, rack } = Series::numbered(number);
                create.execute(params![
                    number as i64,
                    format!("m{metric}"),
                    format!("h{host}"),
                    format!("r{rack}"),
                    format!("g{}", rack % REGIONS)
                ])?;
                for time in 0..POINTS {
                    let value = Series::numbered(number).value(time);
                    point.execute(params![number as i64, time * 1_000_000_000, value])?;
                }
            }
        }
        txn.commit()?;
        Ok(())
    }

    fn find(&mut self, question: &Question) -> Result<u64> {
        const SELECT: &str = "select id, metric, host, rack, region from series where ";
        let (condition, texts) = match question {
            Question::One(series) => (
                "metric=? and host=?".to_owned(),
                vec![format!("m{}", series.metric), format!("h{}", series.host)],
            ),
            Question::Host(host) => ("host=?".to_owned(), vec![format!("h{host}")]),
            Question::In(metric, hosts) => {
                let marks = vec!["?"; hosts.len()].join(",");
                let mut texts = vec![format!("m{metric}")];
                texts.extend(hosts.iter().map(|host| format!("h{host}")));
                (format!("metric=? and host in ({marks})"), texts)
            }
            Question::Prefix(metric, prefix) => (
                "metric=? and host>=? and host<?".to_owned(),
                vec![format!("m{metric}"), prefix.clone(), format!("{prefix}:")],
            ),
            Question::Rack(rack) => ("rack=?".to_owned(), vec![format!("r{rack}")]),
            Question::Not(series) => (
                "metric=? and rack=? and host<>?".to_owned(),
                vec![
                    format!("m{}", series.metric),
                    format!("r{}", series.rack),
                    format!("h{}", series.host),
                ],
            ),
            // SQLite has no regular expressions; this glob selects the same hosts.
            Question::Regex(metric) => (
                "metric=? and host glob ?".to_owned(),
                vec![format!("m{metric}"), "h*77*5*1".to_owned()],
            ),
        };
        let mut query = self.0.prepare_cached(&format!("{SELECT}{condition}"))?;
        let mut rows = query.query(params_from_iter(texts))?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            std::hint::black_box((row.get::<_, i64>(0)?, row.get_ref(2)?.as_str()?.len()));
            count += 1;
        }
        Ok(count)
    }

    fn latest(&mut self, rack: u64) -> Result<f64> {
        let mut query = self.0.prepare_cached(
            "select sum((select value from points where series=id order by time desc limit 1))
             from series where rack=?",
        )?;
        Ok(query.query_row([format!("r{rack}")], |row| row.get(0))?)
    }

    fn mean(&mut self, series: &Series) -> Result<f64> {
        let mut query = self.0.prepare_cached(
            "select avg(value) from points where series=(select id from series where metric=? and host=?)",
        )?;
        let texts = [format!("m{}", series.metric), format!("h{}", series.host)];
        Ok(query.query_row(texts, |row| row.get(0))?)
    }

    fn suggest(&mut self, prefix: &str) -> Result<Vec<String>> {
        let mut query = self.0.prepare_cached(
            "select distinct host from series where host>=? and host<? order by host limit 10",
        )?;
        let rows = query.query_map([prefix.to_owned(), format!("{prefix}:")], |row| row.get(0))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    }
}

/// The measured values of each case, and the answers. Both stores must give the same answers.
#[derive(Default)]
struct Measured {
    values: Vec<(&'static str, &'static str, f64)>,
    answers: Vec<String>,
}

/// Runs the suite.
pub(crate) fn run(options: &Options) -> Result<Vec<Line>> {
    let with_peer = options.peers.is_empty() || options.peers.iter().any(|peer| peer == "sqlite");
    let mut rounds: [Vec<Measured>; 2] = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        for turn in 0..2 {
            let at = (turn + round) % 2;
            if at == 1 && !with_peer {
                continue;
            }
            let dir = os::TempDir::within(&options.dir, "catalog")?;
            let open = |dir: &Path| -> Result<Box<dyn Store>> {
                Ok(if at == 0 {
                    Box::new(Ours::open(dir)?)
                } else {
                    Box::new(Sqlite::open(dir)?)
                })
            };
            let measured = measure(&open, dir.path(), options)?;
            let name = ["tidalite", "sqlite"][at];
            for (case, unit, value) in &measured.values {
                eprintln!("  {case:<8} {name:<9} {value:>12.3} {unit}");
            }
            rounds[at].push(measured);
        }
    }
    let [ours, theirs] = &rounds;
    if let (Some(ours), Some(theirs)) = (ours.first(), theirs.first())
        && ours.answers != theirs.answers
    {
        let wrong = ours
            .answers
            .iter()
            .zip(&theirs.answers)
            .find(|(a, b)| a != b);
        return Err(format!("answers differ: {wrong:?}").into());
    }
    let cases = ours.first().map(|measured| &measured.values[..]);
    let lines = cases.unwrap_or_default().iter().enumerate();
    Ok(lines
        .map(|(at, (case, unit, _))| {
            let all = |rounds: &[Measured]| rounds.iter().map(|all| all.values[at].2).collect();
            Line {
                suite: "catalog",
                case: (*case).to_owned(),
                unit,
                peer: if with_peer { "sqlite" } else { "" },
                ours: all(ours),
                theirs: all(theirs),
                less_is_better: *case != "write",
            }
        })
        .collect())
}

fn measure(
    open: &dyn Fn(&Path) -> Result<Box<dyn Store>>,
    dir: &Path,
    options: &Options,
) -> Result<Measured> {
    // The number of series is a multiple of a rack, so that each rack has its 1,000 series.
    let count = options.series.div_ceil(RACK) * RACK;
    let mut measured = Measured::default();
    let mut store = open(dir)?;
    let (begin, mut memory) = (Instant::now(), 0.0_f64);
    let mut first = 0;
    while first < count {
        let end = (first + EACH).min(count);
        store.write(first..end)?;
        memory = memory.max(os::memory_anonymous() as f64 / f64::from(1 << 20));
        first = end;
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    measured.values.push(("write", "series/s", rate));
    drop(store);
    let bytes = os::disk_used(dir)? as f64 / (count * POINTS as u64) as f64;
    measured.values.push(("bytes", "bytes", bytes));
    measured.values.push(("memory", "MiB", memory));
    let begin = Instant::now();
    let mut store = open(dir)?;
    let elapsed = begin.elapsed().as_secs_f64();
    measured.values.push(("open", "ms", elapsed * 1e3));
    ask_all(&mut *store, count, options, &mut measured)?;
    Ok(measured)
}

/// Asks questions and counts the series found.
fn find(
    of: impl Fn(&mut Random) -> Question,
) -> impl Fn(&mut dyn Store, &mut Random) -> Result<String> {
    move |store, random| Ok(store.find(&of(random))?.to_string())
}

fn ask_all(
    store: &mut dyn Store,
    count: u64,
    options: &Options,
    measured: &mut Measured,
) -> Result<()> {
    let hosts = count / METRICS;
    let series = |random: &mut Random| Series::numbered(random.below(count));
    let host_prefix = |random: &mut Random| {
        let host = format!("h{}", random.below(hosts));
        host[..host.len().saturating_sub(2).max(2)].to_owned()
    };
    type Ask<'a> = &'a dyn Fn(&mut dyn Store, &mut Random) -> Result<String>;
    let one = |random: &mut Random| Question::One(series(random));
    let host = |random: &mut Random| Question::Host(random.below(hosts));
    let list = |random: &mut Random| {
        let mut list: Vec<u64> = (0..10).map(|_| random.below(hosts)).collect();
        list.sort_unstable();
        list.dedup();
        Question::In(1, list)
    };
    let prefix = |random: &mut Random| Question::Prefix(2, host_prefix(random));
    let rack = |random: &mut Random| Question::Rack(random.below(count / RACK));
    let not = |random: &mut Random| Question::Not(series(random));
    let latest = |store: &mut dyn Store, random: &mut Random| -> Result<String> {
        Ok(store.latest(random.below(count / RACK))?.to_string())
    };
    let mean = |store: &mut dyn Store, random: &mut Random| -> Result<String> {
        Ok(store.mean(&series(random))?.to_string())
    };
    let suggest = |store: &mut dyn Store, random: &mut Random| -> Result<String> {
        Ok(store.suggest(&host_prefix(random))?.join(" "))
    };
    let regex = |_: &mut Random| Question::Regex(3);
    let (one, host, list, prefix) = (find(one), find(host), find(list), find(prefix));
    let (rack, not, regex) = (find(rack), find(not), find(regex));
    // The times are in microseconds for each question; for some cases they are for each of several items instead.
    let cases: [(&'static str, &'static str, f64, u64, Ask<'_>); 10] = [
        ("one", "us", 1.0, ASKED, &one),
        ("host", "us", 1.0, ASKED, &host),
        ("in", "us", 1.0, ASKED, &list),
        ("prefix", "us", 1.0, ASKED, &prefix),
        ("rack", "us", 1.0, ASKED, &rack),
        ("not", "us", 1.0, ASKED, &not),
        ("regex", "ns", 1e3 / hosts as f64, 3, &regex),
        ("latest", "us", 1.0 / RACK as f64, ASKED, &latest),
        ("named", "us", 1.0, 10 * ASKED, &mean),
        ("suggest", "us", 1.0, ASKED, &suggest),
    ];
    for (case, unit, scale, times, ask) in cases {
        if !options.chosen(case) {
            continue;
        }
        // The first pass warms the caches with the same questions.
        let mut seconds = 0.0;
        for pass in 0..2 {
            let mut random = Random::new(7);
            let begin = Instant::now();
            for _ in 0..times {
                let answer = ask(store, &mut random)?;
                if pass == 0 {
                    measured.answers.push(format!("{case}: {answer}"));
                }
            }
            seconds = begin.elapsed().as_secs_f64();
        }
        let value = seconds / times as f64 * 1e6 * scale;
        measured.values.push((case, unit, value));
    }
    Ok(())
}
