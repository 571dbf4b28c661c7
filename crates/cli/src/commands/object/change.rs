//! `object rm`, `object mv`, `object cp` and `object set`.

use super::line::{done, tell_stored};
use super::place::{bucket_mut, name_failure};
use crate::args::{ObjectMvArgs, ObjectRmArgs, ObjectSetArgs};
use crate::commands::messages::{Place, told};
use crate::exit::{Failure, Outcome};
use crate::output::{bytes_text, plural};
use crate::terminal::Terminal;
use tidalite::objects::{ContentHash, ListQuery, ObjectChange, ObjectCondition, ObjectFilter};

fn condition(if_hash: Option<ContentHash>) -> ObjectCondition {
    if_hash.map_or(ObjectCondition::Always, ObjectCondition::Hash)
}

/// Runs the command `tidalite object rm`.
pub(super) fn rm(args: &ObjectRmArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    if let Some(prefix) = &args.prefix {
        return match args.dry_run {
            true => count_prefix(&place, prefix, terminal),
            false => rm_prefix(&place, prefix, terminal),
        };
    }
    let Some(name) = &args.name else {
        return Err(Failure::usage("a name, or --prefix"));
    };
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let deleted = bucket_mut(&place, &mut tx)?.delete(name, &condition(args.if_hash));
    let deleted = deleted.map_err(|error| name_failure(&place, &error))?;
    done(&place, deleted, (name, name))?;
    place.finish(tx, db)?;
    told(&format!("{name} removed from {}", place.table), terminal)
}

/// The objects below a prefix that `rm` removes.
fn unprotected(prefix: &str) -> ListQuery {
    ListQuery {
        prefix: prefix.to_owned(),
        filter: ObjectFilter {
            protected: Some(false),
            ..ObjectFilter::default()
        },
        ..ListQuery::default()
    }
}

/// Removes the objects below a prefix, one page of a list in one transaction.
fn rm_prefix(place: &Place<'_>, prefix: &str, terminal: &mut Terminal<'_>) -> Outcome {
    let db = place.open_to_write()?;
    let mut query = unprotected(prefix);
    let (mut objects, mut bytes) = (0, 0);
    loop {
        let mut tx = place.begin(&db)?;
        let removed = bucket_mut(place, &mut tx)?.delete_listed(&query);
        let (removed, next) = removed.map_err(|error| place.fail(&error))?;
        place.commit(tx)?;
        objects += removed.objects;
        bytes += removed.bytes;
        match next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    place.close(db)?;
    let objects = plural(objects, "object", "objects");
    let bytes = bytes_text(bytes);
    told(
        &format!("{objects} removed from {}: {bytes}", place.table),
        terminal,
    )
}

fn count_prefix(place: &Place<'_>, prefix: &str, terminal: &mut Terminal<'_>) -> Outcome {
    let (_db, snap) = place.open()?;
    let bucket = super::place::bucket(place, &snap)?;
    let mut query = unprotected(prefix);
    let (mut objects, mut bytes) = (0, 0);
    loop {
        let page = bucket.list(&query).map_err(|error| place.fail(&error))?;
        objects += page.objects.len() as u64;
        bytes += page.objects.iter().map(|info| info.size).sum::<u64>();
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
    }
    let objects = plural(objects, "object", "objects");
    let bytes = bytes_text(bytes);
    told(
        &format!("{objects} of {} would be removed: {bytes}", place.table),
        terminal,
    )
}

/// Runs the command `tidalite object mv`.
pub(super) fn mv(args: &ObjectMvArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let condition = args.condition.condition();
    let renamed = bucket_mut(&place, &mut tx)?.rename(&args.from, &args.to, &condition);
    let renamed = renamed.map_err(|error| name_failure(&place, &error))?;
    done(&place, renamed, (&args.from, &args.to))?;
    place.finish(tx, db)?;
    told(
        &format!("{} is called {} now", args.from, args.to),
        terminal,
    )
}

/// Runs the command `tidalite object cp`.
pub(super) fn cp(args: &ObjectMvArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let condition = args.condition.condition();
    let copied = bucket_mut(&place, &mut tx)?.copy(&args.from, &args.to, None, &condition);
    let copied = copied.map_err(|error| name_failure(&place, &error))?;
    let stored = done(&place, copied, (&args.from, &args.to))?;
    place.finish(tx, db)?;
    tell_stored(&place, &stored, false, terminal)
}

/// Runs the command `tidalite object set`.
pub(super) fn set(args: &ObjectSetArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let metadata = match (args.no_meta, args.metadata.is_empty()) {
        (true, _) => Some(Vec::new()),
        (false, true) => None,
        (false, false) => Some(args.metadata.clone()),
    };
    let protected = match (args.protect, args.unprotect) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        (false, false) => None,
    };
    let mut change = ObjectChange {
        expires: None,
        protected,
        content_type: args.content_type.clone(),
        metadata,
    };
    if change == ObjectChange::default() && args.expires.is_none() {
        return Err(Failure::usage("nothing to change")
            .hint("give --type, --meta, --no-meta, --expires, --protect or --unprotect"));
    }
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let now = tx.clock().now();
    change.expires = args.expires.map(|expires| expires.map(|time| time.at(now)));
    let mut bucket = bucket_mut(&place, &mut tx)?;
    let changed = bucket.set_attributes(&args.name, &change, &condition(args.if_hash));
    let changed = changed.map_err(|error| name_failure(&place, &error))?;
    done(&place, changed, (&args.name, &args.name))?;
    place.finish(tx, db)?;
    told(&format!("attributes of {} changed", args.name), terminal)
}
