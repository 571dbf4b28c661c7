//! Chooses an encoding for a vector and writes its payload.
//!
//! Costs are counted in bits, and are exact except for the delta of row 0, which is not used. The encoding that the
//! encoder state remembers is tried first and kept while it fits; otherwise a search tries all encodings.

pub(crate) mod batch;
mod block;
mod correct;
mod dictionary;
pub(crate) mod encoder_state;
pub(crate) mod encoder_state_bytes;
mod few;
pub(crate) mod fit;
mod layout;
mod nested;
mod single;
mod split;
mod write;

use crate::chunk::{self, Chunk, Correction};
use crate::column::ColumnType;
use crate::loops::float::{Alp, DIVIDE, EXPONENT_MAX};
use crate::{kernel, nulls};
use block::Block;
use core::cell::RefCell;
use encoder_state::EncoderState;
use fit::scattered;
use layout::{Layout, LayoutMemory, Preference};
use split::Split;
use tidalite_base::limits::VECTOR_ROWS;
use write::Exceptions;

/// Scratch buffers for encoding a vector, one set per thread. Allocating and zeroing the buffers for each short vector
/// would take longer than encoding it.
struct Scratch {
    ints: Block,
    steps: Block,
    corrections: Block,
    bad: [u16; VECTOR_ROWS],
}

thread_local! {
    static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Scratch::new());
}

/// The parts of the scratch buffers that a vector of a given length uses.
struct Buffers<'a> {
    ints: &'a mut [u64],
    steps: &'a mut [u64],
    corrections: &'a mut [u64],
    bad: &'a mut [u16],
}

impl Scratch {
    fn new() -> Box<Self> {
        Box::new(Self {
            ints: [0; VECTOR_ROWS],
            steps: [0; VECTOR_ROWS],
            corrections: [0; VECTOR_ROWS],
            bad: [0; VECTOR_ROWS],
        })
    }

    fn buffers(&mut self, rows: usize) -> Buffers<'_> {
        Buffers {
            ints: &mut self.ints[..rows],
            steps: &mut self.steps[..rows],
            corrections: &mut self.corrections[..rows],
            bad: &mut self.bad[..rows],
        }
    }
}

fn with_buffers<T>(rows: usize, work: impl FnOnce(Buffers<'_>) -> T) -> T {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(scratch.buffers(rows)),
        // This is an inner vector: the outer vector is using the buffers of this thread, so the inner vector gets new
        // ones.
        Err(_) => work(Scratch::new().buffers(rows)),
    })
}

/// Encodes 1 to 1024 timestamps, in any order, and appends the payload to `out`.
///
/// Cost: 0.2 ns per value if the delta is constant; otherwise 1 ns if the state fits, and 3 ns if it does not.
///
/// # Panics
/// If there are no timestamps or more than 1024.
pub fn encode_times(times: &[i64], state: &mut EncoderState, out: &mut Vec<u8>) -> Chunk {
    let words = kernel::words(times);
    let chunk = new_chunk(words);
    if kernel::constant_step(words) {
        return constant_step(chunk, words);
    }
    with_buffers(words.len(), |buffers| {
        let Buffers {
            ints,
            steps,
            corrections: rest,
            ..
        } = buffers;
        let (layout, slope) = state.layouts.lay_out_times(words, steps, rest);
        if layout.fit.bits >= 64 * words.len() as u64 {
            return write::raw(chunk, words, out);
        }
        let mut codes = [chunk::FOR, chunk::DELTA];
        let ints = match slope {
            0 => {
                ints.copy_from_slice(words);
                ints
            }
            _ => {
                codes[0] = chunk::SLOPE;
                rest
            }
        };
        let values = write::Values {
            ints,
            steps,
            words,
            flip: 0,
            corrections: &[],
            correction: Correction::default(),
        };
        let mut chunk = write::layout(chunk, codes, layout, values, Exceptions::none(), out);
        if slope != 0 {
            chunk.start = slope;
        }
        chunk
    })
}

/// Encodes 1 to 1024 words of a column and appends the payload to `out`.
///
/// Cost: 1 to 4 ns per value if the state fits, 20 to 50 ns if it does not.
///
/// # Panics
/// If there are no words or more than 1024.
pub fn encode_column(
    ty: ColumnType,
    values: &[u64],
    state: &mut EncoderState,
    out: &mut Vec<u8>,
) -> Chunk {
    column(ty, values, state, chunk::RUNS + 1, out)
}

/// Encodes only with encodings whose code is below `below`, because an inner vector must not have the encoding of the
/// vector around it.
fn column(
    ty: ColumnType,
    values: &[u64],
    state: &mut EncoderState,
    below: u8,
    out: &mut Vec<u8>,
) -> Chunk {
    let mut chunk = new_chunk(values);
    if kernel::all_equal(values) {
        chunk.encoding = chunk::CONSTANT;
        chunk.base = values[0];
        return chunk;
    }
    if let Some(null) = ty.null()
        && values.contains(&null)
    {
        return with_nulls(ty, values, null, state, out);
    }
    // An inner vector must not be narrow.
    let outermost = below > chunk::RUNS;
    if outermost && ty.is_float() && single::is_likely(values) && kernel::all_single(values) {
        return single::encode(chunk, values, state, plain_floats, out);
    }
    with_buffers(values.len(), |buffers| match ty.base() {
        base @ (ColumnType::I64 | ColumnType::U64) => {
            integers(chunk, values, buffers, base, state, below, out)
        }
        _ => floats(chunk, values, buffers, state, below, out),
    })
}

/// Encodes a vector in which some but not all words are null.
fn with_nulls(
    ty: ColumnType,
    words: &[u64],
    null: u64,
    state: &mut EncoderState,
    out: &mut Vec<u8>,
) -> Chunk {
    let begin = out.len();
    let mut block = [0; VECTOR_ROWS];
    let filled = &mut block[..words.len()];
    nulls::fill_gaps(words, null, filled);
    nulls::write(words, null, out);
    let mut chunk = encode_column(ty.base(), filled, state, out);
    let length = out.len() - begin;
    if length >= 8 * words.len() {
        out.truncate(begin);
        return write::raw(new_chunk(words), words, out);
    }
    chunk.flags |= chunk::NULLS;
    chunk.length = length as u32;
    chunk
}

/// Encodes the floats of an outermost vector.
fn plain_floats(chunk: Chunk, words: &[u64], state: &mut EncoderState, out: &mut Vec<u8>) -> Chunk {
    with_buffers(words.len(), |buffers| {
        floats(chunk, words, buffers, state, chunk::RUNS + 1, out)
    })
}

fn new_chunk(words: &[u64]) -> Chunk {
    assert!((1..=VECTOR_ROWS).contains(&words.len()), "1 to 1024 rows");
    Chunk {
        rows: words.len() as u16,
        ..Chunk::default()
    }
}

fn constant_step(mut chunk: Chunk, words: &[u64]) -> Chunk {
    chunk.encoding = chunk::DELTA;
    chunk.start = words[0];
    chunk.base = words.get(1).map_or(0, |next| next.wrapping_sub(words[0]));
    chunk
}

fn integers(
    chunk: Chunk,
    words: &[u64],
    buffers: Buffers<'_>,
    ty: ColumnType,
    state: &mut EncoderState,
    below: u8,
    out: &mut Vec<u8>,
) -> Chunk {
    let rows = words.len();
    let flip = if ty == ColumnType::U64 { 1 << 63 } else { 0 };
    let Buffers { ints, steps, .. } = buffers;
    for (int, &word) in ints.iter_mut().zip(words) {
        *int = word ^ flip;
    }
    let layout = state.layouts.lay_out(ints, steps, Preference::Bases);
    let bits = layout.fit.bits;
    // Searches a list or runs if they may be smaller. If a search has found nothing smaller, the state delays the next
    // one.
    let other = matches!(state.encoding, chunk::LIST | chunk::RUNS);
    let fits = state.encoding != 0 && !other && state.holds(bits, rows);
    if bits > GOOD * rows as u64 && (!fits || state.grow_old()) {
        state.learn(chunk::FOR, bits, rows);
        // Packed values are padded, so the layout can cost more than the unencoded words; another encoding must be
        // smaller than both.
        let bits = bits.min(64 * rows as u64);
        if let Some(found) = few::search(ty, words, bits, state, below, column) {
            state.encoding = found.encoding;
            return write::nested(chunk, &found, out);
        }
    }
    if bits >= 64 * rows as u64 {
        return write::raw(chunk, words, out);
    }
    let values = write::Values {
        ints,
        steps,
        words,
        flip,
        corrections: &[],
        correction: Correction::default(),
    };
    write::layout(
        chunk,
        [chunk::FOR, chunk::DELTA],
        layout,
        values,
        Exceptions::none(),
        out,
    )
}

/// A vector of floats encoded as decimals, with the cost of this encoding in bits.
struct Decimals {
    alp: Alp,
    layout: Layout,
    exceptions: Exceptions,
    correction: Correction,
    bits: u64,
}

impl Decimals {
    /// Encodes floats as decimals into the scratch buffers; returns `None` if more than `bad_max` rows are exceptions
    /// (stored unencoded). If `correcting`, small corrections are used where they save space.
    fn of(
        alp: Alp,
        words: &[u64],
        buffers: &mut Buffers<'_>,
        layouts: &mut LayoutMemory,
        bad_max: usize,
        correcting: bool,
    ) -> Option<Self> {
        let Buffers {
            ints,
            steps,
            corrections,
            bad,
        } = buffers;
        let mut count = kernel::alp_encode(alp, words, ints, bad).bad;
        let mut correction = Correction::default();
        if correcting && count > 0 {
            (correction, count) =
                correct::correct(alp, words, ints, &mut bad[..count], corrections);
        }
        if count > bad_max || count == words.len() {
            return None;
        }
        let bad = &bad[..count];
        fill_gaps(ints, bad);
        let exceptions = Exceptions::of(bad, words);
        let layout = layouts.lay_out(ints, steps, Preference::Bases);
        let width = u32::from(correction.width);
        let bits = layout.fit.bits
            + exceptions.bits(words.len())
            + 8 * crate::loops::pack::packed_bytes(words.len(), width) as u64;
        Some(Self {
            correction,
            alp,
            layout,
            exceptions,
            bits,
        })
    }
}

/// Gives each exception (word stored unencoded) the integer of the row before it, so that the exception neither widens
/// the window nor adds a delta. Exceptions at the beginning get the first integer after them.
fn fill_gaps(ints: &mut [u64], bad: &[u16]) {
    let lead = bad
        .iter()
        .enumerate()
        .take_while(|&(i, &row)| usize::from(row) == i)
        .count();
    for i in 0..lead {
        ints[i] = ints[lead];
    }
    for &row in &bad[lead..] {
        ints[usize::from(row)] = ints[usize::from(row) - 1];
    }
}

fn floats(
    mut chunk: Chunk,
    words: &[u64],
    mut buffers: Buffers<'_>,
    state: &mut EncoderState,
    below: u8,
    out: &mut Vec<u8>,
) -> Chunk {
    let rows = words.len();
    let mut encoding = state.encoding;
    if encoding == 0 || encoding >= below || state.grow_old() {
        encoding = search(words, &mut buffers, state, below);
    }
    // The loop runs at most twice: with the remembered encoding, then with the encoding that a search found.
    loop {
        let searched = state.age == 0;
        match encoding {
            chunk::ALP_FOR => {
                let bad_max = if searched { rows } else { state.bad_max(rows) };
                let decimals = Decimals::of(
                    state.alp,
                    words,
                    &mut buffers,
                    &mut state.layouts,
                    bad_max,
                    state.detail == encoder_state::CORRECTING,
                );
                if let Some(found) = decimals
                    && (searched || state.holds(found.bits, rows))
                {
                    state.age = state.age.max(1);
                    if found.bits >= 64 * rows as u64 {
                        return write::raw(chunk, words, out);
                    }
                    chunk.exponent = found.alp.exponent;
                    chunk.factor = found.alp.factor;
                    let codes = [chunk::ALP_FOR, chunk::ALP_DELTA];
                    let values = write::Values {
                        ints: buffers.ints,
                        steps: buffers.steps,
                        words,
                        flip: 0,
                        corrections: buffers.corrections,
                        correction: found.correction,
                    };
                    return write::layout(
                        chunk,
                        codes,
                        found.layout,
                        values,
                        found.exceptions,
                        out,
                    );
                }
            }
            chunk::ORDERED_FOR => {
                buffers.ints.copy_from_slice(words);
                let zeros = trailing_zeros(words);
                kernel::ordered(buffers.ints, zeros);
                chunk.exponent = zeros as u8;
                let layout = state
                    .layouts
                    .lay_out(buffers.ints, buffers.steps, Preference::Bases);
                if layout.fit.bits < 64 * rows as u64
                    && (searched || state.holds(layout.fit.bits, rows))
                {
                    state.age = state.age.max(1);
                    let codes = [chunk::ORDERED_FOR, chunk::ORDERED_DELTA];
                    let values = write::Values {
                        ints: buffers.ints,
                        steps: buffers.steps,
                        words,
                        flip: 0,
                        corrections: &[],
                        correction: Correction::default(),
                    };
                    return write::layout(chunk, codes, layout, values, Exceptions::none(), out);
                }
                chunk.exponent = 0;
            }
            chunk::SPLIT => {
                let high = u32::from(state.detail).clamp(1, chunk::SPLIT_HIGH_MAX);
                if let Some(found) = Split::at(words, high)
                    && found.bits < 64 * rows as u64
                    && (searched || state.holds(found.bits, rows))
                {
                    state.age = state.age.max(1);
                    return write::split(chunk, &found, words, buffers.ints, buffers.steps, out);
                }
            }
            chunk::LIST | chunk::RUNS => {
                if let Some(found) = few::again(ColumnType::F64, words, state, column)
                    && found.bits < 64 * rows as u64
                    && (searched || state.holds(found.bits, rows))
                {
                    state.age = state.age.max(1);
                    return write::nested(chunk, &found, out);
                }
            }
            _ => {
                state.age = state.age.max(1);
                return write::raw(chunk, words, out);
            }
        }
        encoding = if searched {
            chunk::RAW
        } else {
            search(words, &mut buffers, state, below)
        };
    }
}

/// Number of bits per value at which a search stops: if a vector needs at most this many as decimals, or as integers
/// near a base or by deltas, no other encoding is tried.
const GOOD: u64 = 2;

/// Tries all encodings, stores the best in the state, resets the state's age to 0, and returns the code of the best
/// encoding.
fn search(words: &[u64], buffers: &mut Buffers<'_>, state: &mut EncoderState, below: u8) -> u8 {
    let rows = words.len();
    state.learn(chunk::RAW, 64 * rows as u64, rows);
    state.layouts = LayoutMemory::default();
    let mut best = 64 * rows as u64;
    let [multiply, divide] = search_decimals(words);
    for (alp, fee) in [(multiply, 0), (divide, 2)] {
        let Some(alp) = alp else { continue };
        if let Some(found) = Decimals::of(alp, words, buffers, &mut LayoutMemory::default(), rows / 2, true)
            // A division takes three times as long to decode as a multiplication, so a rule that divides must save 2 %
            // of the space.
            && found.bits + found.bits * fee / 100 < best
        {
            best = found.bits;
            state.learn(chunk::ALP_FOR, best, rows);
            state.alp = alp;
            state.detail = if found.correction.width > 0 {
                encoder_state::CORRECTING
            } else {
                0
            };
            state.bad = (found.exceptions.count() * 1024 / rows) as u16;
        }
    }
    if best <= GOOD * rows as u64 {
        return state.encoding;
    }
    buffers.ints.copy_from_slice(words);
    kernel::ordered(buffers.ints, trailing_zeros(words));
    let ordered = LayoutMemory::default()
        .lay_out(buffers.ints, buffers.steps, Preference::Bases)
        .fit
        .bits;
    if ordered + ordered / 32 < best {
        best = ordered;
        state.learn(chunk::ORDERED_FOR, best, rows);
    }
    if let Some(found) = Split::search(words, best)
        && found.bits + found.bits / 32 < best
    {
        best = found.bits;
        state.learn(chunk::SPLIT, best, rows);
        state.detail = found.high() as u8;
    }
    if let Some(found) = few::search(
        ColumnType::F64,
        words,
        best - best / 32,
        state,
        below,
        column,
    ) {
        state.learn(found.encoding, found.bits, rows);
    }
    state.encoding
}

/// Number of low bits that are zero in all words, at most 63.
fn trailing_zeros(words: &[u64]) -> u32 {
    kernel::or(words).trailing_zeros().min(63)
}

/// The cheapest rule that multiplies and the cheapest rule that divides, for a sample of the words. Returns both rules,
/// because the sample may lack the words that only a division can represent.
fn search_decimals(words: &[u64]) -> [Option<Alp>; 2] {
    const SAMPLE: usize = 64;
    let mut sample = [0; SAMPLE];
    let mut count = 0;
    let finite = |word: u64| f64::from_bits(word).is_finite() && word != (-0.0f64).to_bits();
    let stride = words.len().div_ceil(SAMPLE);
    for (i, group) in words.chunks(stride).enumerate() {
        // The sample is taken at random positions: a fixed stride would miss most of a periodic column.
        let (before, from) = group.split_at(scattered(i) % group.len());
        if let Some(&word) = from.iter().chain(before).find(|&&word| finite(word)) {
            sample[count] = word;
            count += 1;
        }
    }
    let sample = &sample[..count];
    if sample.is_empty() {
        return [None, None];
    }
    let (mut ints, mut right, mut bad) = ([0; SAMPLE], [0; SAMPLE], [0; SAMPLE]);
    // Returns the cost of the sample in bits, and whether the rule reproduces all words of the sample cheaply.
    let mut try_rule = |alp: Alp| {
        let ints = &mut ints[..count];
        let wrong = kernel::alp_encode(alp, sample, ints, &mut bad).bad;
        if wrong == count {
            return (u64::MAX, false);
        }
        right[..count].copy_from_slice(ints);
        fill_gaps(ints, &bad[..wrong]);
        let width = crate::loops::scan::bits(kernel::extent(ints).span());
        let beside = match wrong {
            0 => 0,
            _ => correct::sample_bits(alp, sample, &right, &bad[..wrong]),
        };
        // A rule with one more decimal digit would cost more than three bits per value, so this rule is good enough.
        let complete = beside <= 3 * count as u64;
        (u64::from(width) * count as u64 + beside, complete)
    };
    let mut multiply = (u64::MAX, None);
    // Tries the rules with the fewest decimals first: once a rule reproduces all words, more decimals only give larger
    // integers.
    'decimals: for decimals in 0..=EXPONENT_MAX {
        let mut all = false;
        for exponent in decimals..=EXPONENT_MAX {
            let factor = exponent - decimals;
            let alp = Alp { exponent, factor };
            let (bits, complete) = try_rule(alp);
            if bits < multiply.0 {
                multiply = (bits, Some(alp));
            }
            all |= complete;
            if complete && exponent == 0 {
                break 'decimals; // all words are whole numbers, so more decimals cannot help
            }
        }
        if all {
            break;
        }
    }
    let mut divide = (u64::MAX, None);
    for exponent in 1..=EXPONENT_MAX {
        let alp = Alp {
            exponent,
            factor: DIVIDE,
        };
        let (bits, complete) = try_rule(alp);
        if bits < divide.0 {
            divide = (bits, Some(alp));
        }
        if complete {
            break;
        }
    }
    [multiply.1, divide.1]
}
