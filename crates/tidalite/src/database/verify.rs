//! Verification of a lazy commit that is recorded only in the lock file, when a database is opened: everything that the
//! roots of this commit reach and that is younger than the newest durable commit must be in the file.
//!
//! Each structure is walked from its root; older pages are skipped with everything below them. This reads the pages
//! that lazy commits have written, and the paths to them. The checksums in the pointers prove that each page is
//! present; whether the contents are right is left to `check`.

use crate::catalog::roots::Roots;
use crate::catalog::table_roots::decode_table_entry;
use crate::types::error::Error;
use crate::types::error::cause::Cause;
use tidalite_base::{Corrupt, SeriesId, TxnId};
use tidalite_kv::Tree;
use tidalite_pager::{Error as StoreError, PageRead, Result, Unrecorded, Verifier};
use tidalite_series::SeriesTree;

/// Returns the verifier that the pager calls when a database is opened.
pub(crate) fn verifier() -> Verifier {
    Verifier::new(|state: &Unrecorded<'_>| verify(state, state.app(), state.since()))
}

fn verify<R: PageRead>(r: &R, app: &[u8], since: TxnId) -> Result<()> {
    let roots = Roots::decode(app).map_err(of_store)?;
    for tree in [
        &roots.tables,
        &roots.names,
        &roots.guids,
        &roots.series,
        &roots.records,
        &roots.extents,
        &roots.policies,
        &roots.texts,
        &roots.annotations,
        &roots.tags,
    ] {
        tree.check_since(r, since)?;
    }
    for (_, tree) in &roots.inline {
        tree.check_since(r, since)?;
    }
    let inline = |id: u64| roots.inline.iter().any(|(inline, _)| *inline == id);
    entries_since(&roots.tables, r, since, &mut |_, entry| {
        let entry = decode_table_entry(entry).map_err(of_store)?;
        if inline(entry.id) {
            return Ok(());
        }
        entry.tree.check_since(r, since)
    })?;
    verify_series(r, &roots, since)?;
    tidalite_delta::check_since(r, &roots.delta, since)
}

fn verify_series<R: PageRead>(r: &R, roots: &Roots, since: TxnId) -> Result<()> {
    let mut check = tidalite_series::Check::since(since);
    entries_since(&roots.records, r, since, &mut |key, record| {
        let Some(id) = key.first_chunk() else {
            let found = format!("{} bytes", key.len());
            return Err(Corrupt::new("key of a series record", 0, found, "8 bytes").into());
        };
        let tree = SeriesTree::decode(SeriesId(u64::from_be_bytes(*id)), record)?;
        check.tree(r, &tree, &mut |_| {})?;
        check.first_damage().map_or(Ok(()), damaged)
    })?;
    let report = check.extents(r, &roots.extents, &mut |_| {})?;
    report.damages.first().map_or(Ok(()), damaged)
}

/// Callback that receives the key and the value of an entry.
type OnEntry<'f> = dyn FnMut(&[u8], &[u8]) -> Result<()> + 'f;

/// Calls `f` with the key and the value of every entry in leaves that were written after the commit `since`.
fn entries_since<R: PageRead>(tree: &Tree, r: &R, since: TxnId, f: &mut OnEntry<'_>) -> Result<()> {
    tree.leaves_since(r, since, &mut |leaf| {
        let mut cursor = leaf.cursor(r);
        let mut there = cursor.first()?;
        while there {
            f(cursor.key(), &cursor.value()?.to_vec()?)?;
            there = cursor.next()?;
        }
        Ok(())
    })
}

fn damaged(damage: &tidalite_series::Damage) -> Result<()> {
    let expected = "what the pointer to it says";
    Err(Corrupt::new("series", damage.addr, &damage.problem, expected).into())
}

fn of_store(error: Error) -> StoreError {
    let text = error.to_string();
    match error.into_cause() {
        Ok(Cause::Store(error)) => error,
        _ => Corrupt::new("roots", 0, text, "those of a database").into(),
    }
}
