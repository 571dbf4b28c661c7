//! `object stat`, `object verify` and `object maintain`.

use super::place::{bucket, bucket_mut, name_failure, no_object};
use crate::args::{ObjectMaintainArgs, ObjectStatArgs, ObjectVerifyArgs};
use crate::commands::layouts::tables_of;
use crate::commands::messages::{Place, told};
use crate::database::{failure, open};
use crate::exit::{Exit, Failure, Outcome};
use crate::output::{bytes_text, plural, printable};
use crate::terminal::Terminal;
use std::io::Write;
use tidalite::TableLayout;
use tidalite::objects::{
    Bucket, BucketMaintenance, BucketOptions, BucketOverflow, BucketStat, ListQuery,
    ObjectVerification,
};

/// Number of objects, chunks and other items that are removed in one transaction.
const REMOVED_AT_ONCE: u64 = 1000;

/// Runs the command `tidalite object stat`.
pub(super) fn run(args: &ObjectStatArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let path = &args.file.file;
    let fail = |error: tidalite::Error| failure(path, &error);
    let snap = open(path)?.begin_read().map_err(fail)?;
    let names = match &args.table {
        Some(table) => vec![table.clone()],
        None => tables_of(&snap, TableLayout::Bucket).map_err(fail)?,
    };
    let out = &mut *terminal.out;
    for name in &names {
        let place = Place {
            path,
            table: name,
            layout: TableLayout::Bucket,
        };
        if !place.exists(&snap)? {
            return Err(place.missing());
        }
        let bucket = bucket(&place, &snap)?;
        let (stat, options) = (bucket.stat().map_err(fail)?, bucket.options());
        if args.format.is_json() {
            writeln!(out, "{}", json(name, &stat, options))?;
        } else if args.table.is_some() {
            print(name, &stat, options, out)?;
        } else {
            let objects = plural(stat.objects, "object", "objects");
            let bytes = bytes_text(stat.bytes);
            writeln!(out, "{}\t{objects}\t{bytes}", printable(name))?;
        }
    }
    Ok(out.flush()?)
}

fn overflow(overflow: BucketOverflow) -> &'static str {
    match overflow {
        BucketOverflow::Reject => "reject",
        BucketOverflow::DropOldest => "drop-oldest",
    }
}

fn print(name: &str, stat: &BucketStat, options: &BucketOptions, out: &mut dyn Write) -> Outcome {
    let most = |most: Option<u64>| most.map_or_else(|| "none".to_owned(), |most| most.to_string());
    writeln!(out, "Status of {}", printable(name))?;
    writeln!(out, "  Objects: {}", stat.objects)?;
    writeln!(out, "  Bytes: {}", stat.bytes)?;
    writeln!(out, "  Stored chunks: {}", stat.chunks)?;
    writeln!(out, "  Stored chunk bytes: {}", stat.chunk_bytes)?;
    writeln!(out, "  Uploads: {}", stat.uploads)?;
    writeln!(out, "  Upload bytes: {}", stat.upload_bytes)?;
    writeln!(out, "  Removed contents to free: {}", stat.orphans)?;
    writeln!(out, "  Chunk bytes: {}", options.chunk_bytes)?;
    writeln!(out, "  Full bucket: {}", overflow(options.overflow))?;
    writeln!(
        out,
        "  Maximum object bytes: {}",
        most(options.object_bytes_max)
    )?;
    writeln!(out, "  Maximum objects: {}", most(options.objects_max))?;
    writeln!(out, "  Maximum bytes: {}", most(options.bytes_max))?;
    writeln!(
        out,
        "  Maximum uploads: {}",
        most(Some(options.uploads_max).filter(|most| *most < u64::MAX))
    )?;
    Ok(())
}

fn json(name: &str, stat: &BucketStat, options: &BucketOptions) -> serde_json::Value {
    let uploads_max = Some(options.uploads_max).filter(|most| *most < u64::MAX);
    serde_json::json!({
        "table": name,
        "objects": stat.objects,
        "bytes": stat.bytes,
        "stored_chunks": stat.chunks,
        "stored_chunk_bytes": stat.chunk_bytes,
        "uploads": stat.uploads,
        "upload_bytes": stat.upload_bytes,
        "orphans": stat.orphans,
        "chunk_bytes": options.chunk_bytes,
        "overflow": overflow(options.overflow),
        "object_bytes_max": options.object_bytes_max,
        "objects_max": options.objects_max,
        "bytes_max": options.bytes_max,
        "uploads_max": uploads_max,
    })
}

/// Runs the command `tidalite object verify`.
pub(super) fn verify(args: &ObjectVerifyArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let mut verified = Verified {
        place,
        bucket: &bucket,
        json: args.format.is_json(),
        objects: 0,
        damaged: 0,
    };
    match &args.name {
        Some(name) => verified.one(name, terminal)?,
        None => {
            let mut query = ListQuery::default();
            loop {
                let page = bucket.list(&query).map_err(|error| place.fail(&error))?;
                for info in &page.objects {
                    verified.one(&info.name, terminal)?;
                }
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => break,
                }
            }
        }
    }
    terminal.out.flush()?;
    match verified.damaged {
        0 => Ok(()),
        damaged => Err(Failure::new(
            Exit::Damage,
            format!(
                "{damaged} of {} damaged",
                plural(verified.objects, "object is", "objects are")
            ),
        )
        .hint(format!(
            "`tidalite check {}` lists all damage; put the objects again, or restore a backup",
            place.path.display()
        ))),
    }
}

/// A verification in progress.
struct Verified<'a> {
    place: Place<'a>,
    bucket: &'a Bucket<'a>,
    json: bool,
    objects: u64,
    damaged: u64,
}

impl Verified<'_> {
    fn one(&mut self, name: &str, terminal: &mut Terminal<'_>) -> Outcome {
        let verification = self.bucket.verify(name);
        let verification = verification.map_err(|error| name_failure(&self.place, &error))?;
        let found = verification.ok_or_else(|| no_object(&self.place, name))?;
        self.objects += 1;
        self.damaged += u64::from(!found.is_sound());
        let ObjectVerification {
            chunks,
            damaged,
            hash_matches,
        } = &found;
        if self.json {
            let line = serde_json::json!({
                "name": name,
                "sound": found.is_sound(),
                "chunks": chunks,
                "damaged": damaged,
                "hash_matches": hash_matches,
            });
            return Ok(writeln!(terminal.out, "{line}")?);
        }
        let text = match (found.is_sound(), damaged.is_empty()) {
            (true, _) => format!("sound\t{}", plural(*chunks, "chunk", "chunks")),
            (false, true) => "DAMAGED\tits hash does not match its chunks".to_owned(),
            (false, false) => {
                let damaged: Vec<String> = damaged.iter().map(u32::to_string).collect();
                format!("DAMAGED\tchunks {}", damaged.join(", "))
            }
        };
        Ok(writeln!(terminal.out, "{}\t{text}", printable(name))?)
    }
}

/// Runs the command `tidalite object maintain`.
pub(super) fn maintain(args: &ObjectMaintainArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut all = BucketMaintenance::default();
    loop {
        let mut tx = place.begin(&db)?;
        let done = bucket_mut(&place, &mut tx)?.maintain(REMOVED_AT_ONCE);
        let done = done.map_err(|error| place.fail(&error))?;
        place.commit(tx)?;
        all.expired.objects += done.expired.objects;
        all.uploads += done.uploads;
        all.links += done.links;
        all.chunks += done.chunks;
        all.chunk_bytes += done.chunk_bytes;
        if !done.more {
            break;
        }
    }
    place.close(db)?;
    let text = format!(
        "{} maintained: {}, {} and {} removed, {} freed",
        place.table,
        plural(all.expired.objects, "expired object", "expired objects"),
        plural(all.uploads, "upload", "uploads"),
        plural(all.links, "link", "links"),
        bytes_text(all.chunk_bytes)
    );
    told(&text, terminal)
}
