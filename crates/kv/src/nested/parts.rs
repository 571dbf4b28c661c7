//! Parts: nested tables under short fixed keys, for structures that consist of several tables.

use crate::nested::table_reader::TableReader;
use crate::nested::table_writer::{MissingTable, TableWriter};
use crate::table::tree::Tree;
use tidalite_base::Corrupt;
use tidalite_pager::{PageRead, PageWrite, Result};

/// Opens the nested table under the key `part` for reading; an empty table if the key does not exist.
///
/// # Errors
/// A damaged or unreadable page; `Refused` if the key holds a value.
pub fn part<'r, R: PageRead>(root: &Tree, r: &'r R, part: &[u8]) -> Result<TableReader<'r>> {
    let found = TableReader::of(*root).nested(r, part)?;
    Ok(found.unwrap_or_else(|| TableReader::of(Tree::new(root.id()))))
}

/// Changes the nested table under the key `part`, which is created if it does not exist.
///
/// # Errors
/// A damaged page, a full disk; errors of `change`. If `change` returns `Limit` or `IsTable`, its changes up to then
/// are kept.
pub fn change_part<W: PageWrite, T>(
    root: &mut Tree,
    w: &mut W,
    part: &[u8],
    change: &mut dyn FnMut(&mut W, &mut TableWriter) -> Result<T>,
) -> Result<T> {
    let mut table = TableWriter::of(*root);
    let done = table.at(w, &[part.to_vec()], MissingTable::CreateToFill, change);
    // After an error, too: the changes up to then may have moved the root.
    if let Some(tree) = table.tree() {
        *root = *tree;
    }
    done?.ok_or_else(|| {
        let found = format!("part {}", part.escape_ascii());
        Corrupt::new("table of parts", 0, "no such row", found).into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::key::KEY_BYTES_MAX;
    use tidalite_pager::Error;
    use tidalite_testkit::ScratchPages;

    #[test]
    fn rows_before_a_refused_one_stay_in_the_part() {
        let (mut root, mut pages) = (Tree::new(30), ScratchPages::new(512));
        let fill = |root: &mut Tree, pages: &mut ScratchPages, from: u8, long: usize| {
            change_part(root, pages, b"\x02part", &mut |w, table| {
                for i in from..from + 100 {
                    table.insert(w, &[b'k', i], &[i; 20])?;
                }
                table.insert(w, &vec![0; long], b"long").map(drop)
            })
        };
        fill(&mut root, &mut pages, 0, 3).unwrap();
        // The pages of the root are copied by the next change.
        root.seal(&mut pages).unwrap();
        pages.commit();
        let refused = fill(&mut root, &mut pages, 100, KEY_BYTES_MAX + 1);
        assert!(matches!(refused, Err(Error::Limit { .. })));
        let rows = part(&root, &pages, b"\x02part").unwrap();
        assert_eq!(rows.len(), 201);
        assert!(rows.contains(&pages, &[b'k', 199]).unwrap());
        assert!(part(&root, &pages, b"\x02").unwrap().is_empty());
        let mut claims = Vec::new();
        let check = root.check(&pages, &mut |used| claims.push((used.addr, used.pages)));
        check.unwrap();
        pages.assert_all_claimed(&claims);
    }
}
