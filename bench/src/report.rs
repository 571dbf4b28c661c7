//! Computes medians and spreads, and formats results as a table for people and as lines for programs.

use std::fmt::Write as _;

/// A quantity measured for Tidalite and for a peer, with a value for each round.
pub(crate) struct Line {
    pub(crate) suite: &'static str,
    pub(crate) case: String,
    pub(crate) unit: &'static str,
    /// Name of the peer.
    pub(crate) peer: &'static str,
    pub(crate) ours: Vec<f64>,
    pub(crate) theirs: Vec<f64>,
    /// True if less is better, as for sizes; false for rates.
    pub(crate) less_is_better: bool,
}

/// The median: the middle value, or the mean of the two middle values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[half],
        _ => (sorted[half - 1] + sorted[half]) / 2.0,
    }
}

/// The spread of the values: (maximum - minimum) / median.
pub(crate) fn spread(values: &[f64]) -> f64 {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    (max - min) / median(values)
}

impl Line {
    /// How many times better Tidalite is than the peer; above 1 if Tidalite is better.
    pub(crate) fn ratio(&self) -> f64 {
        let ratio = median(&self.ours) / median(&self.theirs);
        if self.less_is_better {
            1.0 / ratio
        } else {
            ratio
        }
    }

    /// Formats the line as one JSON object without a line end. The object has only the values of Tidalite if there was
    /// no peer.
    pub(crate) fn json(&self) -> String {
        let Self {
            suite,
            case,
            unit,
            peer,
            ..
        } = self;
        if self.theirs.is_empty() {
            let (ours, spread) = (median(&self.ours), spread(&self.ours));
            return format!(
                r#"{{"suite":"{suite}","case":"{case}","unit":"{unit}","ours":{ours:.4},"ours_spread":{spread:.4}}}"#
            );
        }
        format!(
            r#"{{"suite":"{suite}","case":"{case}","unit":"{unit}","ours":{:.4},"peer":"{peer}","theirs":{:.4},"ratio":{:.4},"ours_spread":{:.4},"theirs_spread":{:.4}}}"#,
            median(&self.ours),
            median(&self.theirs),
            self.ratio(),
            spread(&self.ours),
            spread(&self.theirs),
        )
    }
}

/// Formats the lines as a table in Markdown.
pub(crate) fn table<'l>(lines: impl IntoIterator<Item = &'l Line>) -> String {
    let mut lines = lines.into_iter().peekable();
    let peer = lines.peek().map_or("peer", |line| line.peer);
    let mut text = format!(
        "| {:<11} | {:<11} | {:>10} | {peer:>10} | {:>9} | {:>6} | {:>6} |\n",
        "case", "unit", "ours", "ratio", "spread", "theirs"
    );
    text.push_str(
        "|-------------|-------------|-----------:|-----------:|----------:|-------:|-------:|\n",
    );
    for line in lines {
        let compared = |text: &dyn Fn() -> String| match line.theirs.is_empty() {
            true => String::new(),
            false => text(),
        };
        // Writing to a `String` cannot fail, so the result is ignored.
        let _ = writeln!(
            text,
            "| {:<11} | {:<11} | {:>10} | {:>10} | {:>9} | {:>5.0}% | {:>6} |",
            line.case,
            line.unit,
            short(median(&line.ours)),
            compared(&|| short(median(&line.theirs))),
            compared(&|| short(line.ratio())),
            spread(&line.ours) * 100.0,
            compared(&|| format!("{:.0}%", spread(&line.theirs) * 100.0)),
        );
    }
    text
}

/// A measured figure and its bound: at least, or at most.
pub(crate) struct Aim {
    text: String,
    figure: Option<f64>,
    bound: f64,
    at_most: bool,
}

impl Aim {
    /// The figure must be at least the bound.
    pub(crate) fn at_least(text: impl Into<String>, figure: Option<f64>, bound: f64) -> Self {
        Self {
            text: text.into(),
            figure,
            bound,
            at_most: false,
        }
    }

    /// The figure must be at most the bound.
    pub(crate) fn at_most(text: impl Into<String>, figure: Option<f64>, bound: f64) -> Self {
        Self {
            at_most: true,
            ..Self::at_least(text, figure, bound)
        }
    }
}

/// Formats aims with the measured figures as a table in Markdown.
pub(crate) fn aims(aims: &[Aim]) -> String {
    let mut text = String::from("| aim | bound | measured | met |\n|---|---:|---:|---|\n");
    for aim in aims {
        let bound = match aim.at_most {
            true => format!("<= {}", short(aim.bound)),
            false => format!(">= {}", short(aim.bound)),
        };
        let (measured, met) = match aim.figure {
            None => ("not measured".to_owned(), ""),
            Some(figure) => {
                let is_met = match aim.at_most {
                    true => figure <= aim.bound,
                    false => figure >= aim.bound,
                };
                (short(figure), if is_met { "yes" } else { "**no**" })
            }
        };
        // Writing to a `String` cannot fail, so the result is ignored.
        let _ = writeln!(text, "| {} | {bound} | {measured} | {met} |", aim.text);
    }
    text
}

/// Formats a value with about four digits.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format!("{value:.0}"),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(less_is_better: bool) -> Line {
        Line {
            suite: "harlinn",
            case: "01-write".to_owned(),
            unit: "Mpoints/s",
            peer: "lmdb",
            ours: vec![90.0, 110.0, 100.0],
            theirs: vec![50.0, 40.0, 50.0, 60.0],
            less_is_better,
        }
    }

    #[test]
    fn medians_spreads_and_the_way_of_the_ratio() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[90.0, 110.0, 100.0]), 0.2);
        assert_eq!(line(false).ratio(), 2.0);
        assert_eq!(line(true).ratio(), 0.5);
    }

    #[test]
    fn ours_alone_is_told_without_a_comparison() {
        let alone = Line {
            theirs: Vec::new(),
            ..line(false)
        };
        assert_eq!(
            alone.json(),
            r#"{"suite":"harlinn","case":"01-write","unit":"Mpoints/s","ours":100.0000,"ours_spread":0.2000}"#
        );
        let row = table(&[alone]);
        let cells: Vec<&str> = row
            .lines()
            .nth(2)
            .unwrap()
            .split('|')
            .map(str::trim)
            .collect();
        assert_eq!(cells[3..8], ["100.0", "", "", "20%", ""]);
    }

    #[test]
    fn json_has_the_promised_fields_in_order() {
        assert_eq!(
            line(false).json(),
            concat!(
                r#"{"suite":"harlinn","case":"01-write","unit":"Mpoints/s","ours":100.0000,"#,
                r#""peer":"lmdb","theirs":50.0000,"ratio":2.0000,"#,
                r#""ours_spread":0.2000,"theirs_spread":0.4000}"#
            )
        );
    }
}
