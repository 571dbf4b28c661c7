//! `object link`: random ids under which a server can serve objects.

use super::place::{bucket, bucket_mut, info};
use crate::args::{ObjectLinkCreateArgs, ObjectLinkListArgs, ObjectLinkRevokeArgs};
use crate::bytes::{hex, unhex};
use crate::commands::messages::{time_text, told};
use crate::exit::{Failure, Outcome};
use crate::output::{bytes_text, plural, printable};
use crate::terminal::Terminal;
use std::hash::{BuildHasher, RandomState};
use tidalite::objects::LinkId;

/// Number of links that are read in one call.
const LISTED_AT_ONCE: usize = 1000;

/// An id that cannot be guessed: two values of a keyed hash function (SipHash). Its key of 128 bits comes from the
/// operating system. Each run of the program has a new key and creates one id.
fn random_id() -> LinkId {
    let state = RandomState::new();
    let mut id = [0; 16];
    let (first, second) = id.split_at_mut(8);
    first.copy_from_slice(&state.hash_one(0u64).to_be_bytes());
    second.copy_from_slice(&state.hash_one(1u64).to_be_bytes());
    LinkId(id)
}

/// Runs the command `tidalite object link create`.
pub(super) fn create(args: &ObjectLinkCreateArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let expires = args.expires.map(|expires| expires.at(tx.clock().now()));
    let mut bucket = bucket_mut(&place, &mut tx)?;
    let view = bucket.view().map_err(|error| place.fail(&error))?;
    info(&place, &view, &args.name)?;
    drop(view);
    let id = random_id();
    let linked = bucket.link_object(id, &args.name, expires);
    linked.map_err(|error| place.fail(&error))?;
    place.finish(tx, db)?;
    let id = hex(&id.0);
    if args.format.is_json() {
        let expires = expires.map(time_text);
        let line = serde_json::json!({"link": id, "name": args.name, "expires": expires});
        writeln!(terminal.out, "{line}")?;
        return Ok(terminal.out.flush()?);
    }
    told(&id, terminal)
}

/// Runs the command `tidalite object link revoke`.
pub(super) fn revoke(args: &ObjectLinkRevokeArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let id = unhex(args.link.as_bytes()).and_then(|id| id.try_into().ok());
    let id = id.map(LinkId).ok_or_else(|| {
        Failure::usage(format!(
            "`{}` is not the id of a link: 32 hex digits",
            args.link
        ))
        .hint("`tidalite object link list` lists the links")
    })?;
    let db = place.open_to_write()?;
    let mut tx = place.begin(&db)?;
    let revoked = bucket_mut(&place, &mut tx)?.revoke_link(id);
    if !revoked.map_err(|error| place.fail(&error))? {
        return Err(
            Failure::not_found(format!("{} has no link {}", place.table, args.link))
                .hint("`tidalite object link list` lists the links"),
        );
    }
    place.finish(tx, db)?;
    told(&format!("link {} removed", args.link), terminal)
}

/// The id after this one; `None` if it is the last one.
fn after(id: LinkId) -> Option<LinkId> {
    let next = u128::from_be_bytes(id.0).checked_add(1)?;
    Some(LinkId(next.to_be_bytes()))
}

/// Runs the command `tidalite object link list`.
pub(super) fn list(args: &ObjectLinkListArgs, terminal: &mut Terminal<'_>) -> Outcome {
    let place = args.place.place();
    let (_db, snap) = place.open()?;
    let bucket = bucket(&place, &snap)?;
    let mut from = Some(LinkId([0; 16]));
    while let Some(first) = from {
        let links = bucket.links(first, LISTED_AT_ONCE);
        let links = links.map_err(|error| place.fail(&error))?;
        for (id, link) in &links {
            let (id, expires) = (hex(&id.0), link.expires.map(time_text));
            let line = match args.format.is_json() {
                true => serde_json::json!({
                    "link": id,
                    "name": link.name,
                    "expires": expires,
                    "reads": link.reads,
                    "bytes": link.bytes,
                })
                .to_string(),
                false => format!(
                    "{id}\t{}\t{}\t{}\t{}",
                    printable(&link.name),
                    plural(link.reads, "read", "reads"),
                    bytes_text(link.bytes),
                    expires.unwrap_or_else(|| "never expires".to_owned())
                ),
            };
            writeln!(terminal.out, "{line}")?;
        }
        from = links.last().and_then(|(id, _)| after(*id));
    }
    Ok(terminal.out.flush()?)
}
