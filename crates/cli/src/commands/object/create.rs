//! `object create`: creates a bucket, or changes the options of an existing one.

use super::place::bucket_mut;
use crate::args::{ObjectCreateArgs, ObjectOverflow};
use crate::commands::messages::{Altered, alter};
use crate::exit::Outcome;
use crate::terminal::Terminal;
use tidalite::objects::{BucketOptions, BucketOverflow};

/// `base`, changed by the options that the user has given.
fn wanted(args: &ObjectCreateArgs, base: BucketOptions) -> BucketOptions {
    let overflow = args.overflow.map(|overflow| match overflow {
        ObjectOverflow::Reject => BucketOverflow::Reject,
        ObjectOverflow::DropOldest => BucketOverflow::DropOldest,
    });
    BucketOptions {
        chunk_bytes: args.chunk_bytes.unwrap_or(base.chunk_bytes),
        overflow: overflow.unwrap_or(base.overflow),
        object_bytes_max: args.object_bytes_max.or(base.object_bytes_max),
        objects_max: args.objects_max.or(base.objects_max),
        bytes_max: args.bytes_max.or(base.bytes_max),
        uploads_max: args.uploads_max.unwrap_or(base.uploads_max),
    }
}

/// Runs the command `tidalite object create`.
pub(super) fn run(args: &ObjectCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| place.fail(&error);
    let (db, exists) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let stored = match exists {
        true => Some(bucket_mut(&place, &mut tx)?.options().map_err(fail)?),
        false => None,
    };
    let wanted = wanted(args, stored.unwrap_or_default());
    let done = alter(&place, stored.as_ref(), &wanted, args.alter)?;
    match done {
        Altered::Created => tx
            .bucket_with(place.table, &wanted)
            .map(drop)
            .map_err(fail)?,
        Altered::Changed => bucket_mut(&place, &mut tx)?
            .set_options(&wanted)
            .map_err(fail)?,
        Altered::Unchanged => {}
    }
    place.finish(tx, db)?;
    done.tell(&place, terminal)
}
