//! The columns of an export, and their types.

use tidalite::{ColumnType, Unit};

/// A column of an export.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub name: String,
    pub kind: Kind,
}

/// The values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The names of series, or the texts of a tag: few different texts.
    Names,
    Time,
    Values(ColumnType),
}

impl Head {
    pub(super) fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
        }
    }
}

/// The type that holds the values of two columns: numbers of different types become doubles, anything else texts.
pub(super) fn common(one: ColumnType, other: ColumnType) -> ColumnType {
    let is_number = |ty: ColumnType| !ty.is_text();
    match (one, other) {
        (one, other) if one == other => one,
        (ColumnType::Decimal(one), ColumnType::Decimal(other)) => {
            ColumnType::Decimal(one.max(other))
        }
        (one, other) if is_number(one) && is_number(other) => ColumnType::F64,
        _ => ColumnType::String,
    }
}

/// The unit of the times of series: the finest. Arrow has no ticks of 100 nanoseconds.
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
            (I64, I64, I64),
            (I64, U64, F64),
            (Bool, F64, F64),
            (Decimal(2), Decimal(4), Decimal(4)),
            (Guid, I64, String),
        ] {
            assert_eq!(common(one, other), both, "{one:?} {other:?}");
        }
        let units = [Unit::Seconds, Unit::Millis];
        assert_eq!(finest(units.into_iter()), Unit::Millis);
        assert_eq!(finest([Unit::Ticks].into_iter()), Unit::Nanos);
    }
}
