//! The part `window`: all topics are delivered through a window of 20 messages, as to a client with a receive maximum
//! of 20 that acknowledges these messages before it gets the next ones.
//!
//! | case | |
//! |---|---|
//! | `window` | topics/s of `dev/+/telemetry/+`, 20 a page, each page in a new snapshot |
//! | `window-one-snapshot` | the same, all pages in one snapshot |
//! | `window-overlapping` | as `window`, with two filters more that match some of the topics again |
//! | `window-unlimited` | one page without a limit of messages |
//!
//! Every topic must be delivered exactly once, whichever filters are used.

use ::tidalite::Database;
use ::tidalite::topics::{Filter, Match, Message, SearchOptions, TopicSearch, Topics};

use super::names::{Payload, Telemetry, parsed, payload};
use crate::args::Options;
use crate::contest::Contest;
use crate::engine::{Result, TIDALITE};
use crate::meter::{Latencies, Meter};
use crate::os;

/// Number of messages of a page.
const WINDOW: u64 = 20;
const TABLE: &str = "broker";
/// Number of topics in a transaction of the load.
const LOADED_EACH: usize = 100_000;

const ALL: &str = "dev/+/telemetry/+";

pub(super) fn run(options: &Options, contest: &mut Contest) -> Result<()> {
    let topics = Telemetry::of(options.topics).all();
    let dir = os::TempDir::within(&options.dir, "window")?;
    os::expect_disk(dir.path(), topics.len() as u64 * 400 + (64 << 20))?;
    os::settle(dir.path())?;
    os::touch_memory(topics.len() as u64 * 400, topics.len() as u64 * 200);
    let db = Database::open(dir.path().join("bench.tdl"))?;
    let numbers: Vec<usize> = (0..topics.len()).collect();
    for numbers in numbers.chunks(LOADED_EACH) {
        let payloads: Vec<Payload> = numbers.iter().map(|n| payload(0, *n as u64)).collect();
        let messages: Vec<Message<'_>> = numbers
            .iter()
            .zip(&payloads)
            .map(|(n, payload)| Message::new(&topics[*n], payload))
            .collect();
        let mut txn = db.begin_write()?;
        txn.topics(TABLE)?
            .publish_batch(messages.iter().map(|message| (message, true)))?;
        txn.commit()?;
    }
    let mut window = Window {
        db: &db,
        topics: &topics,
        seen: Vec::new(),
    };
    let overlapping = [ALL, "dev/1/#", "+/+/telemetry/speed"];
    let cases: [(&str, &[&str], u64, bool); 4] = [
        ("window", &[ALL], WINDOW, true),
        ("window-one-snapshot", &[ALL], WINDOW, false),
        ("window-overlapping", &overlapping, WINDOW, true),
        ("window-unlimited", &[ALL], u64::MAX, true),
    ];
    for (case, filters, credit, is_renewed) in cases {
        let mut latencies = Latencies::default();
        let meter = Meter::start(dir.path());
        window
            .deliver(filters, credit, is_renewed, &mut latencies)
            .map_err(|error| format!("{case}: {error}"))?;
        let sample = meter.finish(topics.len() as u64, 0, latencies);
        contest.add(case, "topics/s", false, TIDALITE, sample);
    }
    Ok(())
}

struct Window<'w> {
    db: &'w Database,
    topics: &'w [String],
    /// Whether each topic was delivered.
    seen: Vec<bool>,
}

impl Window<'_> {
    /// Delivers all matches in pages of at most `credit`. If `is_renewed`, each page uses a new snapshot.
    fn deliver(
        &mut self,
        filters: &[&str],
        credit: u64,
        is_renewed: bool,
        latencies: &mut Latencies,
    ) -> Result<()> {
        self.seen.clear();
        self.seen.resize(self.topics.len(), false);
        let filters = filters.iter().map(|filter| Filter::parse(filter));
        let filters = filters.collect::<std::result::Result<_, _>>()?;
        let mut search = TopicSearch::new(filters, SearchOptions::default());
        let mut delivered = 0;
        let mut snapshot = self.db.begin_read()?;
        while !search.is_done() {
            let page = latencies.time(|| -> Result<_> {
                if is_renewed {
                    snapshot = self.db.begin_read()?;
                }
                let topics = snapshot.topics(TABLE)?.ok_or("there are no topics")?;
                self.page(&topics, &mut search, credit)
            })?;
            if page > credit {
                return Err(format!("{page} messages in a window of {credit}").into());
            }
            delivered += page;
        }
        if delivered != self.topics.len() as u64 || self.seen.contains(&false) {
            let topics = self.topics.len();
            return Err(format!("{delivered} deliveries of {topics} topics").into());
        }
        Ok(())
    }

    fn page(&mut self, topics: &Topics<'_>, search: &mut TopicSearch, credit: u64) -> Result<u64> {
        let (mut count, mut wrong) = (0, None);
        let page = topics.search(search, credit, &mut |found: Match<'_>| {
            let message = &found.retained.message;
            let n = parsed(message.payload).map_or(usize::MAX, |(_, n)| n as usize);
            let is_its = self.topics.get(n).is_some_and(|name| name == message.topic);
            if !is_its || std::mem::replace(&mut self.seen[n], true) {
                wrong = Some(format!("{} is wrong or comes twice", message.topic));
            }
            count += 1;
        })?;
        if let Some(wrong) = wrong {
            return Err(wrong.into());
        }
        if page.delivered != count {
            let told = page.delivered;
            return Err(format!("a page of {count} messages says {told}").into());
        }
        Ok(count)
    }
}
