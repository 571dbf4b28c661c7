//! Calls every method that reads topics, a queue or a bucket.

use super::errors::keep;
use std::io::Read;
use tidalite::objects::{
    Bucket, LinkId, ListQuery, ObjectCondition, ObjectFilter, ObjectInfo, UploadId,
};
use tidalite::queue::Queue;
use tidalite::topics::{Filter, SearchOptions, TopicChanges, TopicSearch, Topics};
use tidalite::{ReadTxn, Result, Timestamp};

/// Maximum number of entries that one call returns.
const MOST: usize = 2_000;
/// Maximum number of pages of a list or a search.
const PAGES_MAX: usize = 50;
/// Maximum number of bytes of an object that are read in one piece.
const BYTES_MAX: u64 = 1 << 20;
/// Filters; some of them are answered from the sets of names.
const FILTERS: [&str; 9] = [
    "#",
    "a/#",
    "+/+/x",
    "+/1/#",
    "b/2/x",
    "$SYS/#",
    "+/+/+/7",
    "a/+/x",
    "$share/g/a/#",
];

pub(super) fn topics(snap: &ReadTxn, name: &str) -> Result<()> {
    match snap.topics(name)? {
        Some(topics) => all_of_topics(&topics),
        None => Ok(()),
    }
}

pub(super) fn queue(snap: &ReadTxn, name: &str) -> Result<()> {
    match snap.queue(name)? {
        Some(queue) => all_of_queue(&queue),
        None => Ok(()),
    }
}

pub(super) fn bucket(snap: &ReadTxn, name: &str) -> Result<()> {
    match snap.bucket(name)? {
        Some(bucket) => all_of_bucket(&bucket),
        None => Ok(()),
    }
}

pub(super) fn all_of_topics(topics: &Topics<'_>) -> Result<()> {
    let mut seen = Ok(());
    let _ = (topics.name(), topics.options(), topics.sequence());
    keep(&mut seen, topics.stat().map(drop));
    keep(&mut seen, topics.check(&mut |_| ()));
    for topic in ["a/1", "a/1/x", "none"] {
        let found = topics.get(topic).and_then(|found| match found {
            Some(found) => found.retained().map(drop).map_err(Into::into),
            None => Ok(()),
        });
        keep(&mut seen, found);
    }
    for filter in FILTERS {
        let filter = Filter::parse(filter)?;
        keep(&mut seen, topics.count(&filter).map(drop));
        let page = topics.count_page(&filter, None, 5);
        keep(&mut seen, page.map(drop));
        keep(&mut seen, listed(topics, &filter));
        let options = SearchOptions {
            rows_max: 40,
            ..SearchOptions::default()
        };
        let mut search = TopicSearch::new(vec![filter], options);
        for _ in 0..PAGES_MAX {
            if search.is_done() {
                break;
            }
            let page = topics.search(&mut search, 20, &mut |_| ());
            let failed = page.is_err();
            keep(&mut seen, page.map(drop));
            if failed {
                break;
            }
        }
        let _ = (search.token(), search.counters());
    }
    for after in [0, 7, u64::MAX] {
        let changes = topics.changes(after, MOST);
        if let Ok(TopicChanges::Truncated { from }) = changes {
            let rest = topics.changes(from.saturating_sub(1), MOST);
            keep(&mut seen, rest.map(drop));
        }
        keep(&mut seen, changes.map(drop));
    }
    seen
}

fn listed(topics: &Topics<'_>, filter: &Filter) -> Result<()> {
    let mut token = None;
    for _ in 0..PAGES_MAX {
        let page = topics.list(filter, token.as_deref(), 30)?;
        for found in &page.messages {
            found.retained()?;
        }
        match page.next {
            Some(next) => token = Some(next),
            None => break,
        }
    }
    Ok(())
}

pub(super) fn all_of_queue(queue: &Queue<'_>) -> Result<()> {
    let mut seen = Ok(());
    let _ = (queue.name(), queue.options());
    keep(&mut seen, queue.stat().map(drop));
    keep(&mut seen, queue.check(&mut |_| ()));
    for id in [0, 1, 9, 30, u64::MAX] {
        keep(&mut seen, queue.message(id).map(drop));
        keep(&mut seen, queue.messages(id, MOST).map(drop));
    }
    for group in queue.group_names() {
        keep(&mut seen, queue.group_stat(group).map(drop));
        for limit in [0, 3, MOST] {
            keep(&mut seen, queue.peek(group, limit).map(drop));
            keep(&mut seen, queue.dead_letters(group, 5, limit).map(drop));
        }
    }
    seen
}

pub(super) fn all_of_bucket(bucket: &Bucket<'_>) -> Result<()> {
    let mut seen = Ok(());
    let _ = (bucket.name(), bucket.options());
    keep(&mut seen, bucket.stat().map(drop));
    keep(&mut seen, bucket.check(&mut |_| ()));
    let mut objects = Vec::new();
    keep(&mut seen, lists(bucket, &mut objects));
    for info in &objects {
        keep(&mut seen, object(bucket, info));
    }
    for id in [0, 1, 5, u64::MAX] {
        keep(&mut seen, bucket.upload(UploadId(id)).map(drop));
    }
    match bucket.uploads(UploadId(0), MOST) {
        Ok(uploads) => {
            for upload in uploads {
                keep(&mut seen, bucket.upload(upload.id).map(drop));
                let parts = bucket.upload_parts(upload.id, 0, MOST);
                keep(&mut seen, parts.map(drop));
                let _ = upload.part_bytes();
            }
        }
        Err(error) => keep(&mut seen, Err(error)),
    }
    match bucket.links(LinkId([0; 16]), MOST) {
        Ok(links) => {
            for (id, _) in links {
                keep(&mut seen, bucket.link(id).map(drop));
                keep(&mut seen, bucket.linked(id).map(drop));
            }
        }
        Err(error) => keep(&mut seen, Err(error)),
    }
    seen
}

fn lists(bucket: &Bucket<'_>, objects: &mut Vec<ObjectInfo>) -> Result<()> {
    for (prefix, delimiter) in [("", None), ("", Some("/")), ("a/", None)] {
        let mut query = ListQuery {
            prefix: prefix.to_owned(),
            delimiter: delimiter.map(str::to_owned),
            limit: 5,
            ..ListQuery::default()
        };
        for _ in 0..PAGES_MAX {
            let page = bucket.list(&query)?;
            objects.extend(page.objects);
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
    }
    let filter = ObjectFilter {
        content_type: Some("text/*".to_owned()),
        size: Some(1..5_000),
        modified: Some(Timestamp(0)..Timestamp::MAX),
        protected: Some(false),
    };
    let query = ListQuery {
        filter,
        ..ListQuery::default()
    };
    bucket.list(&query).map(drop)
}

fn object(bucket: &Bucket<'_>, info: &ObjectInfo) -> Result<()> {
    let mut seen = Ok(());
    keep(&mut seen, bucket.info(&info.name).map(drop));
    let condition = ObjectCondition::NotHash(info.hash);
    keep(&mut seen, bucket.info_if(&info.name, &condition).map(drop));
    keep(&mut seen, bucket.verify(&info.name).map(drop));
    for (offset, len) in [(0, BYTES_MAX), (701, 3), (u64::MAX, 1)] {
        keep(&mut seen, bucket.read(info, offset, len).map(drop));
    }
    let whole = || -> Result<()> {
        let mut cursor = bucket.cursor(info)?;
        let (mut bytes, mut some) = (Vec::new(), [0; 50]);
        cursor.by_ref().take(BYTES_MAX).read_to_end(&mut bytes)?;
        cursor.seek(cursor.size() / 2);
        let _ = (cursor.read(&mut some)?, cursor.position());
        cursor.seek(9);
        cursor.next_slice(100)?;
        Ok(())
    };
    keep(&mut seen, whole());
    seen
}
