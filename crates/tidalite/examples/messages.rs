//! Messages of devices, retained topics, a queue of jobs and objects, in one transaction.
//!
//! `cargo run --release -p tidalite --example messages`

#![expect(clippy::print_stdout, reason = "an example talks")]

use std::time::Duration;
use tidalite::containers::{Append, Document, Expression, Select};
use tidalite::objects::{ObjectAttributes, ObjectCondition};
use tidalite::queue::{DEFAULT_GROUP, LeaseLimits, NewMessage};
use tidalite::topics::{Filter, Message};
use tidalite::{Database, Timestamp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tidalite-messages-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let done = run(&dir);
    std::fs::remove_dir_all(&dir)?;
    done
}

fn run(dir: &std::path::Path) -> Result<(), Box<dyn std::error::Error>> {
    let db = Database::open(dir.join("plant.tdl"))?;
    let now = Timestamp::now();
    let picture = [0xff_u8; 100_000];

    let mut tx = db.begin_write()?;
    // A message with any fields. Its numbers are also columns of the series devices{container="pump 3"}.
    let message = Document::from_json(r#"{"state": "on", "level": 12.5}"#)?;
    tx.containers("devices")?
        .append(&Append::new("pump 3", now, &message))?;
    // The last message of an MQTT topic, which a new subscriber gets.
    tx.topics("broker")?
        .publish(&Message::new("pumps/3/level", b"12.5"), true)?;
    // A job for one of many workers.
    tx.queue("jobs")?
        .push(&NewMessage::new(b"inspect pump 3"))?;
    // Bytes of any length, from any reader.
    let (attributes, always) = (ObjectAttributes::default(), ObjectCondition::Always);
    let stored =
        tx.bucket("pictures")?
            .put_from("pump 3.jpg", &mut &picture[..], attributes, always)?;
    tx.commit()?; // all four or none

    let snap = db.begin_read()?;
    let devices = snap.containers("devices")?.ok_or("no devices")?;
    let select = Select {
        filter: Some(Expression::parse("state == 'on' && level > 10")?),
        ..Select::default()
    };
    for message in devices.page("pump 3", &select)?.messages {
        println!("{}: {}", message.time, message.document.to_json()?);
    }
    let topics = snap.topics("broker")?.ok_or("no topics")?;
    let pumps = topics.count(&Filter::parse("pumps/+/level")?)?; // 1

    let mut tx = db.begin_write()?;
    let limits = LeaseLimits::messages(10);
    let leased =
        tx.queue("jobs")?
            .lease(DEFAULT_GROUP, "worker", Duration::from_secs(60), limits)?;
    for job in &leased {
        println!("{}", String::from_utf8_lossy(&job.message.payload));
        tx.queue("jobs")?
            .ack(DEFAULT_GROUP, "worker", &[job.message.id])?;
    }
    tx.commit()?;
    assert_eq!((pumps, leased.len()), (1, 1));
    assert!(stored.done().is_some());
    Ok(())
}
