mod sums;

use super::fields::Clock;
use super::*;
use crate::tests::{Rng, few};

/// An exact sum of floats, of products of two floats, or of integers: a fixed-point number with 32 bits per limb, whose
/// lowest bit is worth 2^-LOWEST.
struct Exact {
    limbs: Vec<i64>,
}

const LOWEST: i32 = 2240;

impl Exact {
    fn new() -> Self {
        Self {
            limbs: vec![0; 150],
        }
    }

    fn add(&mut self, mut magnitude: u128, mut power: i32, negative: bool) {
        while magnitude != 0 {
            let place = (power + LOWEST) as usize;
            let mut part = (magnitude & 0xffff_ffff) << (place % 32);
            let mut limb = place / 32;
            while part != 0 {
                let low = (part & 0xffff_ffff) as i64;
                self.limbs[limb] += if negative { -low } else { low };
                part >>= 32;
                limb += 1;
            }
            magnitude >>= 32;
            power += 32;
        }
    }

    fn add_float(&mut self, x: f64, sign: f64) {
        let (m, e) = parts(x);
        self.add(u128::from(m), e, (x < 0.0) != (sign < 0.0));
    }

    fn add_square(&mut self, x: f64) {
        let (m, e) = parts(x);
        self.add(u128::from(m) * u128::from(m), 2 * e, false);
    }

    /// The exact sum, rounded to about the precision of a float.
    fn value(&self) -> f64 {
        self.value_times(0)
    }

    /// The exact sum times 2^`scale`, rounded to about the precision of a float.
    fn value_times(&self, scale: i32) -> f64 {
        let mut limbs = self.limbs.clone();
        let carry = |limbs: &mut Vec<i64>| {
            let mut carry = 0;
            for limb in limbs {
                let sum = *limb + carry;
                *limb = sum & 0xffff_ffff;
                carry = sum >> 32;
            }
            carry
        };
        let negative = carry(&mut limbs) < 0;
        if negative {
            limbs.iter_mut().for_each(|limb| *limb = -*limb);
            carry(&mut limbs);
        }
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else {
            return 0.0;
        };
        let value = (0..4)
            .filter_map(|i| Some((i, *limbs.get(top.checked_sub(i)?)?)))
            .fold(0.0, |sum, (i, limb)| {
                let power = 32 * (top - i) as i32 - LOWEST + scale;
                sum + limb as f64 * 2f64.powi(power / 2) * 2f64.powi(power - power / 2)
            });
        if negative { -value } else { value }
    }
}

/// Splits the float x into integers m and e with x = m * 2^e.
fn parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52 & 0x7ff) as i32 {
        0 => (fraction, -1074),
        e => (fraction | 1 << 52, e - 1075),
    }
}

/// Errors of the sum and of the sum of squares in `stats`, relative to the sums of the magnitudes.
fn errors(stats: &Stats, words: &[u64]) -> [f64; 2] {
    let (mut sum, mut size) = (Exact::new(), Exact::new());
    let mut squares = Exact::new();
    for &word in words {
        match stats.ty {
            ColumnType::F64 => {
                let x = f64::from_bits(word);
                if !x.is_nan() {
                    sum.add_float(x, 1.0);
                    size.add_float(x.abs(), 1.0);
                    squares.add_square(x);
                }
            }
            ty => {
                let negative = ty == ColumnType::I64 && (word as i64) < 0;
                let magnitude = u128::from(if negative { word.wrapping_neg() } else { word });
                sum.add(magnitude, 0, negative);
                size.add(magnitude, 0, false);
                squares.add(magnitude * magnitude, 0, false);
            }
        }
    }
    let square_size = squares.value();
    let total = stats.exact_sum();
    for part in [total.hi, total.lo] {
        sum.add_float(part, -1.0);
    }
    for part in [stats.squares.hi, stats.squares.lo] {
        squares.add_float(part, -1.0);
    }
    let relative = |distance: f64, size: f64| {
        if distance == 0.0 {
            0.0
        } else {
            (distance / size).abs()
        }
    };
    [
        relative(sum.value(), size.value()),
        relative(squares.value(), square_size),
    ]
}

const BOUND: f64 = 1.0 / (1u64 << 50) as f64;

fn sample(rng: &mut Rng, kind: u64) -> u64 {
    match kind {
        0 => (rng.unit() * 100.0).to_bits(),
        1 => ((rng.unit() - 0.5) * 10f64.powi(rng.below(200) as i32 - 100)).to_bits(),
        2 => ((rng.unit() - 0.5) * 1e9).round().to_bits(),
        3 => [1e100f64, -1e100, 1.0, -1e-100, 0.0, -0.0][rng.below(6) as usize].to_bits(),
        4 => if rng.below(5) == 0 {
            f64::NAN
        } else {
            1e6 + rng.unit()
        }
        .to_bits(),
        5 => rng.next(),
        _ => rng.next() >> rng.below(64),
    }
}

#[test]
fn sums_are_near_the_exact_ones_in_any_order_of_merging() {
    let mut worst = 0f64;
    for seed in 0..few(600) {
        let mut rng = Rng(seed);
        let kind = rng.below(7);
        let ty = match kind {
            0..5 => ColumnType::F64,
            5 => ColumnType::I64,
            _ => ColumnType::U64,
        };
        let n = 1 + rng.below(3000) as usize;
        let words: Vec<u64> = (0..n).map(|_| sample(&mut rng, kind)).collect();
        let times: Vec<i64> = (0..n as i64).map(|i| i * 3 - 7).collect();
        let whole = Stats::of(ty, &times, &words);
        check_extremes(&whole, &times, &words);
        // Merges the pieces in groups of two, three and so on until one piece is left.
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < n {
            let end = (at + 1 + rng.below(400) as usize).min(n);
            pieces.push(Stats::of(ty, &times[at..end], &words[at..end]));
            at = end;
        }
        while pieces.len() > 1 {
            let many = 2 + rng.below(4) as usize;
            let merge = |group: &[Stats]| {
                let mut merged = Stats::empty(ty);
                group.iter().for_each(|piece| merged.merge_after(piece));
                merged
            };
            pieces = pieces.chunks(many).map(merge).collect();
        }
        let merged = pieces[0];
        check_extremes(&merged, &times, &words);
        for stats in [whole, merged] {
            for error in errors(&stats, &words) {
                assert!(error <= BOUND, "seed {seed} kind {kind}: {error:e}");
                worst = worst.max(error);
            }
            assert_eq!(Stats::decode(ty, &stats.to_bytes()), Ok(stats));
        }
        if ty != ColumnType::F64 {
            assert_eq!(whole.int_sum(), merged.int_sum());
        }
    }
    println!("worst relative error 2^{:.1}", worst.log2());
}

fn check_extremes(stats: &Stats, times: &[i64], words: &[u64]) {
    let ty = stats.column_type();
    let is_nan = |word: u64| ty == ColumnType::F64 && f64::from_bits(word).is_nan();
    let mut min: Option<(u64, i64)> = None;
    let mut max: Option<(u64, i64)> = None;
    for (&word, &time) in words.iter().zip(times).filter(|&(&word, _)| !is_nan(word)) {
        if min.is_none_or(|(least, _)| ty.order_key(word) < ty.order_key(least)) {
            min = Some((word, time));
        }
        if max.is_none_or(|(most, _)| ty.order_key(word) > ty.order_key(most)) {
            max = Some((word, time));
        }
    }
    let nans = words.iter().filter(|&&word| is_nan(word)).count() as u64;
    assert_eq!((stats.min(), stats.max()), (min, max));
    assert_eq!(
        (stats.count(), stats.nan_count()),
        (words.len() as u64, nans)
    );
    assert_eq!(
        (stats.first(), stats.last()),
        (words.first().copied(), words.last().copied())
    );
}

fn floats(values: &[f64]) -> Stats {
    let times: Vec<i64> = (0..values.len() as i64).collect();
    let words: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
    Stats::of(ColumnType::F64, &times, &words)
}

#[test]
fn infinities_act_as_in_plain_addition() {
    let inf = f64::INFINITY;
    assert_eq!(floats(&[1.0, inf, 2.0, inf]).sum(), inf);
    assert_eq!(floats(&[1.0, -inf, 2.0]).sum(), -inf);
    assert_eq!(floats(&[1.0, -inf, f64::NAN]).square_sum(), inf);
    assert!(floats(&[inf, 1.0, -inf]).sum().is_nan());
    assert_eq!(floats(&[inf; 3]).mean(), Some(inf));
    let mut merged = floats(&[inf, 3.0]);
    merged.merge_after(&floats(&[1.0]));
    assert_eq!((merged.sum(), merged.exact_sum().lo), (inf, 0.0));
    merged.merge_after(&floats(&[-inf]));
    assert!(merged.sum().is_nan());
    assert_eq!(merged.exact_sum().hi.to_bits(), f64::NAN.to_bits());
}

#[test]
fn sums_near_the_end_of_the_range() {
    let max = f64::MAX;
    assert_eq!(floats(&[max, max, -max, -max, 1.0]).sum(), 1.0);
    assert_eq!(floats(&[max; 9]).sum(), f64::INFINITY);
    assert_eq!(floats(&[max, max, -max]).sum(), max);
    assert_eq!(floats(&[max, 1.0]).square_sum(), f64::INFINITY);
    assert_eq!(floats(&[5e-324; 10]).sum(), 5e-323);
}

#[test]
fn integers_at_both_ends_of_their_range_sum_exactly() {
    let ends = [
        0,
        1,
        7,
        1 << 31,
        (1 << 31) - 1,
        1 << 40,
        u64::MAX,
        u64::MAX - 1,
        1 << 63,
    ];
    for picked in 1..1u32 << ends.len() {
        let words: Vec<u64> = (0..ends.len())
            .filter(|i| picked >> i & 1 == 1)
            .map(|i| ends[i])
            .collect();
        let times: Vec<i64> = (0..words.len() as i64).collect();
        let unsigned: i128 = words.iter().map(|&word| i128::from(word)).sum();
        let signed: i128 = words.iter().map(|&word| i128::from(word as i64)).sum();
        let sum = |ty| Stats::of(ty, &times, &words).int_sum();
        assert_eq!(sum(ColumnType::U64), Some(unsigned), "{words:?}");
        assert_eq!(sum(ColumnType::I64), Some(signed), "{words:?}");
    }
}

#[test]
fn nothing_but_nan() {
    let stats = floats(&[f64::NAN; 9]);
    assert_eq!(
        (stats.count(), stats.nan_count(), stats.value_count()),
        (9, 9, 0)
    );
    assert_eq!(
        (stats.min(), stats.mean(), stats.stddev()),
        (None, None, None)
    );
    assert_eq!(stats.first(), Some(f64::NAN.to_bits()));
    let mut merged = stats;
    merged.merge_after(&floats(&[2.0, 1.0]));
    assert_eq!(merged.min(), Some((1f64.to_bits(), 1)));
    let empty = Stats::of(ColumnType::F64, &[], &[]);
    assert_eq!((empty.first(), empty.max()), (None, None));
    assert_eq!(empty, Stats::empty(ColumnType::F64));
}

#[test]
fn variance_beside_a_large_mean() {
    let values: Vec<f64> = (0..1000).map(|i| 1e9 + f64::from(i % 10)).collect();
    let stats = floats(&values);
    assert_eq!(stats.variance(), Some(8.25));
    assert_eq!(stats.stddev(), Some(8.25f64.sqrt()));
    assert_eq!(stats.sample_variance(), Some(8.25 * 1000.0 / 999.0));
    assert_eq!(floats(&[0.1; 77]).variance(), Some(0.0));
    assert_eq!(floats(&[4.0]).sample_stddev(), None);
    let times = [0, 1, 2, 3];
    let ints = Stats::of(
        ColumnType::I64,
        &times,
        &[i64::MIN as u64, i64::MAX as u64, 0, 0],
    );
    assert_eq!(ints.int_sum(), Some(-1));
    let expected = 2f64.powi(125);
    assert!((ints.variance().unwrap() / expected - 1.0).abs() < 1e-15);
}

#[test]
fn rows_of_zeros_have_the_statistics_of_zeros() {
    for ty in ColumnType::ALL {
        for n in [0, 1, 2, 700] {
            let times: Vec<i64> = (5..5 + n as i64).collect();
            let whole = Stats::of(ty, &times, &vec![0; n]);
            let begin = times.first().map_or(0, |&time| time);
            let zeros = Stats::of_zeros(ty, begin, n as u64);
            assert_eq!(zeros.to_bytes(), whole.to_bytes(), "{ty:?}, {n} rows");
        }
    }
}

/// Tests every column type with its edge cases: decoding fields restores every bit, and each encoding is unique.
#[test]
fn fields_keep_every_bit() {
    use super::fields::STATS_FIELDS;
    let mut rng = Rng(421);
    for round in 0..few(4000) as usize {
        let ty = ColumnType::ALL[round % ColumnType::ALL.len()];
        let edges: &[u64] = if ty.is_float() {
            &[
                f64::NAN.to_bits(),
                (-0.0f64).to_bits(),
                0,
                f64::INFINITY.to_bits(),
                f64::NEG_INFINITY.to_bits(),
                f64::MAX.to_bits(),
                1,
            ]
        } else {
            &[0, 1, u64::MAX, i64::MIN as u64, i64::MAX as u64, 1 << 32]
        };
        let rows = rng.below(40) as usize + 1;
        let narrow = rng.below(2) == 0;
        let word = |rng: &mut Rng| match rng.below(8) {
            0 => edges[rng.below(edges.len() as u64) as usize],
            1 => ty.fill(),
            _ if ty.is_float() => (rng.below(1000) as f64 / 100.0).to_bits(),
            _ if narrow => rng.below(100),
            _ => rng.next(),
        };
        let only = (rng.below(10) == 0).then(|| word(&mut rng));
        let words: Vec<u64> = (0..rows)
            .map(|_| only.unwrap_or_else(|| word(&mut rng)))
            .collect();
        let (begin, step) = match rng.below(4) {
            0 => (i64::MIN, u64::MAX / rows as u64),
            1 => (i64::MAX - 40 * 7, 7),
            _ => (1_700_000_000_000, 10_000),
        };
        let time = |row: usize| begin.wrapping_add((row as u64).wrapping_mul(step) as i64);
        let times: Vec<i64> = (0..rows).map(time).collect();
        let stats = Stats::of(ty, &times, &words);
        let last = rows as u64 - 1;
        let ticks = Clock { begin, step, last };
        for clock in [ticks, Clock::units(begin, times[rows - 1])] {
            let fields: [u64; STATS_FIELDS] = stats.to_fields(&clock);
            let back = Stats::from_fields(ty, rows as u64, &fields, &clock).unwrap();
            assert_eq!(
                back.to_bytes(),
                stats.to_bytes(),
                "round {round}: {ty:?} {words:?}"
            );
            assert_eq!(super::fields::last_word(ty, &fields), words[rows - 1]);
            // Any other integers are rejected or round-trip; no operation panics.
            let mut odd = fields;
            odd[rng.below(STATS_FIELDS as u64) as usize] = rng.next() >> rng.below(64);
            if let Ok(found) = Stats::from_fields(ty, rows as u64, &odd, &clock) {
                let again = found.to_fields(&clock);
                let again = Stats::from_fields(ty, rows as u64, &again, &clock).unwrap();
                assert_eq!(again.to_bytes(), found.to_bytes(), "{found:?}");
                assert!(found.nan_count() + found.null_count() <= rows as u64);
                assert!(found.min().is_none_or(|(_, time)| times[0] <= time));
            }
        }
    }
}

/// Every valid set of figures.
fn every_set() -> impl Iterator<Item = Parts> {
    let times_alone = Parts::TIMES.bits() & !Parts::EXTREMES.bits();
    let sets = (0..=Parts::ALL.bits()).map(Parts::of_bits);
    // A set with the times of extremes but without the extremes is not valid.
    sets.filter(move |set| set.has(Parts::EXTREMES) || set.bits() & times_alone == 0)
}

/// Creates words of a column type, in one of several shapes: few distinct words, widely spread words, special values,
/// or all equal. In a type with nulls some words are null.
fn some_words(rng: &mut Rng, ty: ColumnType, n: usize) -> Vec<u64> {
    let odd = [
        f64::NAN.to_bits(),
        f64::INFINITY.to_bits(),
        f64::NEG_INFINITY.to_bits(),
        f64::MAX.to_bits(),
        (-0.0f64).to_bits(),
        0,
        1,
        u64::MAX,
        1 << 63,
        (1 << 63) - 1,
        ty.fill(),
    ];
    let style = rng.below(7);
    let mut word = |_| match style {
        0 => rng.below(100),
        1 => (rng.below(2000) as i64 - 1000) as u64,
        2 => (rng.below(10_000) as f64 / 100.0).to_bits(),
        3 => ((rng.unit() - 0.5) * 10f64.powi(rng.below(600) as i32 - 300)).to_bits(),
        4 => odd[rng.below(odd.len() as u64) as usize],
        5 => odd[0],
        _ => rng.next() >> rng.below(64),
    };
    let words: Vec<u64> = (0..n).map(&mut word).collect();
    // Words of an f32 column must be widened 32-bit floats.
    let narrow = ty.base() == ColumnType::F32;
    words
        .into_iter()
        .map(|word| match narrow && ty.null() != Some(word) {
            true => ColumnType::widen(ColumnType::narrow(word)),
            false => word,
        })
        .collect()
}

/// In statistics with any set of figures, each figure must have the same bits as in statistics with all figures,
/// whether it was computed from rows, merged, or decoded from fields or bytes.
#[test]
fn a_set_of_figures_has_the_bits_of_all() {
    for seed in 0..if cfg!(miri) { 4 } else { 400 } {
        let mut rng = Rng(seed);
        let ty = ColumnType::ALL[rng.below(ColumnType::ALL.len() as u64) as usize];
        let n = [1, 2, 7, 8, 9, 33, 360, 1024][rng.below(8) as usize];
        let times: Vec<i64> = (0..n as i64).map(|i| 1000 + i * 10).collect();
        let words = some_words(&mut rng, ty, n);
        let (cut, behind) = (rng.below(n as u64 + 1) as usize, 1000 + n as i64 * 10);
        let clock = Clock::units(times[0], times[n - 1]);
        let whole = Stats::of(ty, &times, &words);
        let (mut before, after) = (
            Stats::of(ty, &times[..cut], &words[..cut]),
            Stats::of(ty, &times[cut..], &words[cut..]),
        );
        let first = before;
        before.merge_after(&after);
        let mut beside = before;
        beside.merge_beside(&first, true, false);
        crate::kernel::at_every_level(|level| {
            for parts in every_set() {
                let what = format!("seed {seed}, {ty:?}, {n} rows, {parts:?}, {level}");
                let text = |stats: &Stats| format!("{stats:?}");
                let own = Stats::with(parts, ty, &times, &words);
                assert_eq!(text(&own), text(&whole.only(parts)), "{what}");
                let mut merged = Stats::empty_with(parts, ty);
                merged.merge_after(&Stats::with(parts, ty, &times[..cut], &words[..cut]));
                merged.merge_after(&after);
                assert_eq!(text(&merged), text(&before.only(parts)), "{what}");
                merged.merge_beside(&first, true, false);
                assert_eq!(text(&merged), text(&beside.only(parts)), "{what}");
                let moved = merged.with_times(|time| time + behind);
                let all = beside.with_times(|time| time + behind);
                assert_eq!(text(&moved), text(&all.only(parts)), "{what}");
                for start in [Stats::empty(ty), first] {
                    let mut expected = start;
                    expected.merge_after(&whole);
                    let expected = text(&expected.only(parts));
                    let mut found = start.only(parts);
                    let fields = whole.to_fields(&clock);
                    let count = n as u64;
                    let merged = found.merge_fields(count, &clock, || Some(fields));
                    assert_eq!(merged, Some(()), "{what}");
                    assert_eq!(text(&found), expected, "{what}");
                    let mut found = start.only(parts);
                    found.merge_bytes(&whole.to_bytes()).unwrap();
                    assert_eq!(text(&found), expected, "{what}");
                }
                told(&own, &whole);
            }
        });
    }
}

/// Checks that figures that the statistics lack are not reported.
fn told(own: &Stats, whole: &Stats) {
    let (parts, none) = (own.parts(), f64::NAN);
    // Under Miri an operation may give any NaN, a different one each time; the NaN that is stored is always the same.
    let bits = |value: f64| match cfg!(miri) && value.is_nan() {
        true => none.to_bits(),
        false => value.to_bits(),
    };
    let one_of = |has: bool, own: f64, whole: f64| {
        assert_eq!(bits(own), bits(if has { whole } else { none }));
    };
    let has_sum = parts.has(Parts::SUM);
    one_of(has_sum, own.sum(), whole.sum());
    assert_eq!(own.int_sum(), whole.int_sum().filter(|_| has_sum));
    assert_eq!(own.mean().is_some(), has_sum && whole.mean().is_some());
    let has_squares = parts.has(Parts::SQUARES);
    one_of(has_squares, own.square_sum(), whole.square_sum());
    let has_spread = has_sum && has_squares && whole.value_count() > 0;
    assert_eq!(own.stddev().is_some(), has_spread);
    let has_words = parts.has(Parts::EXTREMES);
    assert_eq!(own.min_word(), whole.min_word().filter(|_| has_words));
    assert_eq!(own.max_word(), whole.max_word().filter(|_| has_words));
    let has_times = parts.has(Parts::TIMES);
    assert_eq!(own.min(), whole.min().filter(|_| has_times));
    assert_eq!(own.max(), whole.max().filter(|_| has_times));
    let has_ends = parts.has(Parts::ENDS);
    assert_eq!(own.first(), whole.first().filter(|_| has_ends));
    assert_eq!(own.last(), whole.last().filter(|_| has_ends));
    assert_eq!(own.value_count(), whole.value_count());
}

/// Squares of values from 1e154 up exceed the range of floats. The results must equal the results of the same values at
/// a smaller scale, in any grouping of the rows.
#[test]
fn deviations_of_values_whose_squares_are_beyond_the_floats() {
    let rows = if cfg!(miri) { 100 } else { 3000 };
    let scaled = |power: i32, shift: f64| {
        let unit = 2f64.powi(power);
        (0..rows).map(move |i| (shift + f64::from(i * 7919 % 1000) / 8.0) * unit)
    };
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 2f64.powi(-40);
    for shift in [0.0, -62.0, 1e6] {
        let small = floats(&scaled(0, shift).collect::<Vec<_>>());
        let (root, sample) = (small.stddev().unwrap(), small.sample_stddev().unwrap());
        for power in [505, 512, 513, 650, 960] {
            let values: Vec<f64> = scaled(power, shift).collect();
            let unit = 2f64.powi(power);
            let whole = floats(&values);
            let mut pieces = Stats::empty(ColumnType::F64);
            for piece in values.chunks(17) {
                pieces.merge_after(&floats(piece));
            }
            let back = Stats::decode(ColumnType::F64, &pieces.to_bytes()).unwrap();
            let clock = Clock::units(0, 1 << 40);
            let fields = whole.to_fields(&clock);
            let read = Stats::from_fields(ColumnType::F64, rows as u64, &fields, &clock).unwrap();
            for stats in [
                whole,
                pieces,
                back,
                read,
                whole.only(Parts::SUM.and(Parts::SQUARES)),
            ] {
                assert!(
                    near(stats.stddev().unwrap(), root * unit),
                    "2^{power}: {stats:?}"
                );
                assert!(
                    near(stats.sample_stddev().unwrap(), sample * unit),
                    "2^{power}"
                );
                let variance = stats.variance().unwrap();
                let expected = root * unit * root * unit;
                assert!(
                    variance == expected || near(variance, expected),
                    "2^{power}: {variance}"
                );
            }
        }
    }
    // A few large values among many small ones, in either order; a single value; all values equal.
    for order in [[1.0, 1e200], [1e200, 1.0]] {
        let mut stats = floats(&[order[0]; 100]);
        stats.merge_after(&floats(&[order[1]; 100]));
        assert!(near(stats.stddev().unwrap(), 0.5e200), "{stats:?}");
        assert_eq!(stats.square_sum(), f64::INFINITY);
    }
    assert_eq!(floats(&[1e200]).stddev(), Some(0.0));
    assert!(floats(&[1e200; 77]).stddev().unwrap() < 1e200 * 2f64.powi(-45));
    // Each square is finite, but the sum of the squares is not.
    let edge = [1.2e154; 2];
    let mut stats = floats(&edge[..1]);
    assert!(stats.square_sum().is_finite());
    stats.merge_after(&floats(&[-1.2e154]));
    assert_eq!(stats.stddev(), Some(1.2e154));
    // Values whose sum exceeds the range of floats have a finite deviation; infinite values do not.
    assert!(floats(&[f64::MAX; 2]).stddev().unwrap() < f64::MAX * 2f64.powi(-45));
    for values in [[f64::INFINITY, 1.0], [f64::NEG_INFINITY, 1e200]] {
        assert!(floats(&values).stddev().unwrap().is_nan(), "{values:?}");
    }
    let mut stats = floats(&[1e200, 2e200]);
    stats.merge_after(&floats(&[f64::INFINITY]));
    assert!(stats.stddev().unwrap().is_nan());
}
