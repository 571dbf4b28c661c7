use super::*;
use crate::exit::Exit;
use crate::import::blocks::Block;
use crate::import::local_times::Policy;
use crate::time::{Moment, TimeFormat, TimeReader, TimeShow, read_any, zone_named};
use jiff::tz::TimeZone;

/// Resolves rows that are given as `site time`, in batches of `size` rows. Returns each as `site instant`, or as `site
/// ?` if it was rejected.
fn resolved(zone: &str, rows: &[(&str, &str)], size: usize, waiting_max: usize) -> Vec<String> {
    let zone = zone_named(zone).unwrap();
    let reader = TimeReader::new(TimeFormat::Iso, zone);
    let mut known: Vec<Vec<String>> = Vec::new();
    let mut batches = Vec::new();
    for (number, rows) in rows.chunks(size).enumerate() {
        let mut batch = Batch::default();
        let block = Block {
            number: number as u64,
            line: 1,
            ..Block::default()
        };
        batch.begin(block, 0);
        for (site, time) in rows {
            let tags = vec![(*site).to_owned()];
            let moment = reader.read(time).unwrap();
            let key = known.iter().position(|own| *own == tags);
            let key = key.unwrap_or_else(|| {
                known.push(tags.clone());
                batch.combinations.push(tags);
                known.len() - 1
            });
            let policy = Policy::default();
            let time = batch.local.settle(moment, policy, time, reader.zone());
            batch.local.note(batch.times.len(), moment, policy);
            batch.end_row(time.unwrap(), 0, u32::try_from(key).unwrap());
        }
        batches.push(batch);
    }
    let mut batches = batches.into_iter();
    let mut resolver = Resolver::new(true);
    resolver.waiting_max = waiting_max;
    let mut told = Vec::new();
    let show = TimeShow::new(TimeZone::UTC);
    while let Some(batch) = resolver.next_of(|| Ok(batches.next())).unwrap() {
        let mut refused = batch.local.refused.iter().peekable();
        for (row, time) in batch.times.iter().enumerate() {
            let site = &known[batch.tags[row] as usize][0];
            told.push(match refused.next_if(|twofold| twofold.row == row) {
                Some(_) => format!("{site} ?"),
                None => format!("{site} {}", show.show(*time)),
            });
        }
        assert!(refused.next().is_none());
    }
    told
}

/// Checks the local times of one series. The character of each is the expected result: `e` for the earlier and `l` for
/// the later instant, `?` for rejected, `.` for a time that is not ambiguous.
#[track_caller]
fn check(zone: &str, rows: &[(&str, char)]) {
    let own = zone_named(zone).unwrap();
    let named: Vec<(&str, &str)> = rows.iter().map(|(time, _)| ("x", *time)).collect();
    for (size, waiting_max) in [(1000, 128), (1, 128), (2, 128)] {
        let told = resolved(zone, &named, size, waiting_max);
        let told: String = told
            .iter()
            .zip(rows)
            .map(|(told, (text, _))| {
                let moment = TimeReader::new(TimeFormat::Iso, own.clone()).read(text);
                let instant = read_any(&told[2..], &TimeZone::UTC).ok();
                match moment.unwrap() {
                    Moment::Ambiguous { earlier, .. } if instant == Some(earlier) => 'e',
                    Moment::Ambiguous { later, .. } if instant == Some(later) => 'l',
                    Moment::Ambiguous { .. } => '?',
                    _ => '.',
                }
            })
            .collect();
        let expected: String = rows.iter().map(|(_, verdict)| verdict).collect();
        assert_eq!(told, expected, "batches of {size}");
    }
}

#[test]
fn the_second_pass_begins_where_times_go_back() {
    check(
        "Europe/Berlin",
        &[
            ("2024-10-27 01:30", '.'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 02:30", 'e'),
            ("2024-10-27 02:00", 'l'),
            ("2024-10-27 02:30", 'l'),
            ("2024-10-27 03:00", '.'),
        ],
    );
    check(
        "America/New_York",
        &[
            ("2024-11-03 00:00", '.'),
            ("2024-11-03 01:00", 'e'),
            ("2024-11-03 01:00", 'l'),
            ("2024-11-03 02:00", '.'),
        ],
    );
    // In this zone clocks are set back by half an hour.
    check(
        "Australia/Lord_Howe",
        &[
            ("2024-04-07 01:15", '.'),
            ("2024-04-07 01:30", 'e'),
            ("2024-04-07 01:45", 'e'),
            ("2024-04-07 01:30", 'l'),
            ("2024-04-07 01:45", 'l'),
            ("2024-04-07 02:00", '.'),
        ],
    );
    // There are two autumns in one file, and then an input that lies entirely within the repeated hour.
    check(
        "Europe/Berlin",
        &[
            ("2023-10-29 02:00", 'e'),
            ("2023-10-29 02:00", 'l'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 02:00", 'l'),
        ],
    );
}

#[test]
fn descending_rows_begin_with_the_second_pass() {
    check(
        "Europe/Berlin",
        &[
            ("2024-10-27 03:00", '.'),
            ("2024-10-27 02:30", 'l'),
            ("2024-10-27 02:00", 'l'),
            ("2024-10-27 02:30", 'e'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 01:30", '.'),
        ],
    );
}

#[test]
fn one_pass_alone_is_placed_by_the_steps() {
    let zone = "Europe/Berlin";
    // The input begins in the second pass of the hour, or ends in the first pass.
    check(
        zone,
        &[
            ("2024-10-27 02:30", 'l'),
            ("2024-10-27 02:45", 'l'),
            ("2024-10-27 03:00", '.'),
        ],
    );
    check(
        zone,
        &[
            ("2024-10-27 01:30", '.'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 02:30", 'e'),
        ],
    );
    // The steps are 70 minutes: 2:00 belongs to the first pass, 2:10 to the second pass.
    check(
        zone,
        &[
            ("2024-10-27 00:50", '.'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 02:10", 'l'),
            ("2024-10-27 03:20", '.'),
        ],
    );
    // Rows come every three hours in UTC, then every two hours from an odd hour on.
    check(
        zone,
        &[
            ("2024-10-26 23:00", '.'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 04:00", '.'),
        ],
    );
    check(
        zone,
        &[
            ("2024-10-27 01:00", '.'),
            ("2024-10-27 02:00", 'l'),
            ("2024-10-27 04:00", '.'),
        ],
    );
    // A device returns in the second pass of the hour, after five hours without rows.
    check(
        zone,
        &[
            ("2024-10-26 20:45", '.'),
            ("2024-10-26 21:00", '.'),
            ("2024-10-27 02:00", 'l'),
            ("2024-10-27 02:15", 'l'),
            ("2024-10-27 02:30", 'l'),
            ("2024-10-27 02:45", 'l'),
            ("2024-10-27 03:00", '.'),
        ],
    );
    // These times cannot be decided, because a whole pass is missing.
    check(
        zone,
        &[
            ("2024-10-27 00:00", '.'),
            ("2024-10-27 01:00", '.'),
            ("2024-10-27 02:00", 'e'),
            ("2024-10-27 03:00", '.'),
        ],
    );
}

#[test]
fn rows_without_an_order_are_refused() {
    let zone = "Europe/Berlin";
    check(
        zone,
        &[
            ("2024-10-27 01:30", '.'),
            ("2024-10-27 02:00", '?'),
            ("2024-10-27 02:00", '?'),
            ("2024-10-27 02:00", '?'),
            ("2024-10-27 03:00", '.'),
        ],
    );
    check(
        zone,
        &[
            ("2024-10-27 05:00", '.'),
            ("2024-10-27 01:00", '.'),
            ("2024-10-27 04:00", '.'),
            ("2024-10-27 02:30", '?'),
            ("2024-10-27 06:00", '.'),
            ("2024-10-27 00:30", '.'),
        ],
    );
}

/// The rows of two sensors are interleaved, or one sensor follows the other: the rows of each are resolved
/// independently.
#[test]
fn series_do_not_disturb_each_other() {
    let times = ["01:45", "02:00", "02:30", "02:00", "02:30", "03:00"];
    let times = times.map(|time| format!("2024-10-27 {time}"));
    let one = |site: &'static str| times.iter().map(move |time| (site, time.as_str()));
    let after: Vec<(&str, &str)> = one("x").chain(one("y")).collect();
    let in_turn: Vec<(&str, &str)> = one("x").zip(one("y")).flat_map(|(x, y)| [x, y]).collect();
    let minutes = [105, 120, 150, 180, 210, 240];
    for (rows, of) in [(&after, "one after the other"), (&in_turn, "in turn")] {
        for size in [1, 3, 1000] {
            // If few batches may wait, the second pass is recognised only where a time goes back.
            for waiting_max in [1, 2, 128] {
                let told = resolved("Europe/Berlin", rows, size, waiting_max);
                for site in ["x ", "y "] {
                    let of_site = told.iter().filter(|told| told.starts_with(site));
                    let instants: Vec<Nanos> = of_site
                        .map(|told| read_any(&told[2..], &TimeZone::UTC).unwrap())
                        .collect();
                    let from = read_any("2024-10-26T22:00Z", &TimeZone::UTC).unwrap();
                    let expected = minutes.map(|minute| from + minute * 60_000_000_000);
                    assert_eq!(instants, expected, "{of}, {size}, {waiting_max}");
                }
            }
        }
    }
}

#[test]
fn a_failure_follows_the_rows_before_it() {
    let reader = TimeReader::new(TimeFormat::Iso, zone_named("Europe/Berlin").unwrap());
    let moment = reader.read("2024-10-27 02:00").unwrap();
    let mut batch = Batch::default();
    batch.combinations.push(Vec::new());
    batch.local.note(0, moment, Policy::default());
    batch.end_row(moment.compatible(), 0, 0);
    let mut given = vec![
        Err(Failure::new(Exit::Failure, "it broke")),
        Ok(Some(batch)),
    ];
    let mut resolver = Resolver::new(true);
    let mut next = || resolver.next_of(|| given.pop().unwrap_or(Ok(None)));
    let batch = next().unwrap().unwrap();
    assert_eq!(batch.local.tally.repeated, 1);
    assert_eq!(batch.local.tally.guessed, 1);
    assert_eq!(next().unwrap_err().message, "it broke");
}
