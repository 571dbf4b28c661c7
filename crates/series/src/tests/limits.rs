//! Tests the limits of a tree, at the limit and one beyond it. A tree of 48 levels is too high to build from rows, so
//! the functions that enforce the limit are called directly.

use super::World;
use crate::link::Entry;
use crate::node::{self, HEIGHT_MAX, NODE_LINKS_MAX, Spine};
use crate::tree::edit::Split;
use crate::tree::series_tree::build_levels;
use crate::{Packer, SeriesTree};
use tidalite_base::SeriesId;
use tidalite_codec::{ColumnType, Rows};
use tidalite_pager::{Error, HEADER_BYTES, Header, PageRead, PageWrite, seal_block};

const TYPES: [ColumnType; 1] = [ColumnType::I64];
/// Offset of the number of links in a node, as in docs/format.md.
const LINKS_AT: usize = HEADER_BYTES + 1;
/// Offset of the height in a record, as in docs/format.md.
const HEIGHT_AT: usize = 2;

/// Writes `leaves` leaves of one row each, and returns the links to these leaves.
fn leaves(leaves: i64) -> (World, Vec<Entry>) {
    let mut world = World::new(4096, NODE_LINKS_MAX, &TYPES);
    let mut entries = Vec::new();
    for i in 0..leaves {
        let mut rows = Rows::new(1);
        rows.push_row(i, &[i as u64]);
        let mut one = World::new(4096, NODE_LINKS_MAX, &TYPES);
        std::mem::swap(&mut one.pages, &mut world.pages);
        one.link(rows.view());
        entries.extend(one.tree.tops().cloned());
        std::mem::swap(&mut one.pages, &mut world.pages);
    }
    assert_eq!(entries.len() as i64, leaves);
    (world, entries)
}

#[test]
fn a_tree_has_at_most_48_levels() {
    let (mut world, links) = leaves(2);
    let mut packer = Packer::new(world.table);
    let (mut edit, ..) = world.tree.edit(&mut world.pages, &mut packer);
    let (top, height) =
        build_levels(&mut edit, HEIGHT_MAX - 1, links.clone(), Split::Even).unwrap();
    assert_eq!(height, HEIGHT_MAX);
    let top = top.unwrap();
    Spine::open(&world.pages, &top.link, HEIGHT_MAX, 1).unwrap();
    let (mut edit, ..) = world.tree.edit(&mut world.pages, &mut packer);
    // A single link needs no level above it, so the maximum height is not exceeded.
    let one = build_levels(&mut edit, HEIGHT_MAX, links[..1].to_vec(), Split::Even);
    assert_eq!(one.unwrap().1, HEIGHT_MAX);
    match build_levels(&mut edit, HEIGHT_MAX, links, Split::Even) {
        Err(Error::Limit { what, found, limit }) => {
            assert!(what.contains("levels"), "{what}");
            assert_eq!(
                (found, limit),
                (u64::from(HEIGHT_MAX) + 1, u64::from(HEIGHT_MAX))
            );
        }
        _ => panic!("a level too many"),
    }
    // Encodes the record of a tree of maximum height, and of a tree with one level more.
    let tree = SeriesTree {
        root: Some(top),
        height: HEIGHT_MAX,
        ..SeriesTree::new(SeriesId(7), &TYPES).unwrap()
    };
    let mut record = tree.encode();
    let decoded = SeriesTree::decode(SeriesId(7), &record).unwrap();
    assert_eq!(decoded.height(), HEIGHT_MAX);
    record[HEIGHT_AT] += 1;
    let error = SeriesTree::decode(SeriesId(7), &record).err().unwrap();
    assert!(matches!(error, Error::Corrupt(_)), "{error}");
}

#[test]
fn a_node_has_at_most_64_links() {
    let (mut world, links) = leaves(NODE_LINKS_MAX as i64 + 1);
    let mut packer = Packer::new(world.table);
    let (mut edit, ..) = world.tree.edit(&mut world.pages, &mut packer);
    let full = edit.pack(1, &links[..NODE_LINKS_MAX], Split::Full).unwrap();
    assert_eq!(full.len(), 1);
    let two = edit.pack(1, &links, Split::Full).unwrap();
    let counts: Vec<u64> = two.iter().map(|entry| entry.link.count).collect();
    assert_eq!(counts, [NODE_LINKS_MAX as u64, 1]);
    let pages = &mut world.pages;
    let spine = Spine::open(pages, &full[0].link, 1, 1).unwrap();
    assert_eq!(spine.len(), NODE_LINKS_MAX);
    // A writer must not produce such a node, and a reader must report a file that contains one as damaged.
    let written = std::panic::catch_unwind(|| {
        node::write(&mut World::new(4096, 2, &TYPES).pages, 7, 1, &links).map(drop)
    });
    assert!(written.is_err());
    let mut block = pages.block(&full[0].link.ptr).unwrap().to_vec();
    let header = Header::decode(&block);
    let before = block.len();
    block.resize(before + crate::link::LINK_BYTES, 0);
    links[NODE_LINKS_MAX].link.encode(&mut block, before);
    block[LINKS_AT] += 1;
    let extent = pages.alloc_extent(2).unwrap();
    let address = extent.addr;
    let ptr = seal_block(&mut block, &Header { address, ..header });
    pages.write_extent(address, &block).unwrap();
    let link = crate::link::Link {
        ptr,
        end: links[NODE_LINKS_MAX].link.end,
        count: links.len() as u64,
        ..full[0].link
    };
    let error = Spine::open(pages, &link, 1, 1).map(drop).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("65 links"), "{message}");
}
