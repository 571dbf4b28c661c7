//! Tidalite's codec and the other coders with a common interface, from a block of words to bytes and back.

use tidalite_codec::{Chunk, ColumnType, EncoderState};
use tidalite_codec::{
    decode_cold, decode_column, decode_times, encode_cold, encode_column, encode_times, times_mut,
};

use super::columns::Kind;
use super::{gorilla, plain_alp};
use crate::engine::Result;

/// Number of rows of a vector in Tidalite's codec, ALP and Gorilla.
const VECTOR: usize = 1024;
/// Number of rows that pco and zstd encode at once: as many as in a leaf of Tidalite.
const LEAF: usize = 16 * VECTOR;

/// The coders (compression methods) that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coder {
    Ours,
    /// The cold form of Tidalite: encodes a leaf at a time; each vector in it can be decoded alone.
    Cold,
    Pco,
    Zstd,
    Gorilla,
    Alp,
}

/// All coders, with Tidalite's first.
pub(crate) const CODERS: [Coder; 6] = [
    Coder::Ours,
    Coder::Cold,
    Coder::Pco,
    Coder::Zstd,
    Coder::Gorilla,
    Coder::Alp,
];

/// An encoded column: consecutive blocks, and the positions at which they end.
#[derive(Default)]
pub(crate) struct Encoded {
    bytes: Vec<u8>,
    /// End of each block, and number of rows in the block.
    ends: Vec<(usize, usize)>,
    /// Number of bytes that a file would not contain.
    padding: usize,
}

impl Encoded {
    /// Number of bytes that the column would take in a file.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() - self.padding
    }
}

/// Buffers into which blocks are decoded.
pub(crate) struct Room {
    words: Vec<u64>,
    floats: Vec<f64>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self {
            words: vec![0; LEAF],
            floats: vec![0.0; LEAF],
        }
    }
}

/// A decoded block, in the form in which its coder returns values.
pub(crate) enum Seen<'r> {
    Words(&'r [u64]),
    Floats(&'r [f64]),
}

impl Seen<'_> {
    /// True if this block equals the words that were encoded.
    pub(crate) fn is(&self, words: &[u64]) -> bool {
        match self {
            Self::Words(seen) => *seen == words,
            Self::Floats(seen) => {
                let mut pairs = seen.iter().zip(words);
                seen.len() == words.len() && pairs.all(|(float, word)| float.to_bits() == *word)
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Words(seen) => seen.len(),
            Self::Floats(seen) => seen.len(),
        }
    }

    /// The sum of the floats, computed by the same loop for all coders.
    pub(crate) fn sum(&self) -> f64 {
        tidalite_codec::sum_floats(match self {
            Self::Words(words) => tidalite_codec::as_floats(words),
            Self::Floats(floats) => floats,
        })
    }
}

impl Coder {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ours => "tidalite",
            Self::Cold => "cold",
            Self::Pco => "pco-8",
            Self::Zstd => "zstd-3",
            Self::Gorilla => "gorilla",
            Self::Alp => "alp",
        }
    }

    /// True if the coder supports this kind of column.
    pub(crate) fn takes(self, kind: Kind) -> bool {
        kind == Kind::Float || matches!(self, Self::Ours | Self::Cold | Self::Pco | Self::Zstd)
    }

    fn rows(self) -> usize {
        match self {
            Self::Cold | Self::Pco | Self::Zstd => LEAF,
            _ => VECTOR,
        }
    }

    /// Encodes the words of a series. The bytes include everything that decoding needs.
    pub(crate) fn encode(self, kind: Kind, words: &[u64], to: &mut Encoded) -> Result<()> {
        let mut state = EncoderState::default();
        for block in words.chunks(self.rows()) {
            let (begin, out) = (to.bytes.len(), &mut to.bytes);
            match self {
                Self::Ours => ours(kind, block, &mut state, out),
                Self::Cold => to.padding += cold(kind, block, &mut state, out),
                Self::Pco => {
                    let config = pco::ChunkConfig::default().with_compression_level(8);
                    if kind == Kind::Float {
                        pco::standalone::simple_compress_into(floats(block), &config, out)?;
                    } else {
                        pco::standalone::simple_compress_into(integers(block), &config, out)?;
                    }
                }
                Self::Zstd => {
                    let bytes: Vec<u8> = block.iter().flat_map(|w| w.to_le_bytes()).collect();
                    out.extend(zstd::bulk::compress(&bytes, 3)?);
                }
                Self::Gorilla => gorilla::encode(block, out),
                Self::Alp => {
                    let size = plain_alp::encode(floats(block), out);
                    to.padding += out.len() - begin - size;
                }
            }
            to.ends.push((to.bytes.len(), block.len()));
        }
        Ok(())
    }

    /// Decodes a column block by block; `see` receives the words of each block.
    pub(crate) fn decode(
        self,
        kind: Kind,
        from: &Encoded,
        room: &mut Room,
        mut see: impl FnMut(Seen<'_>),
    ) -> Result<()> {
        let mut at = 0;
        for &(end, rows) in &from.ends {
            let bytes = &from.bytes[at..end];
            let (out, floats) = (&mut room.words[..rows], &mut room.floats[..rows]);
            at = end;
            match self {
                Self::Ours => {
                    let (chunk, payload) = vector(bytes, rows)?;
                    if kind == Kind::Time {
                        decode_times(&chunk, payload, times_mut(out))?;
                    } else {
                        decode_column(&chunk, payload, out)?;
                    }
                }
                Self::Cold => {
                    warm(kind, bytes, out)?;
                }
                Self::Pco if kind == Kind::Float => {
                    pco::standalone::simple_decompress_into(bytes, floats)?;
                    see(Seen::Floats(floats));
                    continue;
                }
                Self::Pco => {
                    pco::standalone::simple_decompress_into(bytes, times_mut(out))?;
                }
                Self::Zstd => {
                    let raw = zstd::bulk::decompress(bytes, 8 * rows)?;
                    for (place, word) in out.iter_mut().zip(raw.as_chunks::<8>().0) {
                        *place = u64::from_le_bytes(*word);
                    }
                }
                Self::Gorilla => gorilla::decode(bytes, out),
                Self::Alp => {
                    plain_alp::decode(bytes, floats);
                    see(Seen::Floats(floats));
                    continue;
                }
            }
            see(Seen::Words(out));
        }
        Ok(())
    }
}

/// Number of bytes of the length of a payload, which is stored before the chunk.
const LENGTH_BYTES: usize = 2;

/// Appends the length of a payload, its chunk and the payload.
fn put(chunk: &Chunk, payload: &[u8], out: &mut Vec<u8>) {
    out.extend((payload.len() as u16).to_le_bytes());
    chunk.put(out);
    out.extend(payload);
}

/// Decodes the chunk of a vector of `rows` rows at the beginning of `bytes`; also returns the bytes after the chunk.
fn behind_chunk(bytes: &[u8], rows: usize) -> Result<(Chunk, &[u8])> {
    let length = u16::from_le_bytes(*bytes.first_chunk().ok_or("no length")?);
    let of = (rows, usize::from(length));
    let (chunk, end) = Chunk::get(bytes, LENGTH_BYTES, of).ok_or("no chunk")?;
    Ok((chunk, &bytes[end..]))
}

/// Decodes the chunk, and returns the payload, of a vector of `rows` rows at the beginning of `bytes`.
fn vector(bytes: &[u8], rows: usize) -> Result<(Chunk, &[u8])> {
    let (chunk, behind) = behind_chunk(bytes, rows)?;
    Ok((chunk, &behind[..chunk.len()]))
}

fn ours(kind: Kind, block: &[u64], state: &mut EncoderState, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    let chunk = match kind {
        Kind::Float => encode_column(ColumnType::F64, block, state, &mut payload),
        Kind::Integer => encode_column(ColumnType::I64, block, state, &mut payload),
        Kind::Time => encode_times(integers(block), state, &mut payload),
    };
    put(&chunk, &payload, out);
}

/// Encodes a block as a leaf in cold form: first the model, if there is one, with the 16 bytes that describe it in the
/// directory of a leaf; then chunk and payload of each vector, in the smaller of both forms. Returns the number of
/// bytes that a file would not contain: the length of the model part.
fn cold(kind: Kind, block: &[u64], state: &mut EncoderState, out: &mut Vec<u8>) -> usize {
    const MODEL_ENTRY_BYTES: usize = 16;
    let mut hot: Vec<Vec<u8>> = Vec::new();
    for vector in block.chunks(VECTOR) {
        let mut bytes = Vec::new();
        ours(kind, vector, state, &mut bytes);
        hot.push(bytes);
    }
    let ty = match kind {
        Kind::Float => ColumnType::F64,
        Kind::Integer | Kind::Time => ColumnType::I64,
    };
    let vectors: Vec<&[u64]> = block.chunks(VECTOR).collect();
    let column = encode_cold(ty, &vectors).unwrap_or_default();
    let mut parts = hot.clone();
    for (part, vector) in parts.iter_mut().zip(&column.vectors) {
        if let Some((chunk, page)) = vector {
            let mut own = Vec::new();
            put(chunk, page, &mut own);
            if own.len() < part.len() {
                *part = own;
            }
        }
    }
    let size = |parts: &[Vec<u8>]| parts.iter().map(Vec::len).sum::<usize>();
    let mut model = [&[0; MODEL_ENTRY_BYTES][..], &column.model].concat();
    if size(&parts) + model.len() >= size(&hot) {
        (parts, model) = (hot, Vec::new());
    }
    out.extend((model.len() as u32).to_le_bytes());
    out.extend(&model);
    parts.iter().for_each(|part| out.extend(part));
    4
}

/// Decodes the output of `cold`.
fn warm(kind: Kind, bytes: &[u8], out: &mut [u64]) -> Result<()> {
    let length = u32::from_le_bytes(*bytes.first_chunk().ok_or("no length")?);
    let (model, mut rest) = bytes[4..].split_at(length as usize);
    let model = model.get(16..).unwrap_or_default();
    for vector in out.chunks_mut(VECTOR) {
        let (chunk, behind) = behind_chunk(rest, vector.len())?;
        let (payload, behind) = behind.split_at(chunk.len());
        rest = behind;
        if chunk.is_cold() {
            decode_cold(model, &chunk, payload, vector)?;
        } else if kind == Kind::Time {
            decode_times(&chunk, payload, times_mut(vector))?;
        } else {
            decode_column(&chunk, payload, vector)?;
        }
    }
    Ok(())
}

/// Describes in a few words the encodings in the blocks of Tidalite's codec.
pub(crate) fn encodings(from: &Encoded) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    let mut at = 0;
    for &(end, rows) in &from.ends {
        let chunk = vector(&from.bytes[at..end], rows);
        let name = chunk.map_or("unknown", |(chunk, _)| chunk.encoding_name());
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
        at = end;
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let all = from.ends.len();
    let share = |(name, count): &(&str, usize)| format!("{name} {} %", count * 100 / all);
    counts.iter().map(share).collect::<Vec<_>>().join(", ")
}

fn floats(words: &[u64]) -> &[f64] {
    tidalite_codec::as_floats(words)
}

fn integers(words: &[u64]) -> &[i64] {
    tidalite_codec::as_integers(words)
}
