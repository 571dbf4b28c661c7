//! The rows: every 10 s, each host reports ten integers between 0 and 100, which follow random walks.

use crate::options::Options;
use tidalite_testkit::rng::Rng;

/// The columns.
pub(crate) const COLUMNS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];

/// The first time, in seconds since 1970: 2016-01-01.
pub(crate) const BEGIN: i64 = 1_451_606_400;

/// Seconds between two rows of a host.
pub(crate) const STEP: i64 = 10;

/// The region of a host.
pub(crate) fn region(host: usize) -> &'static str {
    ["eu-west-1", "us-east-1", "ap-south-1", "sa-east-1"][host % 4]
}

/// Calls `each` with the rows of a host: the time in seconds, and the values.
pub(crate) fn rows(
    options: &Options,
    host: usize,
    mut each: impl FnMut(i64, &[i64; 10]) -> tidalite::Result<()>,
) -> tidalite::Result<()> {
    let mut rng = Rng::new(host as u64 + 1);
    let mut state: [f64; 10] = std::array::from_fn(|_| rng.below(100) as f64);
    for row in 0..options.hours as i64 * 3600 / STEP {
        let mut values = [0; 10];
        for (value, state) in values.iter_mut().zip(&mut state) {
            // The sum of twelve uniform random numbers has approximately a normal distribution with standard deviation
            // one.
            let normal: f64 = (0..12)
                .map(|_| rng.below(1 << 20) as f64 / f64::from(1 << 20))
                .sum::<f64>()
                - 6.0;
            *state = (*state + normal).clamp(0.0, 100.0);
            *value = state.floor() as i64;
        }
        each(BEGIN + row * STEP, &values)?;
    }
    Ok(())
}

/// The values of all rows, by host.
pub(crate) fn all(options: &Options) -> tidalite::Result<Vec<Vec<[i64; 10]>>> {
    let host = |host| {
        let mut values = Vec::with_capacity(options.hours * 3600 / STEP as usize);
        rows(options, host, |_, row| {
            values.push(*row);
            Ok(())
        })?;
        Ok(values)
    };
    (0..options.hosts).map(host).collect()
}
