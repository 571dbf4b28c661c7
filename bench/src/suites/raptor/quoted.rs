//! The figures of RaptorDB's article, as participants of the cases. They were measured in 2012 and 2013, on machines of
//! that time; commits were not synced.

use crate::child::Unit;
use crate::contest::Contest;
use crate::engine::Kind;
use crate::meter::Sample;

/// A quoted figure: a rate, or MiB for `memory`.
struct Figure {
    case: &'static str,
    /// Number of keys in the measurement.
    keys: u64,
    engine: &'static str,
    value: f64,
}

const fn figure(case: &'static str, keys: u64, engine: &'static str, value: f64) -> Figure {
    Figure {
        case,
        keys,
        engine,
        value,
    }
}

const M: u64 = 1_000_000;
const MILLION: f64 = 1e6;
/// MiB in a gigabyte as used in the article.
const GB: f64 = 1024.0;

/// The figures are from the sections "Pure Index speed", "Really big data sets!" (version 2.0, Xeon X3430), "Item
/// count: 10,000,000" (the best of the ten runs of version 2.3), and "Index parameter tuning".
const FIGURES: [Figure; 33] = [
    figure("index-set", M, "mgindex", MILLION / 0.6),
    figure("index-set", M, "raptordb-1-btree", MILLION / 9.1),
    figure("index-set", M, "sorted-dictionary", MILLION / 4.4),
    figure("index-get", M, "mgindex", MILLION / 0.3),
    figure("index-get", M, "raptordb-1-btree", MILLION / 8.2),
    figure("index-get", M, "sorted-dictionary", MILLION / 2.7),
    figure("set-10m", 10 * M, "raptordb-2.0", 172_414.0),
    figure("set-10m", 10 * M, "raptordb-2.3-best", 416_667.0),
    figure("set-20m", 20 * M, "raptordb-2.0", 119_760.0),
    figure("set-20m", 20 * M, "raptordb-1.8", 63_694.0),
    figure("set-50m", 50 * M, "raptordb-2.0", 67_204.0),
    figure("set-100m", 100 * M, "raptordb-2.0", 50_556.0),
    figure("set-100m", 100 * M, "raptordb-2.3", 196_850.0),
    figure("get-10m", 10 * M, "raptordb-2.0", 158_730.0),
    figure("get-10m", 10 * M, "raptordb-2.3-best", 212_766.0),
    figure("get-20m", 20 * M, "raptordb-2.0", 151_515.0),
    figure("get-20m", 20 * M, "raptordb-1.8", 94_340.0),
    figure("get-50m", 50 * M, "raptordb-2.0", 135_135.0),
    figure("memory", 10 * M, "raptordb-2.0", 2.0 * GB),
    figure("memory", 20 * M, "raptordb-2.0", 3.7 * GB),
    figure("memory", 50 * M, "raptordb-2.0", 6.7 * GB),
    figure("memory", 100 * M, "raptordb-2.0", 11.7 * GB),
    figure("memory", 100 * M, "raptordb-2.3", 5.6 * GB),
    figure("page-size-set", M, "raptordb-30000-items", MILLION / 10.13),
    figure("page-size-set", M, "raptordb-20000-items", MILLION / 9.43),
    figure("page-size-set", M, "raptordb-10000-items", MILLION / 9.28),
    figure("page-size-set", M, "raptordb-5000-items", MILLION / 9.54),
    figure("page-size-set", M, "raptordb-1000-items", MILLION / 8.31),
    figure("page-size-get", M, "raptordb-30000-items", MILLION / 10.1),
    figure("page-size-get", M, "raptordb-20000-items", MILLION / 13.33),
    figure("page-size-get", M, "raptordb-10000-items", MILLION / 10.65),
    figure("page-size-get", M, "raptordb-5000-items", MILLION / 10.97),
    figure("page-size-get", M, "raptordb-1000-items", MILLION / 10.6),
];

/// Adds the quoted figures of a case with this number of keys.
pub(super) fn add(case: &str, keys: u64, (unit, less_is_better): Unit, contest: &mut Contest) {
    for figure in FIGURES {
        if figure.case == case && figure.keys == keys {
            let kind = Kind {
                name: figure.engine,
                ours: false,
                open: |_, _| Err("a quoted figure has no database".into()),
            };
            contest.add(case, unit, less_is_better, kind, Sample::of(figure.value));
        }
    }
}
