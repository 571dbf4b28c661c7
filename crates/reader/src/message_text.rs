//! Topics, queues, buckets and containers as text of an export.

use crate::bucket::{self, Bucket, Upload};
use crate::containers::{self, Container, Containers, DUPLICATES, Deletion, Dropped, FIGURES};
use crate::containers::{TableOptions, Totals};
use crate::document::Json;
use crate::queue::{self, OVERFLOWS, Queue, State};
use crate::shown::Bytes;
use crate::topics::{self, Topics};
use std::fmt;

impl fmt::Display for Topics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topics::Options {
            levels_max,
            topic_bytes_max,
            payload_bytes_max,
            messages_max,
            bytes_max,
            feed_changes,
        } = &self.options;
        writeln!(
            f,
            "  options: {levels_max} levels, topics of {topic_bytes_max} bytes, payloads of {payload_bytes_max} bytes, {messages_max} messages of {bytes_max} bytes, {feed_changes} changes"
        )?;
        writeln!(f, "  {} bytes, sequence {}", self.bytes, self.sequence)?;
        for message in &self.messages {
            message.fmt(f)?;
        }
        for (number, topic, is_removed) in &self.changes {
            let kind = if *is_removed { "removed" } else { "set" };
            writeln!(f, "  change {number}: {} {kind}", Bytes(topic.as_bytes()))?;
        }
        Ok(())
    }
}

impl fmt::Display for topics::Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| Bytes(text.as_bytes()).to_string();
        write!(
            f,
            "  {} = {}, id {}, change {}, at {}, qos {}",
            shown(&self.topic),
            Bytes(&self.payload),
            self.id,
            self.sequence,
            self.time,
            self.qos
        )?;
        if self.is_text {
            f.write_str(", text")?;
        }
        if let Some(expires) = self.expires {
            write!(f, ", expires at {expires}")?;
        }
        if !self.publisher.is_empty() {
            write!(f, ", from {}", shown(&self.publisher))?;
        }
        let properties = &self.properties;
        if let Some(text) = &properties.content_type {
            write!(f, ", type {}", shown(text))?;
        }
        if let Some(text) = &properties.response_topic {
            write!(f, ", respond to {}", shown(text))?;
        }
        if let Some(data) = &properties.correlation_data {
            write!(f, ", correlation {}", Bytes(data))?;
        }
        for (name, value) in &properties.user {
            write!(f, ", {} = {}", shown(name), shown(value))?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue::Options {
            overflow,
            deliveries_max,
            messages_max,
            bytes_max,
            retention,
            window,
        } = &self.options;
        let overflow = OVERFLOWS[usize::from(*overflow)];
        writeln!(
            f,
            "  options: full: {overflow}, {deliveries_max} deliveries, {messages_max} messages of {bytes_max} bytes, retention {retention}, window {window}"
        )?;
        let [pushed, repeated, oldest, newest, expired, aged, purged] = self.totals;
        writeln!(
            f,
            "  next id {}, {} bytes, {pushed} pushed, {repeated} repeated, {oldest} oldest dropped, {newest} newest dropped, {expired} expired, {aged} too old, {purged} purged",
            self.next_id, self.bytes
        )?;
        for message in &self.messages {
            message.fmt(f)?;
        }
        for group in &self.groups {
            let [acked, redelivered, buried] = group.totals;
            let name = Bytes(group.name.as_bytes());
            writeln!(
                f,
                "  group {name}: {acked} acknowledged, {redelivered} delivered again, {buried} dead"
            )?;
            for (id, deliveries, state) in &group.open {
                writeln!(f, "    {id}: {state}, {deliveries} deliveries")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for queue::Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, payload) = (self.id, Bytes(&self.payload));
        let (time, priority) = (self.time, self.priority);
        write!(f, "  {id} = {payload}, at {time}, priority {priority}")?;
        if let Some(time) = self.not_before {
            write!(f, ", not before {time}")?;
        }
        if let Some(time) = self.expires {
            write!(f, ", expires at {time}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ", key {}", Bytes(key))?;
        }
        if let Some(key) = &self.idempotency_key {
            write!(f, ", idempotency key {}", Bytes(key))?;
        }
        for (name, value) in &self.headers {
            write!(f, ", {} = {}", Bytes(name), Bytes(value))?;
        }
        writeln!(f)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready => f.write_str("ready"),
            Self::Leased { until, consumer } => {
                write!(f, "leased by {} until {until}", Bytes(consumer))
            }
            Self::Delayed { until } => write!(f, "delayed until {until}"),
            Self::Waiting => f.write_str("waiting"),
            Self::Dead { since, is_rejected } => {
                let reason = if *is_rejected {
                    "rejected"
                } else {
                    "too often"
                };
                write!(f, "dead since {since}, {reason}")
            }
        }
    }
}

/// Formats a hash as hexadecimal digits.
struct Hex<'h>(&'h [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bucket::Options {
            chunk_bytes,
            rotates,
            object_bytes_max,
            objects_max,
            bytes_max,
            uploads_max,
        } = &self.options;
        let full = if *rotates { "rotate" } else { "refuse" };
        writeln!(
            f,
            "  options: chunks of {chunk_bytes} bytes, full: {full}, objects of {object_bytes_max} bytes, {objects_max} objects of {bytes_max} bytes, {uploads_max} uploads"
        )?;
        let (chunks, bytes) = self.chunks;
        let orphans = self.orphans;
        writeln!(f, "  {chunks} chunks of {bytes} bytes, {orphans} orphans")?;
        for object in &self.objects {
            let (name, contents) = (Bytes(object.name.as_bytes()), Bytes(&object.contents));
            let (created, modified) = (object.created, object.modified);
            let (chunk, hash) = (object.chunk_bytes, Hex(&object.hash));
            writeln!(
                f,
                "  {name} = {contents}, created at {created}, modified at {modified}, chunks of {chunk} bytes{}\n    {hash}",
                object.attributes
            )?;
        }
        for upload in &self.uploads {
            let Upload {
                id, began, expires, ..
            } = upload;
            let name = Bytes(upload.name.as_bytes());
            let bytes = upload.bytes;
            let (chunk, part) = (upload.chunk_bytes, upload.part_chunks);
            writeln!(
                f,
                "  upload {id} of {name}: {bytes} bytes, began at {began}, ends at {expires}, chunks of {chunk} bytes, {part} in a part{}",
                upload.attributes
            )?;
            for (number, bytes, hash) in &upload.parts {
                writeln!(f, "    part {number}: {bytes} bytes, {}", Hex(hash))?;
            }
        }
        for link in &self.links {
            let (key, name) = (Hex(&link.key), Bytes(link.name.as_bytes()));
            let (reads, bytes) = link.reads;
            write!(f, "  link {key} = {name}, {reads} reads of {bytes} bytes")?;
            if let Some(expires) = link.expires {
                write!(f, ", expires at {expires}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for bucket::Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(expires) = self.expires {
            write!(f, ", expires at {expires}")?;
        }
        if self.is_protected {
            f.write_str(", protected")?;
        }
        if !self.content_type.is_empty() {
            write!(f, ", type {}", Bytes(self.content_type.as_bytes()))?;
        }
        for (key, value) in &self.metadata {
            write!(
                f,
                ", {} = {}",
                Bytes(key.as_bytes()),
                Bytes(value.as_bytes())
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for containers::Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            ttl,
            keep_deleted,
            messages_max,
            bytes_max,
            ..
        } = self;
        let duplicates = DUPLICATES[usize::from(self.duplicates)];
        let full = if self.rotates { "rotate" } else { "refuse" };
        write!(
            f,
            "one time: {duplicates}, full: {full}, {messages_max} messages of {bytes_max} bytes"
        )?;
        if *ttl != i64::MAX {
            write!(f, ", live {ttl} ns")?;
        }
        let protect = Bytes(self.protect.as_bytes());
        write!(
            f,
            ", deleted ones {keep_deleted} ns, protected by {protect}"
        )
    }
}

impl fmt::Display for Containers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TableOptions {
            creates,
            containers_max,
            fields_max,
            window,
            of_containers,
        } = &self.options;
        writeln!(
            f,
            "  options: creates containers: {creates}, {containers_max} containers, {fields_max} fields, window {window}\n  options of containers: {of_containers}"
        )?;
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|name| Bytes(name.as_bytes()).to_string())
            .collect();
        let (deleted, bytes) = self.deleted;
        writeln!(
            f,
            "  fields {}\n  {deleted} deleted messages of {bytes} bytes, {} idempotency keys",
            fields.join(" "),
            self.keys
        )?;
        for container in &self.containers {
            container.fmt(f)?;
        }
        for dropped in &self.dropped {
            let Dropped {
                number,
                time,
                until,
                ..
            } = dropped;
            let (name, (messages, bytes)) = (Bytes(dropped.name.as_bytes()), dropped.messages);
            writeln!(
                f,
                "  dropped {number} {name}: {messages} messages of {bytes} bytes, at {time}, until {until}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Totals {
            messages,
            protected,
            times,
            created,
            past,
        } = &self.totals;
        writeln!(
            f,
            "  container {} {}: {messages:?} messages, {protected:?} protected, times {times:?}, created at {created}, changes, rejected, expired, rotated {past:?}",
            self.number,
            Bytes(self.name.as_bytes())
        )?;
        if let Some(options) = &self.options {
            writeln!(f, "    options: {options}")?;
        }
        for message in &self.messages {
            let (time, tie, received) = (message.time, message.tie, message.received);
            write!(f, "    {time} {tie}: {}", Json(&message.document))?;
            write!(f, ", received at {received}")?;
            if message.is_protected {
                f.write_str(", protected")?;
            }
            if message.stands_for > 1 {
                write!(f, ", stands for {}", message.stands_for)?;
            }
            writeln!(f)?;
        }
        for (name, time, value) in &self.latest {
            let name = Bytes(name.as_bytes());
            writeln!(f, "    latest {name} = {value}, at {time}")?;
        }
        for deletion in &self.deletions {
            let Deletion {
                number,
                time,
                until,
                messages: (messages, bytes),
            } = deletion;
            writeln!(
                f,
                "    deletion {number}: {messages} messages of {bytes} bytes, at {time}, until {until}"
            )?;
        }
        if let Some(thinning) = &self.thinning {
            let figure = |number: u8| FIGURES[usize::from(number)];
            write!(f, "    thinning {:?}", thinning.rules)?;
            write!(f, ", {}", figure(thinning.others))?;
            for (name, number) in &thinning.fields {
                write!(f, ", {} {}", Bytes(name.as_bytes()), figure(*number))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
