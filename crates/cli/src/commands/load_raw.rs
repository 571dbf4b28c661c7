//! Checks tables whose rows `load` has stored one by one: a hash table, topics, a queue, a bucket or containers. A
//! table that violates a rule of its layout is not committed.

use super::layouts::noun;
use crate::exit::{Failure, Outcome};
use tidalite::{ErrorKind, TableLayout, WriteTxn};

/// The number of keys, messages or objects, and the first rule that the rows violate.
type Checked = (u64, Option<String>);

/// The number of keys, messages or objects of a table whose rows were loaded. Returns an error if the rows are not a
/// valid table of this layout. The series of containers are created from their messages, because a dump contains no
/// series.
pub(super) fn checked(
    tx: &mut WriteTxn,
    name: &str,
    layout: TableLayout,
    fail: &dyn Fn(tidalite::Error) -> Failure,
) -> Outcome<u64> {
    let noun = noun(layout);
    let hint = match layout {
        TableLayout::Hash => {
            "if the table that was dumped has an error of the index: tidalite hash rebuild"
        }
        _ => "check the database that was dumped: tidalite check",
    };
    let broken = |problem: &str| {
        Failure::bad_input(format!("these are not the rows of {noun}: {problem}")).hint(hint)
    };
    match check(tx, name, layout) {
        Ok((count, None)) => Ok(count),
        Ok((_, Some(problem))) => Err(broken(&problem)),
        Err(error) if error.kind() == ErrorKind::Damaged => Err(broken(&error.to_string())),
        Err(error) => Err(fail(error)),
    }
}

fn check(tx: &mut WriteTxn, name: &str, layout: TableLayout) -> tidalite::Result<Checked> {
    let mut first = None;
    let mut problem = |text: &str| {
        first.get_or_insert_with(|| text.to_owned());
    };
    let count = match layout {
        TableLayout::Rows | TableLayout::Buffered => 0,
        TableLayout::Hash => match tx.raw_hash_table(name)? {
            Some(mut table) => {
                let view = table.view()?;
                view.check(&mut problem)?;
                view.count()?
            }
            None => 0,
        },
        TableLayout::Topics => match tx.topics_if_exists(name)? {
            Some(topics) => {
                let view = topics.view()?;
                view.check(&mut problem)?;
                view.stat()?.messages
            }
            None => 0,
        },
        TableLayout::Queue => match tx.queue_if_exists(name)? {
            Some(queue) => {
                let view = queue.view()?;
                view.check(&mut problem)?;
                view.stat()?.messages
            }
            None => 0,
        },
        TableLayout::Bucket => match tx.bucket_if_exists(name)? {
            Some(bucket) => {
                let view = bucket.view()?;
                view.check(&mut problem)?;
                view.stat()?.objects
            }
            None => 0,
        },
        TableLayout::Relation => match tx.view_relation(name)? {
            Some(relation) => {
                relation.check(&mut problem)?;
                relation.count()
            }
            None => 0,
        },
        TableLayout::Containers => match tx.containers_if_exists(name)? {
            Some(mut containers) => {
                let view = containers.view()?;
                view.check(&mut problem)?;
                let messages = view.stat()?.messages;
                drop(view);
                // Rows that violate a rule are not committed.
                if first.is_none() {
                    containers.rebuild_series()?;
                }
                messages
            }
            None => 0,
        },
    };
    Ok((count, first))
}
