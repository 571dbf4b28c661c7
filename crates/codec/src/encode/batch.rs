//! Encodes the concatenated times of several series, as in a block of a run: the times of each series lie near a line,
//! and the lines have the same slope. But all times together do not lie near one line, because each series begins anew.
//!
//! All times of a series are therefore shifted by one amount, so that they continue where the series before it ends.
//! The shifts are stored beside the vector:
//!
//! ```text
//! for each series but the first: | bytes u8, 0 to 8 | zigzag of its shift minus the one before it, in so many bytes |
//! ```

use crate::chunk::{self, Chunk};
use crate::encode::encode_times;
use crate::encode::encoder_state::EncoderState;
use crate::kernel;
use crate::loops::slope;
use crate::short::{unzigzag, zigzag};
use core::ops::Range;
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;

/// Minimum average number of rows per series at which shifting the times of the series can save space.
const ROWS_MIN: usize = 128;
/// Maximum length in bytes of all encoded shifts of a vector.
pub const SHIFTS_BYTES_MAX: usize = 9 * (VECTOR_ROWS / ROWS_MIN - 1);

/// Encodes 1 to 1024 times of several series, as [`encode_times`] does, and appends the payload to `out`. `series[i]`
/// is the series of row i; rows of one series are contiguous and ascending. `shifts` receives the shifts that
/// [`unshift`] needs, and stays empty if shifting saves nothing. If `shifts` is not empty, payload and shifts together
/// take at most eight bytes per time.
///
/// Cost: 1 ns per value more than `encode_times` if the times lie near lines.
///
/// # Panics
/// If there are no times or more than 1024, or if `series` has another length than `times`.
pub fn encode_times_of_series(
    series: &[u64],
    times: &[i64],
    state: &mut EncoderState,
    shifts: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Chunk {
    assert_eq!(series.len(), times.len(), "a series a row");
    shifts.clear();
    if times.len() < ROWS_MIN || series[0] == series[series.len() - 1] {
        return encode_times(times, state, out);
    }
    let Some(slope) = slope_of(series, times, state) else {
        return encode_times(times, state, out);
    };
    let mut shifted = [0; VECTOR_ROWS];
    let shifted = &mut shifted[..times.len()];
    shift(series, times, slope, shifted, shifts);
    let (begin, before) = (out.len(), *state);
    let chunk = encode_times(shifted, state, out);
    let bytes = chunk.len() + shifts.len();
    if chunk.encoding == chunk::SLOPE && bytes <= size_of_val(times) {
        return chunk;
    }
    shifts.clear();
    out.truncate(begin);
    *state = before;
    encode_times(times, state, out)
}

/// The common slope of the lines near which the times lie; `None` if shifting cannot save space.
fn slope_of(series: &[u64], times: &[i64], state: &EncoderState) -> Option<u64> {
    let (mut longest, mut at, mut count) = (0..0, 0, 0);
    for one in series.chunk_by(|a, b| a == b) {
        if one.len() > longest.len() {
            longest = at..at + one.len();
        }
        at += one.len();
        count += 1;
    }
    if times.len() / count < ROWS_MIN {
        return None;
    }
    if let Some(known) = state.layouts.line() {
        return known;
    }
    slope::of(kernel::words(&times[longest]), 1)
}

/// Shifts the times of each series so that the least distance from the line becomes equal for all series.
fn shift(series: &[u64], times: &[i64], slope: u64, shifted: &mut [i64], shifts: &mut Vec<u8>) {
    let (mut at, mut least, mut before) = (0, None, 0);
    for one in series.chunk_by(|a, b| a == b) {
        let own = &times[at..at + one.len()];
        let from_line =
            |row: usize| own[row].wrapping_sub(slope.wrapping_mul((at + row) as u64) as i64);
        let first = from_line(0);
        // For times that are far from any line these distances may wrap. The shifted times are then not near a line
        // either, and the caller discards them.
        let nearest = (0..own.len()).map(from_line).min().unwrap_or(first);
        let shift = nearest.wrapping_sub(*least.get_or_insert(nearest));
        if at > 0 {
            put(shift.wrapping_sub(before) as u64, shifts);
        }
        before = shift;
        for (to, &time) in shifted[at..].iter_mut().zip(own) {
            *to = time.wrapping_sub(shift);
        }
        at += one.len();
    }
}

fn put(step: u64, shifts: &mut Vec<u8>) {
    let number = zigzag(step);
    let bytes = (u64::from(64 - number.leading_zeros())).div_ceil(8) as usize;
    shifts.push(bytes as u8);
    shifts.extend_from_slice(&number.to_le_bytes()[..bytes]);
}

/// Restores the times of a batch after `decode_times`: adds to the times of each series the shift that its encoder
/// subtracted. `series[i]` is the series of row i.
///
/// # Errors
/// [`Corrupt`] if there are fewer shifts than series, or more.
pub fn unshift(series: &[u64], shifts: &[u8], times: &mut [i64]) -> Result<(), Corrupt> {
    each_shift(series, shifts, |rows, shift| {
        let end = rows.end.min(times.len());
        for time in &mut times[rows.start.min(end)..end] {
            *time = time.wrapping_add(shift);
        }
    })
}

/// The amount that [`unshift`] would add to the time of row `row`.
///
/// # Errors
/// As for [`unshift`].
pub fn shift_at(series: &[u64], shifts: &[u8], row: usize) -> Result<i64, Corrupt> {
    let mut found = 0;
    each_shift(series, shifts, |rows, shift| {
        if rows.contains(&row) {
            found = shift;
        }
    })?;
    Ok(found)
}

/// Calls `f` with the range of rows of each series, and the amount by which these rows were shifted.
fn each_shift(
    series: &[u64],
    shifts: &[u8],
    mut f: impl FnMut(Range<usize>, i64),
) -> Result<(), Corrupt> {
    let (mut rest, mut at, mut shift) = (shifts, 0, 0i64);
    for one in series.chunk_by(|a, b| a == b) {
        if at > 0 {
            let step = take(&mut rest).ok_or_else(|| odd(shifts, series))?;
            shift = shift.wrapping_add(unzigzag(step) as i64);
        }
        f(at..at + one.len(), shift);
        at += one.len();
    }
    match rest {
        [] => Ok(()),
        _ => Err(odd(shifts, series)),
    }
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let (&bytes, behind) = rest.split_first()?;
    let mut number = [0; 8];
    let own = behind.get(..usize::from(bytes))?;
    number.get_mut(..own.len())?.copy_from_slice(own);
    *rest = &behind[own.len()..];
    Some(u64::from_le_bytes(number))
}

#[cold]
fn odd(shifts: &[u8], series: &[u64]) -> Corrupt {
    let found = format!("{} bytes", shifts.len());
    let count = series.chunk_by(|a, b| a == b).count();
    Corrupt::new(
        "shifts of times",
        0,
        found,
        format!("those of {count} series"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode_times;
    use crate::tests::{Rng, few};

    /// Checks that decoding restores the times of a batch; returns the chunk, and the length of the shifts in bytes.
    fn round_trip(series: &[u64], times: &[i64], state: &mut EncoderState) -> (Chunk, usize) {
        let (mut shifts, mut out) = (vec![7], Vec::new());
        let chunk = encode_times_of_series(series, times, state, &mut shifts, &mut out);
        assert!(shifts.len() <= SHIFTS_BYTES_MAX);
        assert!(shifts.is_empty() || shifts.len() + out.len() <= 8 * times.len());
        let mut found = vec![0; times.len()];
        decode_times(&chunk, &out, &mut found).unwrap();
        if !shifts.is_empty() {
            let near = found.clone();
            unshift(series, &shifts, &mut found).unwrap();
            for row in (0..times.len()).step_by(29) {
                let shift = shift_at(series, &shifts, row).unwrap();
                assert_eq!(near[row].wrapping_add(shift), found[row], "row {row}");
            }
        }
        assert_eq!(found, times);
        (chunk, shifts.len())
    }

    /// Creates the times of several series, `rows` rows each. Times are one tick apart, with a jitter of up to 2^20
    /// units of 100; each series begins at a random time.
    fn in_turns(rng: &mut Rng, rows: usize, same_clock: bool) -> (Vec<u64>, Vec<i64>) {
        let (mut series, mut times) = (Vec::new(), Vec::new());
        let begin = (rng.next() >> 10) as i64;
        while series.len() < VECTOR_ROWS {
            let id = series.last().map_or(5, |last| last + 1 + rng.below(3));
            let own = if same_clock { 0 } else { rng.below(1 << 40) };
            for row in 0..(rows as u64).min((VECTOR_ROWS - series.len()) as u64) {
                let late = rng.below(1 << 20) * 100 + own;
                series.push(id);
                times.push(begin + (row * 1_000_000_000 + late) as i64);
            }
        }
        (series, times)
    }

    #[test]
    fn each_series_lies_near_its_line() {
        let mut rng = Rng(4330);
        for same_clock in [true, false] {
            for rows in [200, 400, 700] {
                let mut state = EncoderState::default();
                for round in 0..few(100) {
                    let (series, times) = in_turns(&mut rng, rows, same_clock);
                    let (chunk, shifts) = round_trip(&series, &times, &mut state);
                    assert_eq!(chunk.encoding, chunk::SLOPE, "round {round}");
                    // For each row the 20 bits of the jitter; in addition eight bytes for the unit.
                    assert!(chunk.len() <= 20 * 128 + 8, "{chunk:?}");
                    let count = VECTOR_ROWS.div_ceil(rows);
                    assert!(0 < shifts && shifts <= 9 * (count - 1));
                }
            }
        }
    }

    #[test]
    fn times_far_from_any_line_are_stored_directly() {
        let mut rng = Rng(4331);
        let ends = [0, 1, -1, i64::MIN, i64::MAX, 1 << 40];
        for _ in 0..few(300) {
            let mut state = EncoderState::default();
            let rows = 1 + rng.below(1024) as usize;
            let each = 1 + rng.below(600);
            let series: Vec<u64> = (0..rows as u64).map(|row| row / each).collect();
            let style = rng.below(3);
            for _ in 0..3 {
                let times: Vec<i64> = (0..rows)
                    .map(|row| match style {
                        0 => ends[rng.below(6) as usize].wrapping_add(rng.below(3) as i64),
                        1 => rng.next() as i64,
                        _ => row as i64 * 10,
                    })
                    .collect();
                round_trip(&series, &times, &mut state);
            }
        }
    }

    /// Tests times on lines at the ends of the time range, and from one end to the other: shifts wrap, and decoding
    /// still restores the times.
    #[test]
    fn lines_at_the_ends_of_time_come_back() {
        let mut rng = Rng(4332);
        let length = 300 * 1_000_000_000;
        let begins = [i64::MIN, 0, -length, i64::MAX - length - (1 << 20) * 100];
        let mut shifted = 0;
        for _ in 0..few(100) {
            let mut state = EncoderState::default();
            let (mut series, mut times) = (Vec::new(), Vec::new());
            for id in [0, 7, u64::MAX] {
                let begin = begins[rng.below(4) as usize];
                for row in 0..300 {
                    series.push(id);
                    times.push(begin + row * 1_000_000_000 + (rng.below(1 << 20) * 100) as i64);
                }
            }
            let (chunk, bytes) = round_trip(&series, &times, &mut state);
            shifted += u64::from(chunk.encoding == chunk::SLOPE && bytes > 0);
        }
        assert_eq!(shifted, few(100));
    }

    /// Any bytes are either valid shifts for these series or are rejected with `Corrupt`.
    #[test]
    fn any_bytes_are_shifts_or_refused() {
        let mut rng = Rng(4333);
        let mut read = 0;
        for _ in 0..few(20_000) {
            let rows = rng.below(40) as usize;
            let series: Vec<u64> = (0..rows).map(|_| rng.next() >> 62).collect();
            let mut times: Vec<i64> = (0..rows).map(|_| rng.next() as i64).collect();
            let shifts: Vec<u8> = (0..rng.below(30))
                .map(|_| rng.next() as u8 & (rng.next() >> rng.below(60)) as u8)
                .collect();
            read += u64::from(unshift(&series, &shifts, &mut times).is_ok());
        }
        assert!(cfg!(miri) || read > 0);
    }

    #[test]
    fn odd_shifts_are_refused() {
        let series = [1, 1, 2, 3, 3];
        let read = |shifts: &[u8]| unshift(&series, shifts, &mut [0; 5]);
        assert!(read(&[1, 9, 0]).is_ok());
        for shifts in [
            &[][..],
            &[0],
            &[1, 9],
            &[2, 9],
            &[9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
            &[0, 0, 0],
        ] {
            assert!(read(shifts).is_err(), "{shifts:?}");
        }
    }
}
