//! The options of the containers in the workload. A container has options of its own or the default ones, by their
//! number.

use crate::model::clock::UNIT;
use tidalite::containers::{
    ContainerOptions, ContainerOverflow, ContainerTableOptions, OnDuplicate, TTL_FOREVER_NS,
    Thinning, ThinningFigure, ThinningRule,
};

/// Name of the field that protects a message.
pub(crate) const KEEP: &str = "keep";
/// Time within which an idempotency key may not repeat.
pub(crate) const WINDOW: i64 = 40 * UNIT;
/// Number of options of a container's own, from 0.
pub(crate) const OWN: usize = 5;
/// Number of rules of thinning, from 0.
pub(crate) const THINNINGS: usize = 2;

/// The options of the table.
pub(crate) fn of_table() -> ContainerTableOptions {
    ContainerTableOptions {
        idempotency_window_ns: WINDOW,
        defaults: ContainerOptions {
            ttl_ns: 200 * UNIT,
            keep_deleted_ns: 100 * UNIT,
            messages_max: 12,
            protect: Some(KEEP.to_owned()),
            ..ContainerOptions::default()
        },
        ..ContainerTableOptions::default()
    }
}

/// The options with this number; `None` for the default ones.
pub(crate) fn own(number: Option<usize>) -> Option<ContainerOptions> {
    let defaults = of_table().defaults;
    Some(match number? {
        0 => ContainerOptions {
            on_duplicate: OnDuplicate::Replace,
            overflow: ContainerOverflow::Reject,
            messages_max: 6,
            bytes_max: 300,
            ttl_ns: TTL_FOREVER_NS,
            ..defaults
        },
        1 => ContainerOptions {
            on_duplicate: OnDuplicate::KeepFirst,
            bytes_max: 300,
            ttl_ns: 60 * UNIT,
            keep_deleted_ns: 0,
            protect: None,
            ..defaults
        },
        2 => ContainerOptions {
            on_duplicate: OnDuplicate::Merge,
            ttl_ns: TTL_FOREVER_NS,
            keep_deleted_ns: 1_000 * UNIT,
            messages_max: 8,
            ..defaults
        },
        3 => ContainerOptions {
            // Messages only set the latest values.
            ttl_ns: 0,
            ..defaults
        },
        _ => ContainerOptions {
            ttl_ns: 20 * UNIT,
            overflow: ContainerOverflow::Reject,
            messages_max: 8,
            ..defaults
        },
    })
}

/// The rules of thinning with this number.
pub(crate) fn thinning(number: usize) -> Thinning {
    let rule = |age: i64, step: i64| ThinningRule {
        age_ns: age * UNIT,
        step_ns: step * UNIT,
    };
    let named = |fields: &[(&str, ThinningFigure)]| {
        let fields = fields.iter();
        fields
            .map(|(name, figure)| ((*name).to_owned(), *figure))
            .collect()
    };
    match number {
        0 => Thinning {
            rules: vec![rule(10, 7), rule(40, 20)],
            others: ThinningFigure::Last,
            fields: named(&[
                ("n", ThinningFigure::Max),
                ("f", ThinningFigure::Mean),
                ("s", ThinningFigure::Sum),
            ]),
        },
        _ => Thinning {
            rules: vec![rule(5, 10)],
            others: ThinningFigure::First,
            fields: named(&[("n", ThinningFigure::Min), ("text", ThinningFigure::Drop)]),
        },
    }
}
