//! A canvas that writes an SVG document.

use super::Figure;
use super::chart::{self, Anchor, Canvas, Color};
use std::fmt::Write;

struct Svg {
    body: String,
}

impl Canvas for Svg {
    fn rect(&mut self, x: f64, y: f64, width: f64, height: f64, color: Color) {
        let _ = writeln!(
            self.body,
            r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{}"/>"#,
            hex(color)
        );
    }

    fn polyline(&mut self, points: &[(f64, f64)], width: f64, color: Color) {
        let color = hex(color);
        if let [(x, y)] = points {
            let _ = writeln!(
                self.body,
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="{:.1}" fill="{color}"/>"#,
                width / 2.0
            );
            return;
        }
        let _ = write!(
            self.body,
            r#"<path fill="none" stroke="{color}" stroke-width="{width}" d=""#
        );
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(
                self.body,
                "{}{x:.1} {y:.1}",
                if index == 0 { 'M' } else { 'L' }
            );
        }
        self.body.push_str("\"/>\n");
    }

    fn veil(&mut self, boxes: &[(f64, f64, f64, f64)], color: Color) {
        let _ = write!(
            self.body,
            r#"<path fill="{}" fill-opacity="0.25" d=""#,
            hex(color)
        );
        for (x, y, width, height) in boxes {
            let _ = write!(
                self.body,
                "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z"
            );
        }
        self.body.push_str("\"/>\n");
    }

    fn text(&mut self, x: f64, y: f64, size: f64, anchor: Anchor, color: Color, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = writeln!(
            self.body,
            r#"<text x="{x:.1}" y="{y:.1}" font-size="{size}" text-anchor="{anchor}" fill="{}">{}</text>"#,
            hex(color),
            escaped(text)
        );
    }
}

fn hex([red, green, blue]: Color) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes a text for XML: the five special characters become entities, and control characters are removed.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => safe.push(c),
        }
    }
    safe
}

/// Draws the figure as an SVG document of this size in pixels.
pub(crate) fn render(figure: &Figure, width: u32, height: u32) -> String {
    let mut canvas = Svg {
        body: String::new(),
    };
    chart::draw(figure, f64::from(width), f64::from(height), &mut canvas);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" stroke-linejoin=\"round\" stroke-linecap=\"round\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\">\n\
         <title>{}</title>\n{}</svg>\n",
        escaped(&figure.title),
        canvas.body
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Line, tests::points};

    #[test]
    fn a_hostile_name_stays_text() {
        let figure = Figure {
            title: "</title><script>\u{1b}".into(),
            subtitle: "a & b".into(),
            lines: vec![Line {
                label: "x".into(),
                points: points(&[1.0, 3.0, f64::NAN, 2.0]),
                ..Line::default()
            }],
            zone: jiff::tz::TimeZone::UTC,
        };
        let text = render(&figure, 800, 400);
        assert!(!text.contains("<script>") && !text.contains('\u{1b}'));
        assert!(text.contains("a &amp; b"));
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        // The picture has a line of two points, and an isolated point, which is drawn as a dot.
        assert!(text.contains("<circle"));
    }
}
