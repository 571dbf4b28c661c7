//! The command line.

/// The size of the measurement.
pub(crate) struct Options {
    pub(crate) hosts: usize,
    pub(crate) hours: usize,
    /// How often each query is run, each time for other hosts and another interval.
    pub(crate) rounds: usize,
    /// Whether DuckDB and SQLite are measured, too.
    pub(crate) peers: bool,
}

impl Options {
    /// Reads `--hosts N --hours N --rounds N --peers`.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            hosts: 100,
            hours: 72,
            rounds: 30,
            peers: false,
        };
        while let Some(argument) = arguments.next() {
            let mut number = || {
                let text = arguments.next().unwrap_or_default();
                let number = text.parse().ok().filter(|&number| number > 0);
                number.ok_or_else(|| format!("{argument} {text}: give a number above 0"))
            };
            match argument.as_str() {
                "--hosts" => options.hosts = number()?,
                "--hours" => options.hours = number()?,
                "--rounds" => options.rounds = number()?,
                "--peers" => options.peers = true,
                other => {
                    return Err(format!(
                        "{other}: the options are --hosts N, --hours N, --rounds N, --peers"
                    ));
                }
            }
        }
        // The longest interval of a query is half a day.
        options.hours = options.hours.max(13);
        options.hosts = options.hosts.max(8);
        Ok(options)
    }
}
