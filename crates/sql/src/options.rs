//! Options of a connection.

use tidalite::Durability;

/// Options of a [`Connection`](crate::Connection).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionOptions {
    /// Maximum number of bytes that the operators of a query (sorts, hash tables, joins) may hold in memory. Sorts,
    /// aggregates and some joins that need more write to temporary files; other operators end with an error of kind
    /// [`ErrorKind::Memory`](crate::ErrorKind::Memory). The default is 1 GiB.
    pub memory_bytes: usize,
    /// Maximum number of threads of a query; the number of cores by default.
    pub threads: usize,
    /// Whether aggregates are computed from the statistics in the trees where these suffice; true by default. If false,
    /// all rows are read, which gives the same results more slowly. This is meant for comparisons.
    pub use_statistics: bool,
    /// Whether statements may read and write files: `SELECT * FROM 'data.parquet'`, `COPY`; true by default.
    pub files: bool,
    /// Durability of commits; [`Durability::Durable`] by default.
    pub durability: Durability,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            use_statistics: true,
            files: true,
            durability: Durability::Durable,
        }
    }
}
