//! The columns of an export, and their types.

use tidalite::{ColumnType, Unit};

/// A column of an export.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub name: String,
    pub kind: Kind,
}

/// The kind of values in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The names of series, or the values of a tag: few different texts.
    Names,
    Time,
    Values(ColumnType),
    /// Decimals of several scales, converted to this scale. They can have more digits than an `i64`.
    Decimals(u8),
}

impl Head {
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// A type for the values of two columns: decimals keep all digits, numbers and booleans of other types become doubles,
/// and all other values become texts.
pub(super) fn common(one: Kind, other: Kind) -> Kind {
    let scale = |kind: Kind| match kind {
        Kind::Values(ColumnType::Decimal(scale)) | Kind::Decimals(scale) => Some(scale),
        _ => None,
    };
    let is_number = |kind: Kind| match kind {
        Kind::Values(ty) => !ty.is_text(),
        Kind::Decimals(_) => true,
        Kind::Names | Kind::Time => false,
    };
    match (scale(one), scale(other)) {
        _ if one == other => one,
        (Some(one), Some(other)) => Kind::Decimals(one.max(other)),
        _ if is_number(one) && is_number(other) => Kind::Values(ColumnType::F64),
        _ => Kind::Values(ColumnType::String),
    }
}

/// The finest unit among the times of series. Arrow has no unit of 100 nanoseconds.
pub(super) fn finest(units: impl Iterator<Item = Unit>) -> Unit {
    let units = units.map(|unit| match unit {
        Unit::Ticks => Unit::Nanos,
        unit => unit,
    });
    units.min_by_key(|unit| unit.nanos()).unwrap_or(Unit::Nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_two_types_have_a_common_one() {
        use ColumnType::{Bool, Decimal, F64, Guid, I64, String, U64};
        for (one, other, both) in [
            (I64, I64, Kind::Values(I64)),
            (I64, U64, Kind::Values(F64)),
            (Bool, F64, Kind::Values(F64)),
            (Decimal(2), Decimal(4), Kind::Decimals(4)),
            (Decimal(2), Decimal(2), Kind::Values(Decimal(2))),
            (Decimal(2), I64, Kind::Values(F64)),
            (Guid, I64, Kind::Values(String)),
        ] {
            let found = common(Kind::Values(one), Kind::Values(other));
            assert_eq!(found, both, "{one:?} {other:?}");
        }
        let three = common(Kind::Decimals(4), Kind::Values(Decimal(9)));
        assert_eq!(three, Kind::Decimals(9));
        let units = [Unit::Seconds, Unit::Millis];
        assert_eq!(finest(units.into_iter()), Unit::Millis);
        assert_eq!(finest([Unit::Ticks].into_iter()), Unit::Nanos);
    }
}
