//! The aims of the suite with the measured figures, and ratios that are not in the table of results.

use crate::args::Options;
use crate::contest::Contest;
use crate::engine::TIDALITE;
use crate::report::{self, Aim};

use super::names::Telemetry;
use super::objects::PLAIN_FILE;
use super::store::NESTED;

/// Formats the aims as a table in Markdown. They apply to the default sizes. Most are aims of the project; the bounds
/// on pages and on the ratio to nested tables check the reasons for the layout of topics.
pub(crate) fn aims(contest: &Contest, options: &Options) -> String {
    let of = |case: &str, engine: &str| contest.median(case, engine);
    let ours = |case: &str| of(case, TIDALITE.name);
    let ratio = |above: Option<f64>, below: Option<f64>| Some(above? / below?);
    let beside_file = |case: &str| ratio(ours(case), of(case, PLAIN_FILE.name));
    let pages = |case: &str| {
        let all = ours("load-all-pages");
        ratio(ours(&format!("load-{case}-pages")), all)
    };
    // The commit that was in progress when the time ended may be missing.
    let rate = Telemetry::of(options.topics).topics() as f64 * 0.99;
    report::aims(&[
        Aim::at_least("overwritten topics/s, paced", ours("topics-rate"), rate),
        Aim::at_least(
            "the same, last tenth of the time of the first",
            ratio(ours("topics-last"), ours("topics-first")),
            0.9,
        ),
        Aim::at_most(
            "wildcard reads meanwhile, p99 in ms",
            ours("topics-read"),
            50.0,
        ),
        Aim::at_least(
            "overwritten topics/s without a pace, last tenth of the first",
            ratio(ours("topics-max-last"), ours("topics-max-first")),
            0.9,
        ),
        Aim::at_most("loaded topics reopened, ms", ours("load-reopen"), 20.0),
        Aim::at_most("the same, cold", ours("load-reopen-cold"), 20.0),
        Aim::at_most(
            "`a/b/+/4`, pages of those of a full scan",
            pages("a-b-plus-4"),
            0.1,
        ),
        Aim::at_most("`a/#`", pages("a-all"), 0.2),
        Aim::at_most("`+/+/x`", pages("plus-plus-x"), 0.1),
        Aim::at_least(
            "load, of nested tables",
            ratio(ours("layouts-load"), of("layouts-load", NESTED.name)),
            1.0,
        ),
        Aim::at_least(
            "messages of 20 fields written/s, 10,000 devices",
            ours("containers-write"),
            2e5,
        ),
        Aim::at_least(
            "the same, ten messages of a device together",
            ours("containers-ten-write"),
            2e5,
        ),
        Aim::at_least("the same, one device", ours("containers-one-write"), 2e5),
        Aim::at_least(
            "read in blocks, cold, messages/s",
            ours("containers-blocks-cold"),
            5e5,
        ),
        Aim::at_least(
            "the same, one device",
            ours("containers-one-blocks-cold"),
            5e5,
        ),
        Aim::at_least(
            "read at random, cold, messages/s",
            ours("containers-random-cold"),
            1e5,
        ),
        Aim::at_least(
            "messages leased and acknowledged/s",
            ours("queue-lease-ack"),
            1e5,
        ),
        Aim::at_least("object in, of a plain file", beside_file("object-in"), 0.8),
        Aim::at_least(
            "object out, of a plain file",
            beside_file("object-out"),
            0.8,
        ),
    ])
}
