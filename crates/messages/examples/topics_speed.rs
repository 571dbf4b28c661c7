//! Measures topics in a file, and compares one ordered table of topics with nested tables for each level. Figures are
//! processor time, which other work of the machine disturbs less than the clock; for single searches the clock. Run:
//! `cargo run --release -p tidalite-messages --example topics_speed`.

#![expect(clippy::print_stdout, reason = "it prints its results")]
#![expect(clippy::unwrap_used, reason = "an example may panic")]

use tidalite_kv::{MissingTable, TableReader, TableWriter, Tree};
use tidalite_messages::{
    Filter, Message, SearchOptions, TopicOptions, TopicSearch, TopicsReader, TopicsWriter,
};
use tidalite_pager::{Durability, Options, PageRead, Pager, Result};
use tidalite_testkit::rng::Rng;

const DEVICES: u64 = 10_000;
const PARAMETERS: u64 = 100;
const TOPICS: u64 = DEVICES * PARAMETERS;
/// Parameters of a message of one device, of which each becomes a topic.
const OF_MESSAGE: u64 = 50;
const LOOKUPS: u64 = 100_000;

/// Time that this thread has spent on a processor: other work of the machine disturbs it less than the clock.
#[derive(Clone, Copy)]
struct Instant(u64);

impl Instant {
    fn now() -> Self {
        let spent = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        Self(spent.split(' ').next().unwrap().parse().unwrap())
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(Self::now().0 - self.0)
    }
}

fn open(name: &str) -> Pager {
    let path = std::env::temp_dir().join(format!("tidalite-{name}-{}.tdl", std::process::id()));
    let _ = std::fs::remove_file(&path);
    Pager::open(&path, &Options::default()).unwrap()
}

fn close(pager: Pager) {
    let path = pager.begin_read().unwrap().path().unwrap().to_owned();
    drop(pager);
    std::fs::remove_file(&path).unwrap();
    let _ = std::fs::remove_file(path.with_extension("tdl-lock"));
}

fn topics() -> Vec<String> {
    let of = |device| (0..PARAMETERS).map(move |param| format!("device/{device:04}/param/{param}"));
    (0..DEVICES).flat_map(of).collect()
}

fn told(what: &str, count: u64, begin: Instant) {
    let seconds = begin.elapsed().as_secs_f64();
    let ns = seconds * 1e9 / count as f64;
    println!(
        "{what}: {:.0} a second, {ns:.0} ns each",
        count as f64 / seconds
    );
}

/// Messages of `devices` devices, fifty parameters of each, in the order in which a broker receives them.
fn of_devices<'t>(rng: &mut Rng, topics: &'t [String], devices: u64) -> Vec<&'t str> {
    let mut order: Vec<u64> = (0..DEVICES).collect();
    rng.shuffle(&mut order);
    let mut all = Vec::new();
    for device in order.into_iter().cycle().take(devices as usize) {
        let first = device * PARAMETERS + rng.below(PARAMETERS - OF_MESSAGE);
        all.extend((first..first + OF_MESSAGE).map(|topic| topics[topic as usize].as_str()));
    }
    all
}

fn measure_topics() -> Result<()> {
    let topics = topics();
    let pager = open("topics");
    let mut rng = Rng::new(1);
    let payloads: Vec<[u8; 16]> = (0..TOPICS)
        .map(|number| format!("{number:016}").into_bytes().try_into().unwrap())
        .collect();
    let message = |index: usize, topic| Message::new(topic, &payloads[index % payloads.len()]);

    let mut w = pager.begin_write()?;
    let mut root = Tree::new(20);
    let begin = Instant::now();
    {
        let mut table = TopicsWriter::create(&mut root, &mut w, TopicOptions::default())?;
        let messages: Vec<Message<'_>> = topics
            .iter()
            .enumerate()
            .map(|(index, topic)| message(index, topic))
            .collect();
        table.publish_batch(1, messages.iter().map(|message| (message, true)))?;
    }
    root.seal(&mut w)?;
    told("load", TOPICS, begin);
    w.commit(&root.encode(), Durability::None)?;
    let file = pager.begin_read()?.file_bytes();
    println!("file: {} bytes a topic", file / TOPICS);

    for (devices, rounds) in [(400, 40), (400, 40), (4_000, 8), (20_000, 4), (20_000, 4)] {
        let (mut spent, mut sealing, mut count) = (0.0, 0.0, 0);
        for _ in 0..rounds {
            let order = of_devices(&mut rng, &topics, devices);
            let messages: Vec<Message<'_>> = order
                .iter()
                .enumerate()
                .map(|(index, topic)| message(index, topic))
                .collect();
            let mut w = pager.begin_write()?;
            let begin = Instant::now();
            TopicsWriter::open(&mut root, &mut w)?
                .publish_batch(2, messages.iter().map(|message| (message, true)))?;
            spent += begin.elapsed().as_secs_f64();
            root.seal(&mut w)?;
            sealing += begin.elapsed().as_secs_f64();
            count += messages.len();
            w.commit(&root.encode(), Durability::None)?;
        }
        println!(
            "overwrite in batches of {}: {:.0} a second, with sealing {:.0}",
            devices * OF_MESSAGE,
            count as f64 / spent,
            count as f64 / sealing
        );
    }
    println!(
        "file: {} bytes a topic",
        pager.begin_read()?.file_bytes() / TOPICS
    );

    let snapshot = pager.begin_read()?;
    let reader = TopicsReader::open(&root, &snapshot)?;
    let find = |filter: &str| -> Result<_> {
        let filters = vec![Filter::parse(filter)?];
        let mut search = TopicSearch::new(filters, SearchOptions::default());
        while !search.page(&reader, 3, u64::MAX, &mut |_| Ok(()))?.is_done {}
        Ok(*search.counters())
    };
    let begin = Instant::now();
    for _ in 0..LOOKUPS {
        let device = rng.below(DEVICES);
        let found = find(&format!("device/{device:04}/+/4"))?;
        assert_eq!(found.delivered, 1);
    }
    told("device/NNNN/+/4", LOOKUPS, begin);
    for filter in [
        "device/+/param/4",
        "+/+/param/4",
        "+/0017/#",
        "+/+/+/none",
        "+/0017/+/4",
        "device/0017/#",
        "#",
    ] {
        let begin = std::time::Instant::now();
        let found = find(filter)?;
        println!(
            "{filter}: {:.3} ms, {found:?}",
            begin.elapsed().as_secs_f64() * 1e3
        );
    }
    drop(snapshot);
    close(pager);
    Ok(())
}

fn measure_nested_tables() -> Result<()> {
    let topics = topics();
    let pager = open("nested");
    let mut rng = Rng::new(1);
    let value = |number: u64| format!("{number:032}").into_bytes();
    let path = |topic: &str| -> Vec<Vec<u8>> {
        topic
            .split('/')
            .map(|level| level.as_bytes().to_vec())
            .collect()
    };

    let mut w = pager.begin_write()?;
    let mut table = TableWriter::of(Tree::new(20));
    let begin = Instant::now();
    for (number, topic) in topics.iter().enumerate() {
        let path = path(topic);
        table.at(
            &mut w,
            &path[..3],
            MissingTable::CreateToFill,
            &mut |w, table| table.insert(w, &path[3], &value(number as u64)),
        )?;
    }
    let mut root = *table.tree().unwrap();
    root.seal(&mut w)?;
    told("nested: load", TOPICS, begin);
    w.commit(&root.encode(), Durability::None)?;
    println!(
        "nested: file: {} bytes a topic",
        pager.begin_read()?.file_bytes() / TOPICS
    );

    for (devices, rounds) in [(400, 40), (20_000, 2)] {
        let (mut spent, mut count) = (0.0, 0);
        for _ in 0..rounds {
            let order = of_devices(&mut rng, &topics, devices);
            let mut w = pager.begin_write()?;
            let begin = Instant::now();
            let mut table = TableWriter::of(root);
            for message in order.chunks(OF_MESSAGE as usize) {
                // One descent through the upper levels for the parameters of a device.
                let above = path(message[0]);
                table.at(
                    &mut w,
                    &above[..3],
                    MissingTable::CreateToFill,
                    &mut |w, table| {
                        for topic in message {
                            let name = topic.rsplit('/').next().unwrap_or_default();
                            table.insert(w, name.as_bytes(), &value(count as u64))?;
                        }
                        Ok(())
                    },
                )?;
            }
            root = *table.tree().unwrap();
            root.seal(&mut w)?;
            spent += begin.elapsed().as_secs_f64();
            count += order.len();
            w.commit(&root.encode(), Durability::None)?;
        }
        println!(
            "nested: overwrite in batches of {}: {:.0} a second with sealing",
            devices * OF_MESSAGE,
            count as f64 / spent
        );
    }

    let snapshot = pager.begin_read()?;
    let top = TableReader::of(root);
    let begin = Instant::now();
    let mut matches = 0;
    for _ in 0..LOOKUPS {
        let device = format!("{:04}", rng.below(DEVICES));
        let table = top.nested(&snapshot, b"device")?.unwrap();
        let table = table.nested(&snapshot, device.as_bytes())?.unwrap();
        let mut cursor = table.cursor(&snapshot)?;
        while cursor.next()? {
            matches += u64::from(cursor.nested()?.get(&snapshot, b"4")?.is_some());
        }
    }
    assert_eq!(matches, LOOKUPS);
    told("nested: device/NNNN/+/4", LOOKUPS, begin);
    let begin = std::time::Instant::now();
    let table = top.nested(&snapshot, b"device")?.unwrap();
    let mut cursor = table.cursor(&snapshot)?;
    let mut matches = 0;
    while cursor.next()? {
        if let Some(table) = cursor.nested()?.nested(&snapshot, b"param")? {
            matches += u64::from(table.get(&snapshot, b"4")?.is_some());
        }
    }
    println!(
        "nested: device/+/param/4: {matches} in {:.3} ms, {} pages",
        begin.elapsed().as_secs_f64() * 1e3,
        snapshot
            .counters()
            .pages_read
            .load(std::sync::atomic::Ordering::Relaxed)
    );
    drop(snapshot);
    close(pager);
    Ok(())
}

/// The same with one table whose keys are the topics with zero bytes for '/', without anything else of a table of topics.
fn measure_plain_table() -> Result<()> {
    let topics = topics();
    let pager = open("plain");
    let mut rng = Rng::new(1);
    let key = |topic: &str| topic.replace('/', "\0").into_bytes();
    let value = |number: u64| format!("{number:032}").into_bytes();
    let mut w = pager.begin_write()?;
    let mut root = Tree::new(20);
    let begin = Instant::now();
    for (number, topic) in topics.iter().enumerate() {
        root.insert(&mut w, &key(topic), &value(number as u64))?;
    }
    root.seal(&mut w)?;
    told("plain: load", TOPICS, begin);
    w.commit(&root.encode(), Durability::None)?;
    let bytes = pager.begin_read()?.file_bytes();
    println!("plain: file: {} bytes a topic", bytes / TOPICS);
    for (devices, rounds) in [(400, 40), (20_000, 2)] {
        let (mut spent, mut count) = (0.0, 0);
        for _ in 0..rounds {
            let order = of_devices(&mut rng, &topics, devices);
            let mut w = pager.begin_write()?;
            let begin = Instant::now();
            for topic in &order {
                root.insert(&mut w, &key(topic), &value(count as u64))?;
            }
            root.seal(&mut w)?;
            spent += begin.elapsed().as_secs_f64();
            count += order.len();
            w.commit(&root.encode(), Durability::None)?;
        }
        println!(
            "plain: overwrite in batches of {}: {:.0} a second with sealing",
            devices * OF_MESSAGE,
            count as f64 / spent
        );
    }
    let snapshot = pager.begin_read()?;
    let begin = Instant::now();
    let mut matches = 0;
    let mut cursor = root.cursor(&snapshot);
    for _ in 0..LOOKUPS {
        let prefix = format!("device\0{:04}\0", rng.below(DEVICES)).into_bytes();
        let mut is_there = cursor.seek_ge(&prefix)?;
        while is_there && cursor.key().starts_with(&prefix) {
            let rest = &cursor.key()[prefix.len()..];
            let name = rest.split(|byte| *byte == 0).next().unwrap_or_default();
            let mut key = [&prefix[..], name, b"\x004"].concat();
            matches += u64::from(cursor.seek(&key)?);
            key.truncate(key.len() - 2);
            key.push(1);
            is_there = cursor.seek_ge(&key)?;
        }
    }
    assert_eq!(matches, LOOKUPS);
    told("plain: device/NNNN/+/4", LOOKUPS, begin);
    drop(cursor);
    drop(snapshot);
    close(pager);
    Ok(())
}

fn main() -> Result<()> {
    measure_topics()?;
    measure_plain_table()?;
    measure_nested_tables()
}
