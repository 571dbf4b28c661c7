//! Sums of floats whose partial sums exceed the range of floats, compared with exact sums.

use super::*;

/// Subtracts the sum that statistics store from an exact sum.
fn take_away(exact: &mut Exact, sum: Dd) {
    // In the second form the halves of the sum are swapped, and the sum is stored times 2^-128.
    let power = if sum.hi.abs() < sum.lo.abs() { 128 } else { 0 };
    for part in [sum.hi, sum.lo] {
        assert!(part.is_finite());
        let (m, e) = parts(part);
        exact.add(u128::from(m), e + power, part > 0.0);
    }
}

/// For finite values, checks that sum and mean are within the documented error of the exact sum and mean.
fn check(stats: &Stats, values: &[f64], what: &str) {
    let (mut sum, mut size) = (Exact::new(), Exact::new());
    for &x in values {
        sum.add_float(x, 1.0);
        size.add_float(x.abs(), 1.0);
    }
    let (n, unit) = (values.len() as f64, 2f64.powi(-128));
    let (exact, bound) = (sum.value_times(-128), size.value_times(-128) * BOUND);
    let mean = stats.mean().unwrap() * unit;
    assert!(
        (mean - exact / n).abs() <= 2.0 * bound / n,
        "{what}: mean {mean}"
    );
    let told = stats.sum();
    if told.is_finite() {
        assert!(
            (told * unit - exact).abs() <= 2.0 * bound,
            "{what}: sum {told}"
        );
    } else {
        // The sum is infinite only if the nearest float would be 2^1024 or more.
        assert_eq!(told.signum(), exact.signum(), "{what}");
        assert!(exact.abs() + bound >= f64::MAX * unit, "{what}: {exact}");
    }
    take_away(&mut sum, stats.float_sum);
    let rest = sum.value_times(-128).abs();
    assert!(rest <= bound, "{what}: {rest:e} beside {bound:e}");
}

/// Checks that statistics restored from bytes and from fields, and statistics of the sum alone, give the same sum.
fn check_forms(stats: &Stats) {
    assert_eq!(
        Stats::decode(ColumnType::F64, &stats.to_bytes()),
        Ok(*stats)
    );
    let clock = Clock::units(-1, i64::MAX);
    let fields = stats.to_fields(&clock);
    let read = Stats::from_fields(ColumnType::F64, stats.count(), &fields, &clock);
    assert_eq!(read, Ok(*stats));
    let alone = stats.only(Parts::SUM);
    assert_eq!(alone.sum().to_bits(), stats.sum().to_bits());
    assert_eq!(alone.mean(), stats.mean());
}

fn large(rng: &mut Rng, kind: u64) -> f64 {
    let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
    let size = match kind {
        0 => f64::MAX,
        1 => f64::MAX * rng.unit(),
        2 => [f64::MAX, 1.0, 1e-300, 5e-324, 0.0, 1e300][rng.below(6) as usize],
        // Values of mostly one sign, which give long runs of growing sums.
        3 => return f64::MAX * (rng.unit() - 0.1),
        _ => 2f64.powi(rng.below(2047) as i32 - 1023),
    };
    sign * size
}

#[test]
fn sums_beyond_the_floats_on_the_way_come_back_in_any_order_of_merging() {
    let mut beyond = 0;
    for seed in 0..few(600) {
        let mut rng = Rng(seed ^ 0x5151);
        let (kind, n) = (rng.below(5), 1 + rng.below(3000) as usize);
        let mut values: Vec<f64> = (0..n).map(|_| large(&mut rng, kind)).collect();
        match rng.below(3) {
            0 => values.sort_by(f64::total_cmp),
            1 => values.extend(values.clone().iter().map(|x| -x)),
            _ => {}
        }
        let what = format!("seed {seed} kind {kind}");
        let piece_rows = [1, 7, 400, 1024][rng.below(4) as usize];
        let mut pieces: Vec<(Stats, Vec<f64>)> = values
            .chunks(piece_rows)
            .map(|piece| (floats(piece), piece.to_vec()))
            .collect();
        // Merges pieces in any order, two at a time, on either side.
        while pieces.len() > 1 {
            let (other, rows) = pieces.swap_remove(rng.below(pieces.len() as u64) as usize);
            let at = rng.below(pieces.len() as u64) as usize;
            let (into, all) = &mut pieces[at];
            match rng.below(3) {
                0 => {
                    let mut first = other;
                    first.merge_after(into);
                    *into = first;
                }
                1 => into.merge_beside(&other, false, true),
                _ => into.merge_after(&other),
            }
            all.extend(rows);
            beyond += u32::from(into.float_sum.hi.abs() < into.float_sum.lo.abs());
            if rng.below(40) == 0 {
                let (into, all) = &pieces[at];
                check(into, all, &what);
                check_forms(into);
            }
        }
        for stats in [pieces[0].0, floats(&values)] {
            check(&stats, &values, &what);
            check_forms(&stats);
        }
    }
    assert!(
        cfg!(miri) || beyond > 1000,
        "{beyond} sums were beyond the floats"
    );
}

#[test]
fn a_sum_that_overflowed_and_returns_is_exact() {
    const MAX: f64 = f64::MAX;
    // The sum goes far beyond the range of floats, and then back to zero.
    let mut stats = floats(&[-MAX; 1000]);
    for sign in [-1.0, 1.0, 1.0] {
        assert_eq!(stats.mean(), Some(-MAX));
        assert_eq!(stats.sum(), f64::NEG_INFINITY);
        check_forms(&stats);
        if sign < 0.0 {
            stats.merge_after(&floats(&[-MAX; 1000]));
        }
    }
    stats.merge_after(&floats(&[MAX; 1000]));
    assert_eq!(
        (stats.sum(), stats.mean()),
        (f64::NEG_INFINITY, Some(-MAX / 3.0))
    );
    stats.merge_after(&floats(&[MAX; 1000]));
    assert_eq!((stats.sum(), stats.mean()), (0.0, Some(0.0)));
    assert_eq!(
        (stats.stddev(), stats.variance()),
        (Some(MAX), Some(f64::INFINITY))
    );
    assert_eq!(stats.float_sum, Dd::default(), "in the plain form again");
    // Values whose partial sums temporarily exceed the range of floats.
    let sums = [1.73e308, -1.52e308, 1.59e308, -7.2e307, -1.77e308];
    let mut stats = Stats::empty(ColumnType::F64);
    for sum in sums {
        stats.merge_after(&floats(&[sum]));
    }
    check(&stats, &sums, "five sums");
    assert!(stats.sum().is_finite() && stats.stddev().is_some_and(f64::is_finite));
    // The same values, scaled down so that no sum exceeds the range of floats.
    let small: Vec<f64> = sums.iter().map(|x| x * 2f64.powi(-600)).collect();
    let expected = floats(&small).stddev().unwrap() * 2f64.powi(600);
    assert!((stats.stddev().unwrap() / expected - 1.0).abs() < 2f64.powi(-40));
}

#[test]
fn an_infinite_value_makes_a_sum_beyond_the_floats_infinite() {
    let far = floats(&[f64::MAX; 3]);
    for (value, sum) in [
        (f64::INFINITY, f64::INFINITY),
        (f64::NEG_INFINITY, f64::NEG_INFINITY),
    ] {
        let infinite = floats(&[value]);
        for pieces in [[far, infinite], [infinite, far]] {
            let mut all = pieces[0];
            all.merge_after(&pieces[1]);
            assert_eq!((all.sum(), all.mean()), (sum, Some(sum)));
            assert!(all.stddev().is_some_and(f64::is_nan));
            all.merge_after(&floats(&[-value]));
            assert_eq!(all.float_sum.hi.to_bits(), f64::NAN.to_bits());
            assert_eq!(all.float_sum.lo, 0.0);
        }
    }
}
