//! Operations that append to series in round robin, one row at a time. A transaction can use other threads to encode
//! such rows (`Options::flush_threads`).
//!
//! The content of the file does not depend on the number of threads or on the size of the write buffer. The positions
//! of pages do, because pages are allocated in the order in which threads finish. So a run in which the seed must
//! determine every write does not use these operations, and a run with helper threads is judged as it was recorded.

use super::names::{SERIES, series_name, value_of};
use super::points::series;
use super::tables::put;
use crate::model::Model;
use tidalite::{Result, Steps, WriteTxn};
use tidalite_testkit::rng::Rng;

/// Size in bytes of the write buffer at which it is flushed: with two series in turn, each has more rows than a vector
/// by then.
pub(crate) const WRITE_BUFFER_BYTES: usize = 64 << 10;
/// Range of the number of rounds over two series: enough rows to fill the write buffer.
const ROUNDS: (i64, i64) = (1_500, 1_800);
/// Upper bound of start times; small, so that times may exist already and contents stay small.
const START_MAX: i64 = 600;

/// Appends rows to two series in turn, enough to fill the write buffer.
///
/// # Errors
/// An error of the database.
pub(crate) fn feed(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let names = [SERIES, SERIES + 1].map(series_name);
    let start = rng.between(0, START_MAX);
    let rounds = rng.between(ROUNDS.0, ROUNDS.1);
    let mut ids = Vec::new();
    for name in &names {
        next.series.entry(name.clone()).or_default();
        ids.push(series(tx, name)?.id());
    }
    for time in start..start + rounds {
        let value = value_of(rng);
        for (name, &id) in names.iter().zip(&ids) {
            tx.series_by_id(id)?.insert_point(Steps(time), 0, value)?;
            let rows = next.series.entry(name.clone()).or_default();
            rows.insert(time, vec![[0, value.to_bits()]]);
        }
        // In between, the transaction also allocates pages for another table.
        if rng.one_in(600) {
            put(tx, next, rng)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{WRITE_BUFFER_BYTES, feed};
    use crate::model::{Model, digest_of};
    use crate::workload::script::small_tuning;
    use std::sync::Arc;
    use tidalite::Options;
    use tidalite::storage::MemoryStorage;
    use tidalite_testkit::rng::Rng;

    #[test]
    fn helpers_encode_and_rows_equal_the_model() {
        tidalite_testkit::watch();
        for threads in [0, 2] {
            let options = Options::new()
                .flush_threads(threads)
                .tuning(small_tuning().write_buffer_bytes(WRITE_BUFFER_BYTES));
            let db = options
                .open_storage(Arc::new(MemoryStorage::new()))
                .unwrap();
            let (mut model, mut rng) = (Model::default(), Rng::new(7));
            for round in 0..3 {
                let mut tx = db.begin_write().unwrap();
                feed(&mut tx, &mut model, &mut rng).unwrap();
                // Helper threads encode rows in the first round only: rows of later rounds overlap existing rows.
                if round == 0 {
                    let beside = tx.delta_work().rows_encoded_by_helpers;
                    assert_eq!(beside > 0, threads > 0, "{beside} rows");
                }
                tx.commit().unwrap();
                assert_eq!(digest_of(&db).unwrap(), model.digest());
            }
            assert!(db.check().unwrap().is_clean());
        }
    }
}
