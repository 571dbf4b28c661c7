//! The command line.

/// A part of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Tsbs,
    Load,
    Tpch,
    Typed,
}

/// The parts by name, in the order in which they run.
const PARTS: [(&str, Part); 4] = [
    ("tsbs", Part::Tsbs),
    ("load", Part::Load),
    ("tpch", Part::Tpch),
    ("typed", Part::Typed),
];

const USAGE: &str = "the options are --only tsbs|load|tpch|typed, --hosts N, --hours N, --rounds N, --scale X, --rows N, --peers";

/// The size of the measurement.
pub(crate) struct Options {
    /// The parts that run; all by default.
    pub(crate) parts: Vec<Part>,
    /// Number of hosts of the time series.
    pub(crate) hosts: usize,
    /// Number of hours of the time series.
    pub(crate) hours: usize,
    /// Number of runs of each query of time series; each run selects other hosts and another interval.
    pub(crate) rounds: usize,
    /// Number of runs of each query of TPC-H.
    pub(crate) tpch_rounds: usize,
    /// The scale factor of TPC-H; at 1 the CSV files have 1 GB.
    pub(crate) scale: f64,
    /// Number of rows of the typed table.
    pub(crate) rows: usize,
    /// Whether the peers are also measured.
    pub(crate) peers: bool,
}

impl Options {
    /// Parses the arguments. `--only` may be given several times; `--rounds` sets both numbers of rounds.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            parts: Vec::new(),
            hosts: 100,
            hours: 72,
            rounds: 30,
            tpch_rounds: 5,
            scale: 0.1,
            rows: 1_000_000,
            peers: false,
        };
        while let Some(argument) = arguments.next() {
            let mut text = || arguments.next().unwrap_or_default();
            let mut number = || {
                let text = text();
                let number = text.parse().ok().filter(|&number| number > 0);
                number.ok_or_else(|| format!("{argument} {text}: give a number above 0"))
            };
            match argument.as_str() {
                "--hosts" => options.hosts = number()?,
                "--hours" => options.hours = number()?,
                "--rounds" => {
                    options.rounds = number()?;
                    options.tpch_rounds = options.rounds;
                }
                "--rows" => options.rows = number()?,
                "--scale" => {
                    let text = text();
                    let scale = text.parse().ok().filter(|&scale: &f64| scale > 0.0);
                    options.scale =
                        scale.ok_or_else(|| format!("--scale {text}: give a number above 0"))?;
                }
                "--only" => {
                    let name = text();
                    let part = PARTS.iter().find(|part| part.0 == name);
                    let part = part.ok_or_else(|| format!("--only {name}: {USAGE}"))?;
                    options.parts.push(part.1);
                }
                "--peers" => options.peers = true,
                other => return Err(format!("{other}: {USAGE}")),
            }
        }
        if options.parts.is_empty() {
            options.parts = PARTS.iter().map(|part| part.1).collect();
        }
        // The longest interval of a query is half a day.
        options.hours = options.hours.max(13);
        options.hosts = options.hosts.max(8);
        // The typed table is measured in samples of at least ten rows.
        options.rows = options.rows.max(100);
        Ok(options)
    }
}
