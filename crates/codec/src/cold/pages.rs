//! Converts vectors to pages of the compressor pco and back.
//!
//! 1. Allocations of pco depend on the model, which is checked here before a page is read: no dictionary, no
//!    convolution, a window of at most 2^15 rows.
//! 2. A model or a page with bytes left over is damaged.
//! 3. Words round-trip through pco bit by bit, NaN and -0.0 included.

use super::column::ColdColumn;
use crate::chunk::{self, Chunk};
use crate::column::ColumnType;
use crate::{kernel, nulls};
use core::cell::RefCell;
use pco::data_types::Number;
use pco::metadata::{DeltaEncoding, Mode};
use pco::wrapped::{ChunkDecompressor, FileCompressor, FileDecompressor};
use pco::{ChunkConfig, PagingSpec};
use tidalite_base::Corrupt;
use tidalite_base::limits::VECTOR_ROWS;

const LEVEL: usize = 8;
const HEAD_BYTES: usize = 3;
/// The supported major version of the format of pco.
const VERSION: u8 = 4;
/// The number of the pco variant that has a dictionary, in the first four bits of a model.
const DICTIONARY: u8 = 4;
/// Binary logarithm of the maximum number of rows that a page may look back (this constant), and of the rows of state
/// that a page may carry (next constant).
const WINDOW_LOG_MAX: u32 = 15;
const STATE_LOG_MAX: u32 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbers {
    F64 = 0,
    I64 = 1,
    U64 = 2,
    F32 = 3,
}

impl Numbers {
    fn of(ty: ColumnType, words: &[u64]) -> Self {
        match ty.base() {
            ColumnType::I64 => Self::I64,
            ColumnType::U64 => Self::U64,
            ColumnType::F32 if kernel::all_single(words) => Self::F32,
            _ => Self::F64,
        }
    }
}

pub(super) fn encode(ty: ColumnType, vectors: &[&[u64]]) -> Option<ColdColumn> {
    let (mut words, mut pages) = (Vec::new(), Vec::new());
    for vector in vectors {
        if crate::kernel::all_equal(vector) {
            continue;
        }
        let begin = words.len();
        match ty.null().filter(|null| vector.contains(null)) {
            Some(null) => {
                words.resize(begin + vector.len(), 0);
                nulls::fill_gaps(vector, null, &mut words[begin..]);
            }
            None => words.extend_from_slice(vector),
        }
        pages.push(vector.len());
    }
    if pages.is_empty() {
        return None;
    }
    let numbers = Numbers::of(ty, &words);
    let mut model = vec![numbers as u8];
    let payloads = match numbers {
        Numbers::F64 => compress(crate::as_floats(&words), pages, &mut model),
        Numbers::I64 => compress(crate::as_integers(&words), pages, &mut model),
        Numbers::U64 => compress(&words, pages, &mut model),
        Numbers::F32 => {
            let narrow = words.iter().map(|&word| ColumnType::narrow(word));
            compress(&narrow.collect::<Vec<f32>>(), pages, &mut model)
        }
    };
    let mut payloads = payloads.ok()?.into_iter();
    let mut column = ColdColumn {
        model,
        vectors: Vec::new(),
    };
    for vector in vectors {
        if crate::kernel::all_equal(vector) {
            column.vectors.push(None);
            continue;
        }
        let page = payloads.next()?;
        let null = ty.null().filter(|null| vector.contains(null));
        let (mut payload, mut flags) = (Vec::new(), 0);
        if let Some(null) = null {
            nulls::write(vector, null, &mut payload);
            flags = chunk::NULLS;
        }
        payload.extend_from_slice(&page);
        let chunk = Chunk {
            encoding: chunk::COLD,
            rows: vector.len() as u16,
            length: payload.len() as u32,
            flags,
            ..Chunk::default()
        };
        column.vectors.push(Some((chunk, payload)));
    }
    Some(column)
}

/// Compresses the numbers to pages, and appends the rest of the model to the model's bytes.
fn compress<T: Number>(
    numbers: &[T],
    pages: Vec<usize>,
    model: &mut Vec<u8>,
) -> pco::errors::PcoResult<Vec<Vec<u8>>> {
    let count = pages.len();
    let config = ChunkConfig::default()
        .with_compression_level(LEVEL)
        .with_paging_spec(PagingSpec::Exact(pages));
    let file = FileCompressor::default();
    file.write_header(&mut *model)?;
    let mut chunk = file.chunk_compressor(numbers, &config)?;
    chunk.write_meta(&mut *model)?;
    (0..count)
        .map(|page| {
            let mut bytes = Vec::new();
            chunk.write_page(page, &mut bytes)?;
            Ok(bytes)
        })
        .collect()
}

pub(super) fn decode(
    model: &[u8],
    chunk: &Chunk,
    bytes: &[u8],
    out: &mut [u64],
) -> Result<(), Corrupt> {
    if chunk.rows() != out.len() || !(1..=VECTOR_ROWS).contains(&out.len()) {
        return Err(Corrupt::new("chunk: rows", 0, chunk.rows(), out.len()));
    }
    if chunk.flags & chunk::NULLS != 0 {
        let (nulls, chunk, bytes) = nulls::Nulls::split(chunk, bytes)?;
        decode(model, &chunk, bytes, out)?;
        return nulls.put(out);
    }
    let plain = Chunk {
        encoding: chunk::COLD,
        rows: chunk.rows,
        length: chunk.length,
        ..Chunk::default()
    };
    // Base and start of `plain` are zero, and `Nulls::split` has not changed them in `chunk`.
    if *chunk != plain || bytes.len() != chunk.len() {
        let found = format!("{chunk:?} with {} bytes", bytes.len());
        return Err(Corrupt::new(
            "chunk of a cold vector",
            0,
            found,
            "a plain one",
        ));
    }
    MODELS.with(|models| match models.try_borrow_mut() {
        Ok(mut models) => models.get(model)?.decode(bytes, out),
        Err(_) => Model::read(model)?.decode(bytes, out),
    })
}

/// A parsed model of pco, ready to decode pages of one number type.
enum Model {
    F64(ChunkDecompressor<f64>),
    I64(ChunkDecompressor<i64>),
    U64(ChunkDecompressor<u64>),
    F32(ChunkDecompressor<f32>),
}

impl Model {
    fn read(model: &[u8]) -> Result<Self, Corrupt> {
        Ok(match model.first() {
            Some(0) => Self::F64(read_model(model, 52)?),
            Some(1) => Self::I64(read_model(model, 0)?),
            Some(2) => Self::U64(read_model(model, 0)?),
            Some(3) => Self::F32(read_model(model, 23)?),
            kind => {
                let found = format!("kind {kind:?}");
                return Err(Corrupt::new("model of a cold column", 0, found, "0 to 3"));
            }
        })
    }

    fn decode(&mut self, bytes: &[u8], out: &mut [u64]) -> Result<(), Corrupt> {
        match self {
            Self::F64(model) => {
                let mut floats = [0.0; VECTOR_ROWS];
                let floats = &mut floats[..out.len()];
                read_page(model, bytes, floats)?;
                for (place, float) in out.iter_mut().zip(floats) {
                    *place = float.to_bits();
                }
                Ok(())
            }
            Self::I64(model) => read_page(model, bytes, crate::times_mut(out)),
            Self::U64(model) => read_page(model, bytes, out),
            Self::F32(model) => {
                let mut floats = [0.0f32; VECTOR_ROWS];
                let floats = &mut floats[..out.len()];
                read_page(model, bytes, floats)?;
                for (place, &mut float) in out.iter_mut().zip(floats) {
                    *place = ColumnType::widen(float);
                }
                Ok(())
            }
        }
    }
}

fn damaged(what: &str, found: impl core::fmt::Display) -> Corrupt {
    Corrupt::new(what, 0, found, "what pco wrote")
}

/// Parses a model of pco. Quantization in the model may drop up to `quantum_max` low bits of each number.
fn read_model<T: Number>(model: &[u8], quantum_max: u32) -> Result<ChunkDecompressor<T>, Corrupt> {
    let bad = |found: &dyn core::fmt::Display| damaged("model of a cold column", found);
    let bytes = model.get(1..).unwrap_or_default();
    // pco allocates a dictionary before reading it, so a model with a dictionary is rejected here. pco writes a
    // dictionary only on request.
    match model.get(HEAD_BYTES) {
        Some(first) if first & 15 != DICTIONARY && bytes[0] == VERSION => {}
        _ => return Err(bad(&format!("{:02x?}", &model[..model.len().min(4)]))),
    }
    let (file, bytes) = FileDecompressor::new(bytes).map_err(|error| bad(&error))?;
    let (chunk, rest) = file
        .chunk_decompressor::<T, _>(bytes)
        .map_err(|error| bad(&error))?;
    if !rest.is_empty() {
        return Err(bad(&format!("{} bytes too many", rest.len())));
    }
    let meta = chunk.meta();
    let mode_is_known = match &meta.mode {
        Mode::Classic | Mode::IntMult(_) | Mode::FloatMult(_) => true,
        Mode::FloatQuant(bits) => *bits <= quantum_max,
        _ => false,
    };
    let delta_is_known = match &meta.delta_encoding {
        DeltaEncoding::NoOp | DeltaEncoding::Consecutive { .. } => true,
        DeltaEncoding::Lookback { config, .. } => {
            config.window_n_log <= WINDOW_LOG_MAX && config.state_n_log <= STATE_LOG_MAX
        }
        _ => false,
    };
    if !mode_is_known || !delta_is_known {
        return Err(bad(&format!("{:?}, {:?}", meta.mode, meta.delta_encoding)));
    }
    Ok(chunk)
}

fn read_page<T: Number>(
    model: &mut ChunkDecompressor<T>,
    bytes: &[u8],
    out: &mut [T],
) -> Result<(), Corrupt> {
    let bad = |found: &dyn core::fmt::Display| damaged("page of a cold vector", found);
    let mut page = model
        .page_decompressor(bytes, out.len())
        .map_err(|error| bad(&error))?;
    let progress = page.read(out).map_err(|error| bad(&error))?;
    let rest = page.into_src();
    if progress.n_processed != out.len() || !progress.finished || !rest.is_empty() {
        let found = format!(
            "{} rows, {} bytes too many",
            progress.n_processed,
            rest.len()
        );
        return Err(bad(&found));
    }
    Ok(())
}

/// Cache of the models that this thread used last: every vector of a leaf needs the model of its column, and preparing
/// a model takes longer than decoding a vector.
struct Models {
    /// The parsed models, each with its serialized bytes as the key.
    known: Vec<(Vec<u8>, Model)>,
    /// Index of the model to replace next in `known`.
    next: usize,
}

/// Maximum number of cached models of a thread. A model takes 2 kB of memory on average, and 1 MB at most.
const MODELS_MAX: usize = 24;

thread_local! {
    static MODELS: RefCell<Models> = const { RefCell::new(Models { known: Vec::new(), next: 0 }) };
}

impl Models {
    fn get(&mut self, bytes: &[u8]) -> Result<&mut Model, Corrupt> {
        let place = match self.known.iter().position(|(known, _)| known == bytes) {
            Some(place) => place,
            None => {
                let read = (bytes.to_vec(), Model::read(bytes)?);
                if self.known.len() < MODELS_MAX {
                    self.known.push(read);
                    self.known.len() - 1
                } else {
                    let place = self.next % MODELS_MAX;
                    self.next = place + 1;
                    self.known[place] = read;
                    place
                }
            }
        };
        Ok(&mut self.known[place].1)
    }
}
