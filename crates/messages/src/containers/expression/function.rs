//! The functions of expressions: their names and numbers of arguments. `evaluate` implements them.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// Whether the argument is not null.
    Exists,
    /// The first argument that is not null.
    IfNull,
    /// The absolute value of a number.
    Abs,
    /// The smallest of several numbers or texts; nulls are ignored.
    Min,
    /// The largest of several numbers or texts; nulls are ignored.
    Max,
    /// The nearest integer; halves are rounded away from zero. For this function and the next two, a float outside the
    /// range of integers remains a float.
    Round,
    /// The largest integer that is not greater than the argument.
    Floor,
    /// The smallest integer that is not less than the argument.
    Ceil,
    /// A text in lower case.
    Lower,
    /// A text in upper case.
    Upper,
    /// Number of characters of a text, of values of a list, or of fields of an object.
    Length,
    /// Whether the first text begins with the second.
    StartsWith,
    /// Whether the first text ends with the second.
    EndsWith,
    /// Whether the second text occurs in the first.
    Contains,
    /// An integer from a number (without its fraction), a boolean (0, 1) or a text; null if the text is not an integer.
    Int,
    /// A float from a number, a boolean or a text; null if the text is not a finite number.
    Float,
    /// Converts a text, a number or a boolean to a text.
    Text,
}

/// Maximum number of arguments of a function that accepts any number of arguments.
const MANY: usize = 1_000;

impl Function {
    /// The functions with their names and their minimum and maximum numbers of arguments.
    pub(super) const ALL: [(Self, &'static str, usize, usize); 17] = [
        (Self::Exists, "exists", 1, 1),
        (Self::IfNull, "if_null", 2, MANY),
        (Self::Abs, "abs", 1, 1),
        (Self::Min, "min", 1, MANY),
        (Self::Max, "max", 1, MANY),
        (Self::Round, "round", 1, 1),
        (Self::Floor, "floor", 1, 1),
        (Self::Ceil, "ceil", 1, 1),
        (Self::Lower, "lower", 1, 1),
        (Self::Upper, "upper", 1, 1),
        (Self::Length, "length", 1, 1),
        (Self::StartsWith, "starts_with", 2, 2),
        (Self::EndsWith, "ends_with", 2, 2),
        (Self::Contains, "contains", 2, 2),
        (Self::Int, "int", 1, 1),
        (Self::Float, "float", 1, 1),
        (Self::Text, "text", 1, 1),
    ];

    pub(super) fn of_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|row| row.1 == name).map(|row| row.0)
    }

    pub(super) fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The minimum and the maximum number of arguments.
    pub(super) fn arguments(self) -> (usize, usize) {
        let mut all = Self::ALL.iter();
        all.find(|row| row.0 == self)
            .map_or((0, 0), |row| (row.2, row.3))
    }
}

/// The function whose name is most similar to an unknown name, if any is similar.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    let aliases = [
        ("coalesce", "if_null"),
        ("ifnull", "if_null"),
        ("isset", "exists"),
        ("len", "length"),
        ("strlen", "length"),
        ("ceiling", "ceil"),
        ("integer", "int"),
        ("double", "float"),
        ("string", "text"),
        ("str", "text"),
    ];
    if let Some((_, known)) = aliases.iter().find(|(alias, _)| *alias == lower) {
        return Some(known);
    }
    let names = Function::ALL.iter().map(|row| row.1);
    let near = names.map(|known| (distance(&lower, known), known)).min();
    near.filter(|(distance, known)| *distance <= 2 && *distance < known.len())
        .map(|(_, known)| known)
}

/// Number of characters to insert, remove or replace to turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    if a.len() > b.len() + 8 {
        return a.len();
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (at, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[b.len()]
}
