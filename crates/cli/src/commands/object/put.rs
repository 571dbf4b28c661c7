//! `object put`: stores a file or standard input as an object, in one transaction.

use super::line::{done, refused, tell_stored};
use super::place::{bucket_mut, name_failure};
use super::source::Source;
use crate::args::ObjectPutArgs;
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite object put`.
pub(super) fn run(args: &ObjectPutArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let fail = |error: tidalite::Error| name_failure(&place, &error);
    let mut source = Source::open(args.source.as_deref(), args.quiet)?;
    let (db, _) = place.open_or_create()?;
    let mut tx = place.begin(&db)?;
    let attributes = args.attributes.attributes(tx.clock().now());
    let condition = args.condition.condition();
    let mut bucket = bucket_mut(&place, &mut tx)?;
    // The library checks the condition only when it has all bytes; this check is earlier. No other writer can change
    // the object before the commit.
    let found = bucket.view().and_then(|view| view.info(&args.name));
    let found = found.map_err(fail)?;
    if !condition.holds(found.as_ref()) {
        return Err(refused(found.as_ref(), &args.name));
    }
    let put = bucket.put_from(&args.name, &mut source, attributes, condition);
    source.clear();
    let put = match (put, source.failure()) {
        (Err(_), Some(failure)) => return Err(failure),
        (put, _) => put.map_err(fail)?,
    };
    let stored = done(&place, put, (&args.name, &args.name))?;
    place.finish(tx, db)?;
    tell_stored(&place, &stored, args.format.is_json(), terminal)
}
