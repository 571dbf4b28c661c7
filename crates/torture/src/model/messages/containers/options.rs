//! The options of the containers in the workload. A container has options of its own or the default ones, by their
//! number.

use crate::model::clock::UNIT;
use std::time::Duration;
use tidalite::containers::{
    ContainerOptions, ContainerOverflow, ContainerTableOptions, OnDuplicate, Thinning,
    ThinningFigure, ThinningRule,
};

/// Name of the field that protects a message.
pub(crate) const KEEP: &str = "keep";
/// Time within which an idempotency key may not repeat.
pub(crate) const WINDOW: i64 = 40 * UNIT;
/// Number of options of a container's own, from 0.
pub(crate) const OWN: usize = 5;
/// Number of rules of thinning, from 0.
pub(crate) const THINNINGS: usize = 2;

fn units(count: u64) -> Duration {
    Duration::from_nanos(count * UNIT as u64)
}

/// The options of the table.
pub(crate) fn of_table() -> ContainerTableOptions {
    ContainerTableOptions {
        idempotency_window: Some(Duration::from_nanos(WINDOW as u64)),
        defaults: ContainerOptions {
            ttl: Some(units(200)),
            keep_deleted: units(100),
            messages_max: Some(12),
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
            messages_max: Some(6),
            bytes_max: Some(300),
            ttl: None,
            ..defaults
        },
        1 => ContainerOptions {
            on_duplicate: OnDuplicate::KeepFirst,
            bytes_max: Some(300),
            ttl: Some(units(60)),
            keep_deleted: Duration::ZERO,
            protect: None,
            ..defaults
        },
        2 => ContainerOptions {
            on_duplicate: OnDuplicate::Merge,
            ttl: None,
            keep_deleted: units(1_000),
            messages_max: Some(8),
            ..defaults
        },
        3 => ContainerOptions {
            // Messages only set the latest values.
            ttl: Some(Duration::ZERO),
            ..defaults
        },
        _ => ContainerOptions {
            ttl: Some(units(20)),
            overflow: ContainerOverflow::Reject,
            messages_max: Some(8),
            ..defaults
        },
    })
}

/// The rules of thinning with this number.
pub(crate) fn thinning(number: usize) -> Thinning {
    let rule = |age: u64, step: u64| ThinningRule {
        age: units(age),
        step: units(step),
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
