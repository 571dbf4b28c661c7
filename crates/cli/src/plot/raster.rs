//! A canvas of pixels, with anti-aliased lines and a bitmap font that is scaled down smoothly.
//!
//! The font is Spleen 32x64 (`spleen-font`): at a third of its size or less, the steps in its outlines are not visible.

use super::Figure;
use super::chart::{self, Anchor, CHARACTER_WIDTH, Canvas, Color};
use spleen_font::{FONT_32X64, PSF2Font};

/// Height of a character's cell at font size one; the cell is half as wide as high.
const CELL_HEIGHT: f64 = CHARACTER_WIDTH * 2.0;

/// Fraction of the cell's height that is above the base line.
const ASCENT: f64 = 0.78;

/// Width and height of a glyph in the font, in pixels.
const GLYPH: (usize, usize) = (32, 64);

/// Number of samples per pixel of text, in each direction.
const SAMPLES: usize = 4;

/// An image of pixels with red, green and blue, row by row.
pub(crate) struct Raster {
    /// Number of pixels per row.
    pub width: usize,
    /// Number of rows.
    pub height: usize,
    /// The pixels, with three bytes each.
    pub pixels: Vec<u8>,
    /// Number of pixels per unit of the canvas's coordinates.
    pub scale: f64,
    coverage: Vec<u8>,
}

impl Raster {
    fn new(width: usize, height: usize, scale: f64) -> Self {
        Self {
            width,
            height,
            pixels: vec![0; width * height * 3],
            scale,
            coverage: vec![0; width * height],
        }
    }

    /// The range of pixels that a range of coordinates touches, clipped at the edge of the picture.
    fn clip(low: f64, high: f64, limit: usize) -> std::ops::Range<usize> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped"
        )]
        let pixel = |at: f64| at.clamp(0.0, limit as f64) as usize;
        pixel(low.floor())..pixel(high.ceil())
    }

    fn blend(&mut self, x: usize, y: usize, color: Color, coverage: u8) {
        let at = (y * self.width + x) * 3;
        let part = u32::from(coverage);
        for (pixel, ink) in self.pixels[at..at + 3].iter_mut().zip(color) {
            let mixed = (u32::from(*pixel) * (255 - part) + u32::from(ink) * part + 127) / 255;
            *pixel = u8::try_from(mixed).unwrap_or(255);
        }
    }

    /// Marks the pixels that a thick segment with round ends covers. For each pixel the maximum over all segments of a
    /// line counts, so that joints are not darker than the rest.
    fn cover(&mut self, from: (f64, f64), to: (f64, f64), half: f64) {
        let reach = half + 1.0;
        let rows = Self::clip(
            from.1.min(to.1) - reach,
            from.1.max(to.1) + reach,
            self.height,
        );
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length_squared = dx * dx + dy * dy;
        for y in rows {
            let py = y as f64 + 0.5;
            // Only the part of the segment near this row can cover pixels in it, which limits the columns to check.
            let (mut left, mut right) = (from.0.min(to.0), from.0.max(to.0));
            if dy.abs() > 1e-9 {
                let at = |row: f64| from.0 + (row - from.1) / dy * dx;
                let (a, b) = (at(py - reach), at(py + reach));
                left = left.max(a.min(b));
                right = right.min(a.max(b));
            }
            for x in Self::clip(left - reach, right + reach, self.width) {
                let px = x as f64 + 0.5;
                let along = if length_squared > 0.0 {
                    (((px - from.0) * dx + (py - from.1) * dy) / length_squared).clamp(0.0, 1.0)
                } else {
                    0.0
                };
                let (nx, ny) = (from.0 + along * dx - px, from.1 + along * dy - py);
                let share = (half + 0.5 - (nx * nx + ny * ny).sqrt()).clamp(0.0, 1.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "0..=255"
                )]
                let share = (share * 255.0) as u8;
                let slot = &mut self.coverage[y * self.width + x];
                *slot = (*slot).max(share);
            }
        }
    }

    fn glyph(&mut self, rows: &[[bool; GLYPH.0]], x: f64, y: f64, height: f64, color: Color) {
        let width = height / 2.0;
        for py in Self::clip(y, y + height, self.height) {
            for px in Self::clip(x, x + width, self.width) {
                let mut hits = 0;
                for sample in 0..SAMPLES * SAMPLES {
                    let part = |n: usize| (n as f64 + 0.5) / SAMPLES as f64;
                    let u = (px as f64 + part(sample % SAMPLES) - x) / width * GLYPH.0 as f64;
                    let v = (py as f64 + part(sample / SAMPLES) - y) / height * GLYPH.1 as f64;
                    if u >= 0.0 && v >= 0.0 {
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "just checked"
                        )]
                        let lit = rows
                            .get(v as usize)
                            .and_then(|row| row.get(u as usize))
                            .is_some_and(|lit| *lit);
                        hits += usize::from(lit);
                    }
                }
                let coverage = hits * 255 / (SAMPLES * SAMPLES);
                self.blend(px, py, color, u8::try_from(coverage).unwrap_or(255));
            }
        }
    }
}

/// Opacity of translucent boxes, where 255 is opaque.
const VEIL: u8 = 64;

impl Canvas for Raster {
    fn veil(&mut self, boxes: &[(f64, f64, f64, f64)], color: Color) {
        let s = self.scale;
        // Each box begins where the one before it ends, so that no pixel column is coloured twice.
        let mut free_from = 0;
        for (x, y, width, height) in boxes {
            let columns = Self::clip(x * s, (x + width) * s, self.width);
            for column in columns.start.max(free_from)..columns.end {
                for row in Self::clip(y * s, (y + height) * s, self.height) {
                    self.blend(column, row, color, VEIL);
                }
            }
            free_from = free_from.max(columns.end);
        }
    }

    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, color: Color) {
        let s = self.scale;
        for row in Self::clip(y * s, (y + height) * s, self.height) {
            for column in Self::clip(x * s, (x + width) * s, self.width) {
                self.blend(column, row, color, 255);
            }
        }
    }

    fn polyline(&mut self, points: &[(f64, f64)], width: f64, color: Color) {
        let s = self.scale;
        let mut scaled: Vec<(f64, f64)> = points.iter().map(|(x, y)| (x * s, y * s)).collect();
        // Vertical and horizontal lines stay sharp if they run through the middle of pixels.
        if let [a, b] = scaled.as_mut_slice() {
            if a.0 == b.0 {
                (a.0, b.0) = (a.0.round(), b.0.round());
            }
            if a.1 == b.1 {
                (a.1, b.1) = (a.1.round(), b.1.round());
            }
        }
        let half = width * s / 2.0;
        if let [point] = scaled.as_slice() {
            self.cover(*point, *point, half);
        }
        for pair in scaled.windows(2) {
            self.cover(pair[0], pair[1], half);
        }
        let span = |of: fn(&(f64, f64)) -> f64| {
            let values = scaled.iter().map(of).filter(|value| value.is_finite());
            let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
            values.fold((low, high), |(low, high), value| {
                (low.min(value), high.max(value))
            })
        };
        let ((left, right), (top, bottom)) = (span(|point| point.0), span(|point| point.1));
        let reach = half + 1.0;
        for y in Self::clip(top - reach, bottom + reach, self.height) {
            for x in Self::clip(left - reach, right + reach, self.width) {
                let covered = std::mem::take(&mut self.coverage[y * self.width + x]);
                if covered > 0 {
                    self.blend(x, y, color, covered);
                }
            }
        }
    }

    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, color: Color, text: &str) {
        let height = size * CELL_HEIGHT * self.scale;
        let advance = height / 2.0;
        let length = text.chars().count() as f64 * advance;
        let mut pen = x * self.scale
            - match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => length / 2.0,
                Anchor::End => length,
            };
        let top = y * self.scale - height * ASCENT;
        // The bundled font is valid, so this does not fail; without a font the picture would have no labels.
        let Ok(mut font) = PSF2Font::new(FONT_32X64) else {
            return;
        };
        for c in text.chars() {
            let rows = glyph_rows(&mut font, c).or_else(|| glyph_rows(&mut font, '?'));
            self.glyph(&rows.unwrap_or_default(), pen, top, height, color);
            pen += advance;
        }
    }
}

fn glyph_rows(font: &mut PSF2Font<'_>, c: char) -> Option<Vec<[bool; GLYPH.0]>> {
    let glyph = font.glyph_for_utf8(c.encode_utf8(&mut [0; 4]).as_bytes())?;
    Some(
        glyph
            .map(|row| {
                let mut bits = [false; GLYPH.0];
                for (bit, lit) in bits.iter_mut().zip(row) {
                    *bit = lit;
                }
                bits
            })
            .collect(),
    )
}

/// Draws the figure as pixels. `width` and `height` are the size of the picture in pixels; its content is drawn `scale`
/// times as large as with one pixel per unit.
pub(crate) fn render(figure: &Figure, width: u32, height: u32, scale: f64) -> Raster {
    let mut canvas = Raster::new(width as usize, height as usize, scale);
    chart::draw(
        figure,
        f64::from(width) / scale,
        f64::from(height) / scale,
        &mut canvas,
    );
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Line, tests::points};

    #[test]
    fn text_and_lines_leave_ink() {
        let mut canvas = Raster::new(60, 30, 1.0);
        canvas.rect(0.0, 0.0, 60.0, 30.0, [255, 255, 255]);
        canvas.text(2.0, 20.0, 14.0, Anchor::Start, [0, 0, 0], "Aé");
        let dark = canvas.pixels.iter().filter(|byte| **byte < 128).count();
        assert!(dark > 60, "{dark}");
        canvas.polyline(&[(0.0, 29.0), (59.0, 29.0)], 2.0, [200, 0, 0]);
        let last_row = &canvas.pixels[(29 * 60 + 30) * 3..][..3];
        assert_eq!(last_row, [200, 0, 0]);
    }

    #[test]
    fn odd_figures_stay_in_the_picture() {
        for values in [&[f64::MAX, f64::MIN, 0.0][..], &[1.0], &[f64::NAN]] {
            let figure = Figure {
                title: "日本語".into(),
                subtitle: String::new(),
                lines: vec![Line {
                    label: "x".into(),
                    points: points(values),
                    ..Line::default()
                }],
                zone: jiff::tz::TimeZone::UTC,
            };
            for (width, height) in [(1, 1), (100, 60), (300, 20)] {
                let raster = render(&figure, width, height, 2.0);
                assert_eq!(raster.pixels.len(), (width * height * 3) as usize);
            }
        }
    }
}
