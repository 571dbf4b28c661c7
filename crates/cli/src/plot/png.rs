//! Writes pixels to a PNG file (ISO/IEC 15948): four chunks, no options.
//!
//! ```text
//! signature (8)
//! chunk*      length (4, big-endian) | kind (4) | data | CRC-32 of kind and data (4)
//!   IHDR      width (4) | height (4) | bits 8 | colour 2 (RGB) | 0 | 0 | 0
//!   pHYs      pixels per metre, twice (4 each) | 1
//!   IDAT      zlib of every row: filter 1 (difference from the pixel to the left) | 3 x width
//!   IEND      -
//! ```

use super::raster::Raster;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};
use std::io::{self, Write};

const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];

/// Number of pixels per metre that the file states: 72 dots per inch, for a picture at normal resolution.
const PIXELS_A_METRE: f64 = 2834.65;

/// Encodes the pixels as the bytes of a PNG file.
pub(crate) fn encode(raster: &Raster) -> io::Result<Vec<u8>> {
    let row_bytes = raster.width * 3;
    let mut rows = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut line = Vec::with_capacity(row_bytes + 1);
    for row in raster.pixels.chunks_exact(row_bytes) {
        line.clear();
        line.push(1);
        for (index, byte) in row.iter().enumerate() {
            let left = if index >= 3 { row[index - 3] } else { 0 };
            line.push(byte.wrapping_sub(left));
        }
        rows.write_all(&line)?;
    }
    let mut file = SIGNATURE.to_vec();
    let size = |length: usize| u32::try_from(length).map_err(io::Error::other);
    let mut header = Vec::with_capacity(13);
    header.extend(size(raster.width)?.to_be_bytes());
    header.extend(size(raster.height)?.to_be_bytes());
    header.extend([8, 2, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &header)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small scale"
    )]
    let pixels = (PIXELS_A_METRE * raster.scale).round() as u32;
    let mut density = pixels.to_be_bytes().to_vec();
    density.extend(pixels.to_be_bytes());
    density.push(1);
    chunk(&mut file, *b"pHYs", &density)?;
    chunk(&mut file, *b"IDAT", &rows.finish()?)?;
    chunk(&mut file, *b"IEND", &[])?;
    Ok(file)
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], data: &[u8]) -> io::Result<()> {
    let length = u32::try_from(data.len()).map_err(io::Error::other)?;
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(data);
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(data);
    file.extend(crc.sum().to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Figure, Line, raster, tests::points};
    use std::io::Read;

    /// Decodes a file that `encode` has made, and returns its pixels.
    fn decode(file: &[u8]) -> Vec<u8> {
        assert!(file.starts_with(&SIGNATURE));
        let mut rest = &file[8..];
        let (mut width, mut packed) = (0, Vec::new());
        while !rest.is_empty() {
            let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
            let (kind, data) = (&rest[4..8], &rest[8..8 + length]);
            let mut crc = Crc::new();
            crc.update(&rest[4..8 + length]);
            assert_eq!(rest[8 + length..12 + length], crc.sum().to_be_bytes());
            match kind {
                b"IHDR" => width = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize,
                b"IDAT" => packed.extend(data),
                _ => {}
            }
            rest = &rest[12 + length..];
        }
        let mut lines = Vec::new();
        flate2::read::ZlibDecoder::new(&packed[..])
            .read_to_end(&mut lines)
            .unwrap();
        let mut pixels = Vec::new();
        for line in lines.chunks(width * 3 + 1) {
            assert_eq!(line[0], 1);
            let start = pixels.len();
            for (index, byte) in line[1..].iter().enumerate() {
                let left = if index >= 3 {
                    pixels[start + index - 3]
                } else {
                    0
                };
                pixels.push(byte.wrapping_add(left));
            }
        }
        pixels
    }

    #[test]
    fn reads_back_to_the_same_pixels() {
        let figure = Figure {
            title: "a".into(),
            subtitle: String::new(),
            lines: vec![Line {
                label: "x".into(),
                points: points(&[1.0, 3.0, 2.0]),
                ..Line::default()
            }],
            zone: jiff::tz::TimeZone::UTC,
        };
        let raster = raster::render(&figure, 301, 99, 1.0);
        assert_eq!(decode(&encode(&raster).unwrap()), raster.pixels);
    }
}
