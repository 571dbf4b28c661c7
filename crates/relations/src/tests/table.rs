//! A relation on pages in memory.

use crate::bounds::KeyBounds;
use crate::cell::Cell;
use crate::kind::{ColumnType, TimeUnit};
use crate::layout::Layout;
use crate::read::RelationReader;
use crate::schema::{Column, Index, Schema};
use crate::write::RelationWriter;
use std::sync::Arc;
use tidalite_kv::Tree;
use tidalite_pager::Result;
use tidalite_testkit::ScratchPages;

pub(super) struct Table {
    pub(super) root: Tree,
    pub(super) pages: ScratchPages,
}

impl Table {
    pub(super) fn new(page_size: usize, schema: &Schema) -> Self {
        let (mut root, mut pages) = (Tree::new(30), ScratchPages::new(page_size));
        let layout = Arc::new(Layout::of(schema.clone()).unwrap());
        drop(RelationWriter::create(&mut root, &mut pages, layout).unwrap());
        Self { root, pages }
    }

    pub(super) fn write(&mut self) -> RelationWriter<'_, ScratchPages> {
        let layout = self.read().into_layout();
        RelationWriter::with_layout(&mut self.root, &mut self.pages, layout)
    }

    pub(super) fn read(&self) -> RelationReader<&ScratchPages> {
        RelationReader::open(&self.root, &self.pages).unwrap()
    }

    pub(super) fn rows(&self) -> Vec<Vec<Cell>> {
        let reader = self.read();
        let mut rows = reader.rows(&KeyBounds::all()).unwrap();
        let mut found = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            found.push(row.to_cells().unwrap());
        }
        found
    }

    pub(super) fn problems(&self) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        RelationReader::open(&self.root, &self.pages)?.check(&mut |text| problems.push(text))?;
        Ok(problems)
    }

    /// Checks the relation and all its pages.
    pub(super) fn assert_whole(&self) {
        assert_eq!(self.problems().unwrap(), Vec::<String>::new());
        let mut claims = Vec::new();
        self.root
            .check(&self.pages, &mut |used| {
                claims.push((used.addr, used.pages))
            })
            .unwrap();
        self.pages.assert_all_claimed(&claims);
    }

    pub(super) fn commit(&mut self) {
        self.root.seal(&mut self.pages).unwrap();
        self.pages.commit();
    }
}

/// A schema with columns of many types, a primary key of two columns, a unique index and one that is not.
pub(super) fn schema() -> Schema {
    let (unit, zoned) = (TimeUnit::Nanos, true);
    let (precision, scale) = (12, 3);
    Schema::new()
        .column(Column::new("site", ColumnType::Text))
        .column(Column::new("number", ColumnType::I32))
        .column(Column::new("name", ColumnType::Text).not_null())
        .column(Column::new("power", ColumnType::F64).default(1.5))
        .column(Column::new(
            "price",
            ColumnType::Decimal { precision, scale },
        ))
        .column(Column::new("since", ColumnType::Time { unit, zoned }))
        .column(Column::new("guid", ColumnType::Guid))
        .primary_key(["site", "number"])
        .index(Index::new("by_name", ["name"]).unique())
        .index(Index::new("by_power", ["power", "price"]))
}

pub(super) fn row(i: i64) -> Vec<Cell> {
    vec![
        Cell::from(format!("site\0{}", i % 7)),
        Cell::I64(i),
        Cell::from(format!("name {i}")),
        if i % 5 == 0 {
            Cell::Null
        } else {
            Cell::F64((i % 9) as f64)
        },
        Cell::Decimal((i * 1001).into()),
        Cell::I64(i * 1_000_000_000),
        Cell::Guid([i as u8; 16]),
    ]
}

/// A relation with rows, a column that was added and one that was dropped.
pub(super) fn full(page_size: usize, rows: i64) -> Table {
    let mut table = Table::new(page_size, &schema());
    let mut writer = table.write();
    for i in 0..rows {
        writer.insert(&row(i)).unwrap();
    }
    writer
        .add_column(Column::new("later", ColumnType::Text).default("absent"))
        .unwrap();
    writer.drop_column("since").unwrap();
    table
}
