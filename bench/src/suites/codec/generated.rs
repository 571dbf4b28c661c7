//! Generated columns, of the kinds for which the codec performed poorly when it was first tested on unknown data. The
//! tuning half is used for choices in the codec. The judging half has other seeds, parameters and shapes, and is only
//! reported.
//!
//! ```text
//! f32          floats of single precision widened to f64: decimals, readings of a converter, full precision
//! zeros        mostly zero: irradiance, rain, power of a machine
//! direction    wind direction in degrees, tens of degrees and sectors
//! sums         counters that restart: energy and rain of a day
//! small steps  pressure, temperature, humidity, level: a step is a few units
//! alphabet     few distinct values, one of them frequent: states, codes, counts
//! scaled       readings of a converter in decimals, market prices and volumes
//! ```

use super::columns::{Column, Half, Kind};

/// Number of values of a generated column: two leaves of Tidalite.
const VALUES: usize = 32_768;

/// A generator of pseudo-random numbers; the same seed gives the same column everywhere.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A random number at or above 0 and below 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn chance(&mut self, of: f64) -> bool {
        self.unit() < of
    }

    /// A random number with mean 0 and standard deviation 1, approximately normal.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A number with mean 1 and an exponential distribution.
    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

fn rounded(x: f64, digits: i32) -> f64 {
    let power = 10f64.powi(digits);
    let whole = (x * power).round() / power;
    if whole == 0.0 { 0.0 } else { whole }
}

/// A wave from -1 to 1 with a period of `rows`.
fn wave(row: usize, rows: usize) -> f64 {
    (row as f64 / rows as f64 * std::f64::consts::TAU).sin()
}

/// Parameters of a mean-reverting walk: its mean, the fraction of the distance from the mean that remains after each
/// row, the standard deviation of a step, the amplitude of a daily wave, and the number of rows of a day.
#[derive(Clone, Copy)]
struct Walk {
    mean: f64,
    keeps: f64,
    step: f64,
    wave: f64,
    day: usize,
}

fn walk(rng: &mut Rng, of: Walk) -> Vec<f64> {
    let mut off = 0.0;
    (0..VALUES)
        .map(|row| {
            off = off * of.keeps + rng.normal() * of.step;
            of.mean + off + of.wave * wave(row, of.day)
        })
        .collect()
}

fn digits(values: Vec<f64>, digits: i32) -> Vec<f64> {
    values.into_iter().map(|x| rounded(x, digits)).collect()
}

fn narrow(values: Vec<f64>) -> Vec<f64> {
    values.into_iter().map(|x| f64::from(x as f32)).collect()
}

/// Readings of a converter with `counts` steps over its full scale, multiplied in single precision.
fn converted(values: Vec<f64>, scale: f32, counts: f64) -> Vec<f64> {
    let reading = |x: f64| f64::from(x.clamp(0.0, counts).round() as f32 * scale);
    values.into_iter().map(reading).collect()
}

/// Solar radiation: zero at night, and a curve dimmed by clouds in the daytime.
fn sun(rng: &mut Rng, day: usize, peak: f64, places: i32) -> Vec<f64> {
    let (mut cloud, mut cloudy) = (1.0, 0.0);
    (0..VALUES)
        .map(|row| {
            if row % day == 0 {
                cloudy = rng.unit() * 0.5;
            }
            cloud = 1.0 + (cloud - 1.0) * 0.8 + rng.normal() * 0.15 * cloudy;
            let season = 0.15 * wave(row, 365 * day);
            let height =
                (-(row as f64 / day as f64 * std::f64::consts::TAU).cos() + season).max(0.0);
            rounded(peak * height * cloud.clamp(0.05, 1.0), places)
        })
        .collect()
}

/// Rain: zero except for showers that last some rows, with exponential amounts in multiples of `unit`.
fn rain(rng: &mut Rng, begins: f64, lasts: f64, amount: f64, unit: f64) -> Vec<f64> {
    let mut wet = false;
    (0..VALUES)
        .map(|_| {
            wet = rng.chance(if wet { lasts } else { begins });
            let amount = if wet { rng.exponential() * amount } else { 0.0 };
            rounded((amount / unit).round() * unit, 3)
        })
        .collect()
}

/// The power of a machine: off, or near one of a few levels.
fn machine(rng: &mut Rng, stays: f64, levels: &[f64], noise: f64, places: i32) -> Vec<f64> {
    let mut level = 0.0;
    (0..VALUES)
        .map(|_| {
            if !rng.chance(stays) {
                let at = rng.next() as usize % (2 * levels.len());
                level = levels.get(at).copied().unwrap_or(0.0);
            }
            if level == 0.0 {
                return 0.0;
            }
            rounded(level + rng.normal() * noise, places)
        })
        .collect()
}

/// A direction in degrees, a multiple of `unit`, that often stays the same from row to row and turns through north; 0
/// when calm.
fn direction(rng: &mut Rng, unit: f64, same: f64, turn: f64, calm: f64) -> Vec<f64> {
    let mut at = 200.0;
    let mut shown = 200.0;
    (0..VALUES)
        .map(|_| {
            at = (at + rng.normal() * turn).rem_euclid(360.0);
            if !rng.chance(same) {
                shown = rounded((at / unit).round() * unit, 2) % 360.0;
            }
            if rng.chance(calm) { 0.0 } else { shown }
        })
        .collect()
}

/// Running sums of the values, in decimals, that restart every `day` rows.
fn sums(values: &[f64], day: usize, places: i32) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |(row, &x): (usize, &f64)| {
        sum = if row % day == 0 { 0.0 } else { sum } + x;
        rounded(sum, places)
    };
    values.iter().enumerate().map(add).collect()
}

/// Running sums in binary floats, which are not rounded to decimals.
fn plain_sums(values: &[f64], day: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let add = |(row, &x): (usize, &f64)| {
        sum = if row % day == 0 { 0.0 } else { sum } + x;
        sum
    };
    values.iter().enumerate().map(add).collect()
}

/// States that last some rows; `weights` are their relative frequencies.
fn states(rng: &mut Rng, stays: f64, values: &[f64], weights: &[f64]) -> Vec<f64> {
    let all: f64 = weights.iter().sum();
    let mut at = values[0];
    (0..VALUES)
        .map(|_| {
            if !rng.chance(stays) {
                let mut left = rng.unit() * all;
                for (&value, &weight) in values.iter().zip(weights) {
                    at = value;
                    left -= weight;
                    if left < 0.0 {
                        break;
                    }
                }
            }
            at
        })
        .collect()
}

/// Random counts with a geometric distribution and this mean.
fn counts(rng: &mut Rng, mean: f64) -> Vec<f64> {
    (0..VALUES)
        .map(|_| (rng.exponential() * mean).floor())
        .collect()
}

/// Prices whose steps are small for some hundred rows and large for others.
fn market(rng: &mut Rng, price: f64, step: f64, tick: f64, places: i32) -> Vec<f64> {
    let (mut at, mut nervous) = (price, 1.0f64);
    (0..VALUES)
        .map(|_| {
            nervous = (nervous * (1.0 + 0.1 * rng.normal())).clamp(0.2, 6.0);
            nervous += (1.0 - nervous) * 0.01;
            at = (at + rng.normal() * step * nervous).max(price / 4.0);
            rounded((at / tick).round() * tick, places)
        })
        .collect()
}

/// Traded volumes: a wide, skewed distribution in lots.
fn volumes(rng: &mut Rng, mean: f64, lot: f64) -> Vec<f64> {
    (0..VALUES)
        .map(|_| ((rng.normal() * 1.1).exp() * mean / lot).round() * lot)
        .collect()
}

/// Readings of a converter, displayed in decimals: a few thousand distinct values at uneven distances.
fn shown(values: Vec<f64>, scale: f64, places: i32) -> Vec<f64> {
    let reading = |x: f64| rounded(x.round() * scale, places);
    values.into_iter().map(reading).collect()
}

const fn with(mean: f64, keeps: f64, step: f64, wave: f64, day: usize) -> Walk {
    Walk {
        mean,
        keeps,
        step,
        wave,
        day,
    }
}

/// A column: its family, its name, and a function that generates its values.
type Recipe = (&'static str, &'static str, fn(&mut Rng) -> Vec<f64>);

const TUNING: &[Recipe] = &[
    ("f32", "load in thousandths", |r| {
        narrow(digits(walk(r, with(8.0, 0.9, 1.1, 3.0, 24)), 3))
    }),
    ("f32", "oil temperature in tenths", |r| {
        narrow(digits(walk(r, with(31.0, 0.995, 0.4, 4.0, 96)), 1))
    }),
    ("f32", "volts of 4,096 counts", |r| {
        converted(
            walk(r, with(2000.0, 0.97, 12.0, 300.0, 1440)),
            3.3 / 4095.0,
            4095.0,
        )
    }),
    ("f32", "acceleration, full precision", |r| {
        narrow(walk(r, with(0.2, 0.5, 0.4, 0.0, 100)))
    }),
    ("zeros", "irradiance, ten minutes", |r| {
        sun(r, 144, 900.0, 0)
    }),
    ("zeros", "irradiance in tenths, hourly", |r| {
        sun(r, 24, 820.0, 1)
    }),
    ("zeros", "rain in tenths", |r| rain(r, 0.01, 0.8, 0.8, 0.1)),
    ("zeros", "power of a machine", |r| {
        machine(r, 0.98, &[12.5, 40.0], 0.6, 2)
    }),
    ("direction", "degrees, hourly", |r| {
        direction(r, 1.0, 0.3, 12.0, 0.03)
    }),
    ("direction", "degrees, often the same", |r| {
        direction(r, 1.0, 0.65, 4.0, 0.1)
    }),
    ("direction", "tens of degrees", |r| {
        direction(r, 10.0, 0.2, 14.0, 0.06)
    }),
    ("direction", "sixteen sectors", |r| {
        direction(r, 22.5, 0.5, 15.0, 0.0)
    }),
    ("sums", "energy of a day in hundredths", |r| {
        sums(&sun(r, 144, 0.9, 3), 144, 2)
    }),
    ("sums", "energy of an hour in thousandths", |r| {
        let load = walk(r, with(1.4, 0.9, 0.2, 0.5, 1440));
        sums(&load, 60, 3)
    }),
    ("sums", "rain of a day", |r| {
        sums(&rain(r, 0.02, 0.85, 0.5, 0.2), 48, 1)
    }),
    ("sums", "binary sums of tenths", |r| {
        plain_sums(&sun(r, 96, 30.0, 1), 96)
    }),
    ("small steps", "pressure in tenths, half-hourly", |r| {
        digits(walk(r, with(1013.0, 0.999, 0.12, 0.6, 24)), 1)
    }),
    ("small steps", "pressure in tenths, ten minutes", |r| {
        digits(walk(r, with(1009.0, 0.9995, 0.012, 0.3, 72)), 1)
    }),
    ("small steps", "temperature in tenths, half-hourly", |r| {
        digits(walk(r, with(14.0, 0.99, 0.35, 5.0, 48)), 1)
    }),
    ("small steps", "humidity in percent", |r| {
        let damp = walk(r, with(70.0, 0.98, 2.1, 14.0, 24));
        digits(damp.into_iter().map(|x| x.clamp(8.0, 100.0)).collect(), 0)
    }),
    ("alphabet", "states of a machine", |r| {
        states(
            r,
            0.9,
            &[0.0, 1.0, 2.0, 3.0, 7.0],
            &[60.0, 20.0, 12.0, 5.0, 3.0],
        )
    }),
    ("alphabet", "cloud cover in eighths", |r| {
        let eighths = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
        states(
            r,
            0.5,
            &eighths,
            &[20.0, 9.0, 6.0, 5.0, 4.0, 5.0, 8.0, 18.0, 25.0],
        )
    }),
    ("alphabet", "counts of events", |r| counts(r, 0.7)),
    ("alphabet", "visibility", |r| {
        states(
            r,
            0.7,
            &[10.0, 9.0, 8.0, 7.0, 5.0, 3.0, 1.5, 0.25],
            &[80.0, 5.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0],
        )
    }),
    ("scaled", "price in hundredths", |r| {
        market(r, 62.0, 0.03, 0.01, 2)
    }),
    ("scaled", "volume in lots", |r| volumes(r, 30_000.0, 100.0)),
    ("scaled", "vibration of a pump", |r| {
        shown(walk(r, with(420.0, 0.9, 5.0, 0.0, 100)), 0.115_740_7, 6)
    }),
    ("scaled", "pressure of a pump", |r| {
        shown(
            walk(r, with(6_200.0, 0.97, 25.0, 60.0, 1440)),
            0.101_273_15,
            4,
        )
    }),
];

const JUDGING: &[Recipe] = &[
    ("f32", "current in hundredths", |r| {
        narrow(digits(walk(r, with(140.0, 0.97, 6.0, 35.0, 144)), 2))
    }),
    ("f32", "price in ten-thousandths", |r| {
        narrow(market(r, 1.31, 0.000_3, 0.000_1, 4))
    }),
    ("f32", "field of 65,536 counts", |r| {
        converted(
            walk(r, with(31_000.0, 0.9, 70.0, 900.0, 600)),
            4.912e-3 / 32_768.0 * 100.0,
            65_535.0,
        )
    }),
    ("f32", "speed, full precision", |r| {
        narrow(walk(r, with(9.0, 0.98, 0.3, 2.0, 144)))
    }),
    ("zeros", "irradiance in tenths, quarter-hourly", |r| {
        sun(r, 96, 1010.0, 1)
    }),
    ("zeros", "power of a plant in thousandths", |r| {
        sun(r, 288, 5.4, 3)
    }),
    ("zeros", "rain in fifths", |r| rain(r, 0.004, 0.9, 1.1, 0.2)),
    ("zeros", "flow of a valve", |r| {
        machine(r, 0.95, &[3.1, 5.7, 8.8], 0.12, 3)
    }),
    ("direction", "degrees, ten minutes", |r| {
        direction(r, 1.0, 0.1, 7.0, 0.01)
    }),
    ("direction", "degrees, a slow vane", |r| {
        direction(r, 1.0, 0.8, 2.5, 0.05)
    }),
    ("direction", "tens of degrees, calm nights", |r| {
        direction(r, 10.0, 0.4, 9.0, 0.2)
    }),
    ("direction", "eight sectors", |r| {
        direction(r, 45.0, 0.3, 20.0, 0.0)
    }),
    ("sums", "energy of a day in tenths", |r| {
        sums(&sun(r, 288, 1.7, 3), 288, 1)
    }),
    ("sums", "pieces of a shift", |r| {
        sums(&counts(r, 2.4), 480, 0)
    }),
    ("sums", "water of a day in litres", |r| {
        sums(&machine(r, 0.9, &[6.0, 14.0], 2.0, 0), 1440, 0)
    }),
    ("sums", "binary sums of hundredths", |r| {
        plain_sums(&digits(walk(r, with(2.2, 0.9, 0.3, 0.8, 288)), 2), 288)
    }),
    ("small steps", "pressure in tenths, hourly", |r| {
        digits(walk(r, with(1016.0, 0.998, 0.25, 0.7, 12)), 1)
    }),
    ("small steps", "level of a tank in hundredths", |r| {
        digits(walk(r, with(4.0, 0.9999, 0.000_8, 0.2, 2880)), 2)
    }),
    ("small steps", "temperature in tenths, ten minutes", |r| {
        digits(walk(r, with(9.0, 0.997, 0.13, 4.0, 144)), 1)
    }),
    ("small steps", "temperature of a room in halves", |r| {
        let warm = walk(r, with(21.0, 0.98, 0.2, 1.0, 96));
        warm.into_iter().map(|x| (x * 2.0).round() / 2.0).collect()
    }),
    ("alphabet", "alarms", |r| {
        states(r, 0.97, &[0.0, 1.0, 4.0, 16.0], &[90.0, 6.0, 3.0, 1.0])
    }),
    ("alphabet", "gears", |r| {
        states(
            r,
            0.8,
            &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -1.0],
            &[20.0, 8.0, 9.0, 11.0, 14.0, 30.0, 25.0, 1.0],
        )
    }),
    ("alphabet", "queue", |r| counts(r, 1.6)),
    ("alphabet", "quality codes", |r| {
        states(
            r,
            0.2,
            &[192.0, 216.0, 64.0, 88.0, 0.0, 28.0],
            &[93.0, 2.0, 2.0, 1.0, 1.0, 1.0],
        )
    }),
    ("scaled", "rate in hundred-thousandths", |r| {
        market(r, 1.084, 0.000_06, 0.000_01, 5)
    }),
    ("scaled", "volume in pieces", |r| volumes(r, 900.0, 1.0)),
    ("scaled", "flow of a pump", |r| {
        shown(walk(r, with(1_500.0, 0.8, 9.0, 0.0, 100)), 0.024_414_06, 5)
    }),
    ("scaled", "temperature of a bearing", |r| {
        shown(
            walk(r, with(3_300.0, 0.999, 3.0, 40.0, 1440)),
            0.013_020_8,
            4,
        )
    }),
];

/// All generated columns, or only those whose names contain one of the texts in `only`.
pub(crate) fn columns(only: &[String]) -> Vec<Column> {
    let halves = [(Half::Tuning, TUNING), (Half::Judging, JUDGING)];
    let mut columns = Vec::new();
    for (half, recipes) in halves {
        for (i, &(family, name, make)) in recipes.iter().enumerate() {
            let name = format!("{}, {family}: {name}", half.name());
            if !only.is_empty() && !only.iter().any(|only| name.contains(only.as_str())) {
                continue;
            }
            let mut rng = Rng(1_000 * (half as u64 + 1) + i as u64);
            let words = make(&mut rng).into_iter().map(f64::to_bits).collect();
            columns.push(Column {
                name,
                kind: Kind::Float,
                half,
                family,
                series: vec![words],
            });
        }
    }
    columns
}
