//! The two record types and the data sets: the simple data of the published benchmark `harlinn`, and data that is
//! harder to compress for each type.
//!
//! | set | time, 100-ns ticks | rest |
//! |---|---|---|
//! | `NN` | 1, 2, 3, .. | flags 0, value = time; trades: both ids, volume and price = time |
//! | `NNr` | += 1 s + uniform 0-999 us | value += uniform -0.50..0.50, at two decimals |
//! | `06r` | the same | ids rise by 1-16; volume 1-1000, whole; price += uniform -50..50 of 1/10,000 |

/// The point type of the published benchmark: 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Reading {
    pub(crate) time: i64,
    pub(crate) flags: i64,
    pub(crate) value: f64,
}

/// The trade type of the published benchmark: 40 bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Trade {
    pub(crate) time: i64,
    pub(crate) bid: u64,
    pub(crate) offer: u64,
    pub(crate) volume: f64,
    /// Price of the trade, in units of 1/10,000.
    pub(crate) price: i64,
}

crate::lmdb_engine::plain_words!(Reading, 3, time);
crate::lmdb_engine::plain_words!(Trade, 5, time);

/// A data set: a source of records in time order for each series.
pub(crate) trait Source<P> {
    /// The next `count` records of a series, of which `from` records were returned before.
    fn records(&mut self, series: usize, from: u64, count: u64) -> impl Iterator<Item = P>;
}

/// The simple data of the published benchmark, in which all values count up.
pub(crate) struct Counting;

impl Source<Reading> for Counting {
    #[inline]
    fn records(&mut self, _: usize, from: u64, count: u64) -> impl Iterator<Item = Reading> {
        (from as i64 + 1..(from + count) as i64 + 1).map(|n| Reading {
            time: n,
            flags: 0,
            value: n as f64,
        })
    }
}

impl Source<Trade> for Counting {
    #[inline]
    fn records(&mut self, _: usize, from: u64, count: u64) -> impl Iterator<Item = Trade> {
        (from as i64 + 1..(from + count) as i64 + 1).map(|n| Trade {
            time: n,
            bid: n as u64,
            offer: n as u64,
            volume: n as f64,
            price: n,
        })
    }
}

/// The data set that is harder to compress: random walks, with one state for each series.
pub(crate) struct Walks(Vec<Walk>);

#[derive(Clone, Copy)]
struct Walk {
    random: u64,
    time: i64,
    /// The current value in hundredths, or the current price in 1/10,000.
    level: i64,
    bid: u64,
    offer: u64,
}

/// The day of the trades in the published benchmark, 2020-10-01, in ticks of 100 ns since year 1.
const START_TICKS: i64 = 637_371_072_000_000_000;
const TICKS_PER_US: i64 = 10;
const TICKS_PER_S: i64 = 10_000_000;

impl Walks {
    /// Creates random walks for this many series, all from one seed.
    pub(crate) fn new(seed: u64, series: usize) -> Self {
        let mut state = seed;
        let walk = |_| Walk {
            random: splitmix(&mut state),
            time: START_TICKS,
            level: 1_000_000,
            bid: 0,
            offer: 0,
        };
        Self((0..series).map(walk).collect())
    }
}

impl Walk {
    /// Advances the time of the walk; returns the 32 random bits that are left.
    #[inline]
    fn tick(&mut self) -> u64 {
        let random = splitmix(&mut self.random);
        let us = below(random >> 32, 1000) as i64;
        self.time += TICKS_PER_S + us * TICKS_PER_US;
        random & 0xffff_ffff
    }
}

impl Source<Reading> for Walks {
    #[inline]
    fn records(&mut self, series: usize, _: u64, count: u64) -> impl Iterator<Item = Reading> {
        let walk = &mut self.0[series];
        (0..count).map(move |_| {
            let random = walk.tick();
            walk.level += below(random, 101) as i64 - 50;
            Reading {
                time: walk.time,
                flags: 0,
                value: walk.level as f64 / 100.0,
            }
        })
    }
}

impl Source<Trade> for Walks {
    #[inline]
    fn records(&mut self, series: usize, _: u64, count: u64) -> impl Iterator<Item = Trade> {
        let walk = &mut self.0[series];
        (0..count).map(move |_| {
            let random = walk.tick();
            let ids = splitmix(&mut walk.random);
            walk.bid += 1 + (ids & 15);
            walk.offer += 1 + (ids >> 4 & 15);
            walk.level += below(ids >> 32, 101) as i64 - 50;
            let volume = (1 + below(random, 1000)) as f64;
            Trade {
                time: walk.time,
                bid: walk.bid,
                offer: walk.offer,
                volume,
                price: walk.level,
            }
        })
    }
}

/// Converts 32 random bits to a number below `n`.
#[inline]
fn below(bits: u64, n: u64) -> u64 {
    (bits * n) >> 32
}

/// The random number generator splitmix64 of Sebastiano Vigna: advances the state and returns 64 random bits.
#[inline]
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<P>(source: &mut impl Source<P>, series: usize) -> Vec<P> {
        source.records(series, 0, 10_000).collect()
    }

    #[test]
    fn the_hard_set_is_as_described_and_does_not_depend_on_the_batches() {
        let whole: Vec<Reading> = all(&mut Walks::new(1, 3), 1);
        let mut source = Walks::new(1, 3);
        let mut parts: Vec<Reading> = Vec::new();
        for from in (0..10_000).step_by(250) {
            let _ = Source::<Reading>::records(&mut source, 0, from, 250).count();
            parts.extend(Source::<Reading>::records(&mut source, 1, from, 250));
        }
        assert_eq!(whole, parts);
        let (mut steps, mut moves) = (Vec::new(), Vec::new());
        for pair in whole.windows(2) {
            steps.push(pair[1].time - pair[0].time - TICKS_PER_S);
            moves.push(((pair[1].value - pair[0].value) * 100.0).round() as i64);
            let cents = pair[1].value * 100.0;
            assert_eq!((cents.round() / 100.0).to_bits(), pair[1].value.to_bits());
        }
        assert!(steps.iter().all(|s| s % 10 == 0));
        assert_eq!(
            (steps.iter().min(), steps.iter().max()),
            (Some(&0), Some(&9990))
        );
        assert_eq!(
            (moves.iter().min(), moves.iter().max()),
            (Some(&-50), Some(&50))
        );
    }

    #[test]
    fn trades_rise_and_walk() {
        let trades: Vec<Trade> = all(&mut Walks::new(1, 1), 0);
        for pair in trades.windows(2) {
            assert!(pair[1].time > pair[0].time);
            assert!((1..=16).contains(&(pair[1].bid - pair[0].bid)));
            assert!((1..=16).contains(&(pair[1].offer - pair[0].offer)));
            assert!((-50..=50).contains(&(pair[1].price - pair[0].price)));
            assert!((1.0..=1000.0).contains(&pair[1].volume) && pair[1].volume.fract() == 0.0);
        }
    }
}
