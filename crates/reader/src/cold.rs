//! Decodes columns in cold form (end of section 6 of docs/format.md). Only this module uses an external decoder, for
//! the format Pco.

use crate::chunk::widen;
use crate::error::{Error, Result};
use pco::data_types::Number;
use pco::metadata::{DeltaEncoding, Mode};
use pco::wrapped::FileDecompressor;

const WINDOW_BITS_MAX: u32 = 15;
const STATE_BITS_MAX: u32 = 4;

/// Decodes the Pco page of one vector with the model that all vectors of the column share.
///
/// # Errors
/// If the model is not allowed in a file, or the page does not match the model.
pub fn decode(model: &[u8], page: &[u8], count: usize) -> Result<Vec<u64>> {
    let Some((kind, model)) = model.split_first() else {
        return Err(Error::damaged(0, "an empty model"));
    };
    match kind {
        0 => numbers::<f64>(model, page, count, 52, f64::to_bits),
        1 => numbers::<i64>(model, page, count, 0, i64::cast_unsigned),
        2 => numbers::<u64>(model, page, count, 0, |word| word),
        3 => numbers::<f32>(model, page, count, 23, |float| widen(float.to_bits())),
        _ => Err(Error::damaged(0, "the kind of a model")),
    }
}

fn numbers<T: Number + Default>(
    model: &[u8],
    page: &[u8],
    count: usize,
    quantum_bits_max: u32,
    word: impl Fn(T) -> u64,
) -> Result<Vec<u64>> {
    let damaged = |_| Error::damaged(0, "a page or a model of Pco");
    let (file, rest) = FileDecompressor::new(model).map_err(damaged)?;
    let (mut chunk, rest) = file.chunk_decompressor::<T, _>(rest).map_err(damaged)?;
    let mode = match chunk.meta().mode {
        Mode::Dict(_) => false,
        Mode::FloatQuant(bits) => bits <= quantum_bits_max,
        _ => true,
    };
    let delta = match &chunk.meta().delta_encoding {
        DeltaEncoding::Conv1(_) => false,
        DeltaEncoding::Lookback { config, .. } => {
            config.window_n_log <= WINDOW_BITS_MAX && config.state_n_log <= STATE_BITS_MAX
        }
        _ => true,
    };
    if !mode || !delta || !rest.is_empty() {
        return Err(Error::damaged(0, "a model that readers refuse"));
    }
    let mut decoder = chunk.page_decompressor(page, count).map_err(damaged)?;
    let mut numbers = vec![T::default(); count];
    let progress = decoder.read(&mut numbers).map_err(damaged)?;
    if progress.n_processed != count || !decoder.into_src().is_empty() {
        return Err(Error::damaged(0, "a page of another length"));
    }
    Ok(numbers.into_iter().map(word).collect())
}
