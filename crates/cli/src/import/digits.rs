//! Numbers written with a decimal comma or with separators of thousands.
//!
//! ```text
//! 1,5     1.234,5     1 234,5        decimal comma
//! 1.5     1,234.5     1'234.5        decimal point
//! 1,234   1.234                      ambiguous: other cells or an option decide
//! ```

use std::borrow::Cow;
use std::fmt::{Display, Formatter};

/// The characters that separate the decimals and the thousands of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Digits {
    /// The separator of the decimals: `.` or `,`.
    pub decimal: char,
    /// The separator of the thousands, if there is one; a blank stands for all kinds of blanks.
    pub thousands: Option<char>,
}

impl Default for Digits {
    fn default() -> Self {
        Self {
            decimal: '.',
            thousands: None,
        }
    }
}

impl Display for Digits {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self.decimal {
            ',' => write!(f, "decimal commas")?,
            _ => write!(f, "decimal points")?,
        }
        match self.thousands {
            None => Ok(()),
            Some(',') => write!(f, " and commas between thousands"),
            Some('.') => write!(f, " and points between thousands"),
            Some(' ') => write!(f, " and blanks between thousands"),
            Some(_) => write!(f, " and apostrophes between thousands"),
        }
    }
}

/// The result of [`Digits::detect`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Detected {
    /// The numbers are written in this way.
    Sure(Digits),
    /// The index of a column and a cell in it, whose only separator could be of either kind.
    Ambiguous(usize, String),
}

/// Whether a character is one of the blanks that separate thousands: an ordinary one, or one that does not break lines.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\u{a0}' | '\u{2009}' | '\u{202f}')
}

impl Digits {
    /// Whether numbers have a decimal point and no separators of thousands.
    pub(crate) fn is_plain(self) -> bool {
        self == Self::default()
    }

    fn is_thousands(self, c: char) -> bool {
        match self.thousands {
            Some(' ') => is_blank(c),
            Some('\'') => matches!(c, '\'' | '’'),
            other => other == Some(c),
        }
    }

    /// Rewrites a number with a decimal point and without separators of thousands. `None` if the text has separators in
    /// wrong places, such as in `1.23,5`.
    pub(crate) fn plain(self, text: &str) -> Option<Cow<'_, str>> {
        let is_separator = |c: char| c == self.decimal || self.is_thousands(c) || c == '.';
        if self.is_plain() || !text.contains(is_separator) {
            return Some(Cow::Borrowed(text));
        }
        let (whole, rest) = match text.split_once([self.decimal, 'e', 'E']) {
            Some((whole, _)) => text.split_at(whole.len()),
            None => (text, ""),
        };
        let mut plain = String::with_capacity(text.len());
        let digits = whole.trim_start_matches(['+', '-']);
        plain.push_str(&whole[..whole.len() - digits.len()]);
        for (number, group) in digits.split(|c| self.is_thousands(c)).enumerate() {
            let is_first = number == 0;
            let fits = match (is_first, digits.len() == group.len()) {
                (true, true) => true,
                (true, false) => (1..=3).contains(&group.len()),
                (false, _) => group.len() == 3,
            };
            if !fits || !group.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            plain.push_str(group);
        }
        if let Some(decimals) = rest.strip_prefix(self.decimal) {
            plain.push('.');
            plain.push_str(decimals);
        } else {
            plain.push_str(rest);
        }
        // The decimals must not contain separators.
        let has_more = plain.matches('.').count() > usize::from(rest.starts_with(self.decimal));
        (!has_more && !rest.chars().skip(1).any(is_separator)).then_some(Cow::Owned(plain))
    }

    /// Finds out how the numbers in these cells are written; each cell comes with the index of its column. Cells that
    /// contradict each other, and cells without separators, give plain numbers. With `may_have_commas`, the input looks
    /// as if commas separate decimals; then a lone point may separate thousands.
    pub(crate) fn detect<'a>(
        cells: impl Iterator<Item = (usize, &'a str)>,
        may_have_commas: bool,
    ) -> Detected {
        let (mut point, mut comma, mut blanks, mut apostrophes) = (false, false, false, false);
        let (mut groups_of_comma, mut unclear, mut unclear_point) = (false, None, None);
        for (column, text) in cells {
            let digits = text.trim_start_matches(['+', '-']);
            if !digits.starts_with(|c: char| c.is_ascii_digit() || c == ',' || c == '.') {
                continue;
            }
            let compact: Cow<'_, str> = match digits
                .contains(|c: char| is_blank(c) || c == '\'' || c == '’')
            {
                true => {
                    let (blank, other) = (digits.contains(is_blank), digits.contains(['\'', '’']));
                    let thousands = if blank { ' ' } else { '\'' };
                    let whole = digits.split(['.', ',']).next().unwrap_or_default();
                    let own = Self {
                        thousands: Some(thousands),
                        ..Self::default()
                    };
                    let Some(whole_plain) = own.plain(whole).filter(|_| blank != other) else {
                        continue;
                    };
                    (blanks, apostrophes) = (blanks | blank, apostrophes | other);
                    Cow::Owned(format!("{whole_plain}{}", &digits[whole.len()..]))
                }
                false => Cow::Borrowed(digits),
            };
            match Kind::of(&compact) {
                Kind::Plain => {}
                Kind::UnclearPoint => unclear_point = unclear_point.or(Some((column, text))),
                Kind::Point { groups } => {
                    point = true;
                    groups_of_comma |= groups;
                }
                Kind::Comma => comma = true,
                Kind::Unclear => unclear = unclear.or(Some((column, text))),
            }
        }
        let blank = match (blanks, apostrophes) {
            (true, false) => Some(' '),
            (false, true) => Some('\''),
            _ => None,
        };
        let is_open = !point && !comma && unclear.is_none() && blank.is_none();
        if let Some((column, text)) = unclear_point.filter(|_| is_open && may_have_commas) {
            return Detected::Ambiguous(column, text.to_owned());
        }
        match (point, comma, unclear) {
            (true, true, _) => Detected::Sure(Self::default()),
            (false, true, _) => Detected::Sure(Self {
                decimal: ',',
                thousands: blank.or(Some('.')),
            }),
            // Blanks in front of it are the separators of thousands, so this one separates the decimals.
            (false, false, Some(_)) if blank.is_some() => Detected::Sure(Self {
                decimal: ',',
                thousands: blank,
            }),
            (false, false, Some((column, text))) => Detected::Ambiguous(column, text.to_owned()),
            (_, false, unclear) => Detected::Sure(Self {
                decimal: '.',
                thousands: blank.or((groups_of_comma || unclear.is_some()).then_some(',')),
            }),
        }
    }
}

/// The meaning of the points and commas in one number.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// There are none, or the text is no number.
    Plain,
    /// A point separates the decimals; with `groups`, commas separate thousands.
    Point { groups: bool },
    /// A comma separates the decimals.
    Comma,
    /// A single comma with three digits after it.
    Unclear,
    /// A single point with three digits after it: a plain number unless other cells have decimal commas.
    UnclearPoint,
}

impl Kind {
    fn of(digits: &str) -> Self {
        let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
        let is_number = mantissa
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','))
            && mantissa.bytes().any(|byte| byte.is_ascii_digit());
        let (points, commas) = (mantissa.matches('.').count(), mantissa.matches(',').count());
        if !is_number {
            return Self::Plain;
        }
        let reads_as = |decimal, thousands| {
            let digits = Digits {
                decimal,
                thousands: Some(thousands),
            };
            digits
                .plain(mantissa)
                .is_some_and(|plain| plain.parse::<f64>().is_ok())
        };
        match (points, commas) {
            (0, 0) => Self::Plain,
            (0, 1) => {
                let (whole, decimals) = mantissa.split_once(',').unwrap_or_default();
                let may_be_group = (1..=3).contains(&whole.len())
                    && !whole.starts_with('0')
                    && decimals.len() == 3;
                if may_be_group {
                    Self::Unclear
                } else {
                    Self::Comma
                }
            }
            (0, _) if reads_as('.', ',') => Self::Point { groups: true },
            (1, 0) => {
                let (whole, decimals) = mantissa.split_once('.').unwrap_or_default();
                let may_be_group = (1..=3).contains(&whole.len())
                    && !whole.starts_with('0')
                    && decimals.len() == 3;
                if may_be_group {
                    Self::UnclearPoint
                } else {
                    Self::Point { groups: false }
                }
            }
            (_, 1) if reads_as(',', '.') => Self::Comma,
            (1, _) if reads_as('.', ',') => Self::Point { groups: true },
            // Several points without a comma: an address or a version.
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(decimal: char, thousands: Option<char>) -> Digits {
        Digits { decimal, thousands }
    }

    #[test]
    fn separators_are_removed_from_their_places_only() {
        let german = digits(',', Some('.'));
        let english = digits('.', Some(','));
        let french = digits(',', Some(' '));
        let swiss = digits('.', Some('\''));
        let strict = digits(',', None);
        for (style, text, plain) in [
            (german, "1,5", Some("1.5")),
            (german, "-1.234,5", Some("-1234.5")),
            (german, "1.234.567", Some("1234567")),
            (german, "1.234", Some("1234")),
            (german, ",5", Some(".5")),
            (german, "1,5e-3", Some("1.5e-3")),
            (german, "1e3", Some("1e3")),
            (german, "12", Some("12")),
            (german, "NaN", Some("NaN")),
            (german, "1.5", None),
            (german, "1.23,5", None),
            (german, "1,5,5", None),
            (german, "1,234.5", None),
            (german, ".123,5", None),
            (german, "1234.567,5", None),
            (english, "1,234,567.25", Some("1234567.25")),
            (english, "1,23", None),
            (english, "1,,234", None),
            (french, "1\u{202f}234\u{a0}567,5", Some("1234567.5")),
            (french, "1 5", None),
            (swiss, "1'234.5", Some("1234.5")),
            (swiss, "1’234.5", Some("1234.5")),
            (strict, "1,5", Some("1.5")),
            (strict, "1.5", None),
            (strict, "1.234,5", None),
        ] {
            assert_eq!(style.plain(text).as_deref(), plain, "{style:?} {text}");
        }
    }

    #[test]
    fn the_style_is_found_if_the_cells_agree() {
        let found = |cells: &[&str]| Digits::detect(cells.iter().map(|cell| (0, *cell)), false);
        let sure = |decimal, thousands| Detected::Sure(digits(decimal, thousands));
        for (cells, expected) in [
            (&["1", "2.5", "-3"][..], sure('.', None)),
            (&["1,5", "2"], sure(',', Some('.'))),
            (&["1.234,5"], sure(',', Some('.'))),
            (&["0,123"], sure(',', Some('.'))),
            (&["1013,250"], sure(',', Some('.'))),
            (&["1,234", "1,5"], sure(',', Some('.'))),
            (&["1.234", "1,5"], sure(',', Some('.'))),
            (&["1,234.5"], sure('.', Some(','))),
            (&["1,234,567"], sure('.', Some(','))),
            (&["1,234", "2.5"], sure('.', Some(','))),
            (&["1.234"], sure('.', None)),
            (&["1 234,5"], sure(',', Some(' '))),
            (&["1 234,567"], sure(',', Some(' '))),
            (&["1'234.5"], sure('.', Some('\''))),
            (&["1,5", "2.5"], sure('.', None)),
            (&["10.0.0.1", "192.168.100.200"], sure('.', None)),
            (&["3 mm", "a,b", "NaN"], sure('.', None)),
            (&["1,234", "5"], Detected::Ambiguous(0, "1,234".to_owned())),
        ] {
            assert_eq!(found(cells), expected, "{cells:?}");
        }
        let german = |cells: &[&str]| Digits::detect(cells.iter().map(|cell| (0, *cell)), true);
        for (cells, expected) in [
            (
                &["1.234", "5"][..],
                Detected::Ambiguous(0, "1.234".to_owned()),
            ),
            (&["1.234", "5.5"], sure('.', None)),
            (&["1.234", "5,5"], sure(',', Some('.'))),
            (&["0.234", "5"], sure('.', None)),
        ] {
            assert_eq!(german(cells), expected, "{cells:?}");
        }
    }
}
