//! The syntax tree of an expression. A field is stored as its index in the list of fields that the expression reads.

use super::function::Function;

/// Position in bytes of an operator or a function in the text, for errors. All positions compare as equal, so that
/// trees are compared without them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(pub(super) u32);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    /// A number from 0 to `u64::MAX`.
    Integer(u64),
    /// A number that is finite and not negative.
    Float(f64),
    Text(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Negative,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Like,
    NotLike,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Binary {
    pub(super) const ALL: [(Self, &'static str); 13] = [
        (Self::Equal, "=="),
        (Self::NotEqual, "!="),
        (Self::Less, "<"),
        (Self::LessOrEqual, "<="),
        (Self::Greater, ">"),
        (Self::GreaterOrEqual, ">="),
        (Self::Like, "~"),
        (Self::NotLike, "!~"),
        (Self::Add, "+"),
        (Self::Subtract, "-"),
        (Self::Multiply, "*"),
        (Self::Divide, "/"),
        (Self::Remainder, "%"),
    ];

    pub(super) fn of_symbol(symbol: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(_, known)| *known == symbol).map(|(op, _)| *op)
    }

    pub(super) fn symbol(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(op, _)| *op == self)
            .map_or("", |(_, symbol)| symbol)
    }

    pub(super) fn strength(self) -> Strength {
        match self {
            Self::Add | Self::Subtract => Strength::Sum,
            Self::Multiply | Self::Divide | Self::Remainder => Strength::Product,
            _ => Strength::Comparison,
        }
    }
}

/// Precedence of operators, from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    Conditional,
    Any,
    All,
    Comparison,
    Sum,
    Product,
    Unary,
    Primary,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Literal(Literal),
    Field(usize),
    Time,
    Received,
    Unary(Unary, Place, Box<Self>),
    Binary(Binary, Place, Box<[Self; 2]>),
    /// Operands of `&&`, two or more.
    All(Place, Vec<Self>),
    /// Operands of `||`, two or more.
    Any(Place, Vec<Self>),
    In(Place, Box<Self>, Vec<Self>),
    /// Condition, value if true, value otherwise.
    Conditional(Place, Box<[Self; 3]>),
    Call(Function, Place, Vec<Self>),
}

impl Node {
    pub(super) fn strength(&self) -> Strength {
        match self {
            Self::Literal(_) | Self::Field(_) | Self::Time | Self::Received | Self::Call(..) => {
                Strength::Primary
            }
            Self::Unary(..) => Strength::Unary,
            Self::Binary(op, ..) => op.strength(),
            Self::In(..) => Strength::Comparison,
            Self::All(..) => Strength::All,
            Self::Any(..) => Strength::Any,
            Self::Conditional(..) => Strength::Conditional,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Self::Literal(Literal::Null))
    }
}
