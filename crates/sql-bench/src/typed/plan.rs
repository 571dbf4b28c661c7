//! The rows, and the number of rows and statements in each measurement.

/// Number of rows of a site.
const SITE_ROWS: u64 = 100;

/// Statement `n` uses the id `n` times this number, modulo the number of rows.
const SCATTER: u64 = 0x9E37_79B1;

/// Number of different rated powers. They are multiples of a quarter, so their sums are exact.
const RATINGS: u64 = 97;

/// Names of the measurements; the Python program prints the same names.
pub(crate) const ARROW: &str = "load of Arrow batches (SQLite: executemany)";
pub(crate) const INDEX: &str = "CREATE INDEX on site";
pub(crate) const INSERT: &str = "INSERT with parameters, one transaction";
pub(crate) const DURABLE_INSERT: &str = "INSERT with parameters, a durable transaction each";
pub(crate) const EMPTY: &str = "SELECT of a parameter, which reads nothing";
pub(crate) const SELECT: &str = "SELECT by key, parameter";
pub(crate) const SELECT_ONE: &str = "SELECT by key, parameter, one thread";
pub(crate) const SELECT_TWO: &str = "SELECT by key, parameter, two threads";
pub(crate) const SELECT_TEXT: &str = "SELECT by key, key in the text";
pub(crate) const SELECT_SITE: &str = "SELECT by index, 100 rows";
pub(crate) const UPDATE: &str = "UPDATE by key, one transaction";
pub(crate) const DURABLE_UPDATE: &str = "UPDATE by key, a durable transaction each";

/// Numbers of rows and statements.
pub(crate) struct Plan {
    /// Rows that are loaded first; their ids begin at 0.
    pub(crate) rows: u64,
    /// Rows that are inserted in one transaction. Their ids follow the ids of the loaded rows.
    pub(crate) inserts: u64,
    /// Statements that are planned or committed individually: durable inserts, updates, selects by index and by text.
    pub(crate) singles: u64,
    /// Selects by key with a parameter, for each thread.
    pub(crate) selects: u64,
}

impl Plan {
    pub(crate) fn new(rows: usize) -> Self {
        let rows = rows as u64;
        Self {
            rows,
            inserts: rows / 10,
            singles: (rows / 1000).clamp(10, 1000),
            selects: (rows / 20).clamp(10, 50_000),
        }
    }

    /// The arguments of the program in Python.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let numbers = [
            ("rows", self.rows),
            ("inserts", self.inserts),
            ("singles", self.singles),
            ("selects", self.selects),
            ("sites", self.sites()),
            ("scatter", SCATTER),
            ("ratings", RATINGS),
        ];
        let argument = |(name, number)| format!("{name}={number}");
        numbers.into_iter().map(argument).collect()
    }

    /// Number of sites.
    pub(crate) fn sites(&self) -> u64 {
        (self.rows / SITE_ROWS).max(1)
    }

    /// The site of a row.
    pub(crate) fn site(&self, id: u64) -> String {
        format!("site {}", id % self.sites())
    }

    /// The id for a statement: scattered over the loaded rows.
    pub(crate) fn scattered(&self, number: u64) -> u64 {
        number.wrapping_mul(SCATTER) % self.rows
    }
}

/// The rated power of a row.
pub(crate) fn rated(id: u64) -> f64 {
    (id % RATINGS) as f64 / 4.0
}

/// The name of a row.
pub(crate) fn name(id: u64) -> String {
    format!("turbine {id}")
}
