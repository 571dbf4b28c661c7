//! A schema that cannot be used, or a refused change of a schema, changes nothing.

use crate::cell::Cell;
use crate::error::{Conflict, Error};
use crate::kind::ColumnType;
use crate::layout::Layout;
use crate::schema::{COLUMNS_MAX, Column, INDEXES_MAX, Index, KEY_COLUMNS_MAX, Schema};
use crate::tests::table::{Table, full, row, schema};

fn refused(schema: Schema) {
    let error = Layout::of(schema.clone()).unwrap_err();
    assert!(matches!(error, Error::Schema { .. }), "{schema:?}: {error}");
}

#[test]
fn unusable_schemas_are_refused() {
    let one = || Column::new("a", ColumnType::I64);
    refused(Schema::new());
    refused(Schema::new().column(Column::new("", ColumnType::I64)));
    refused(Schema::new().column(Column::new("n".repeat(256), ColumnType::I64)));
    refused(Schema::new().column(one()).column(one()));
    refused(Schema::new().column(one()).primary_key(["b"]));
    refused(Schema::new().column(one()).primary_key(["a", "a"]));
    refused(Schema::new().column(one().default("text")));
    refused(Schema::new().column(one().not_null().default(Cell::Null)));
    refused(
        Schema::new()
            .column(one().default(Cell::Null))
            .primary_key(["a"]),
    );
    for (precision, scale) in [(0, 0), (39, 0), (4, 5)] {
        let kind = ColumnType::Decimal { precision, scale };
        refused(Schema::new().column(Column::new("a", kind)));
    }
    let text = Column::new("a", ColumnType::Text).default("x".repeat(4097));
    refused(Schema::new().column(text));
    let index = |name: &str| Index::new(name, ["a"]);
    refused(
        Schema::new()
            .column(one())
            .index(Index::new("i", Vec::<String>::new())),
    );
    refused(Schema::new().column(one()).index(Index::new("i", ["b"])));
    refused(
        Schema::new()
            .column(one())
            .index(index("i"))
            .index(index("i")),
    );
    refused(Schema::new().column(one()).index(index("")));
    let many = |columns: usize| {
        let columns = (0..columns).map(|i| Column::new(format!("c{i}"), ColumnType::I64));
        columns.fold(Schema::new(), Schema::column)
    };
    assert!(Layout::of(many(COLUMNS_MAX)).is_ok());
    refused(many(COLUMNS_MAX + 1));
    let names = |count: usize| (0..count).map(|i| format!("c{i}"));
    assert!(Layout::of(many(40).primary_key(names(KEY_COLUMNS_MAX))).is_ok());
    refused(many(40).primary_key(names(KEY_COLUMNS_MAX + 1)));
    let indexes = |count: usize| {
        let indexes = (0..count).map(|i| Index::new(format!("i{i}"), ["a"]));
        indexes.fold(Schema::new().column(one()), Schema::index)
    };
    assert!(Layout::of(indexes(INDEXES_MAX)).is_ok());
    refused(indexes(INDEXES_MAX + 1));
}

#[test]
fn refused_changes_change_nothing() {
    let mut table = full(512, 60);
    let layout = table.read().into_layout();
    let before = table.rows();
    let mut writer = table.write();
    let unusable = |result: crate::Result<()>| {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Schema { .. }), "{error}");
    };
    unusable(writer.add_column(Column::new("name", ColumnType::I64)));
    unusable(writer.add_column(Column::new("n", ColumnType::I64).not_null()));
    unusable(writer.drop_column("site"));
    unusable(writer.drop_column("name"));
    unusable(writer.drop_column("none"));
    unusable(writer.rename_column("none", "n"));
    unusable(writer.rename_column("guid", "name"));
    unusable(writer.rename_column("guid", ""));
    unusable(writer.set_default("name", Some(Cell::I64(1))));
    unusable(writer.create_index(Index::new("by_name", ["name"])));
    unusable(writer.create_index(Index::new("i", ["none"])));
    assert!(!writer.drop_index("none").unwrap());
    let same = Index::new("by_site", ["site"]).unique();
    let error = writer.create_index(same).unwrap_err();
    let Error::Unique { conflict, key } = error else {
        panic!("{error}");
    };
    assert_eq!(conflict, Conflict::Index("by_site".into()));
    assert_eq!(key, r#"site = "site\00""#);
    assert!(!writer.remove(&crate::RowKey::from_bytes(*b"none")).unwrap());
    assert_eq!(table.read().into_layout(), layout);
    assert_eq!(table.rows(), before);
    table.assert_whole();
}

#[test]
fn refused_rows_are_named() {
    let mut table = Table::new(512, &schema());
    let mut writer = table.write();
    writer.insert(&row(1)).unwrap();
    let error = writer.insert(&row(1)).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"the primary key has site = "site\01", number = 1 already"#
    );
    let mut other = row(2);
    other[2] = Cell::from("name 1");
    let error = writer.insert(&other).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"the unique index by_name has name = "name 1" already"#
    );
    other[2] = Cell::Null;
    let error = writer.insert(&other).unwrap_err().to_string();
    assert_eq!(error, "column name must not be null");
    other[2] = Cell::I64(2);
    let error = writer.insert(&other).unwrap_err().to_string();
    assert_eq!(error, "column name of type text cannot hold 2");
    let error = writer.insert(&other[1..]).unwrap_err().to_string();
    assert_eq!(error, "6 values for 7 columns");
    other[2] = Cell::from("name 2");
    other[1] = Cell::I64(1 << 40);
    assert!(matches!(writer.insert(&other), Err(Error::Cell { .. })));
    other[1] = Cell::I64(2);
    other[4] = Cell::Decimal(10_i128.pow(12));
    assert!(matches!(writer.insert(&other), Err(Error::Cell { .. })));
    let error = writer.insert_columns(&[("site", Cell::from("a")), ("none", Cell::Null)]);
    assert!(matches!(error, Err(Error::Schema { .. })));
    let named = [
        ("number", Cell::I64(5)),
        ("site", Cell::from("b")),
        ("name", Cell::from("n")),
    ];
    let key = writer.insert_columns(&named).unwrap();
    let row = writer.reader().get_row(&key).unwrap().unwrap();
    assert_eq!(row[3], Cell::F64(1.5));
    assert!(matches!(
        writer.update(&crate::RowKey::from_bytes(*b"x"), &row),
        Err(Error::NoSuchRow)
    ));
    let long = "x".repeat(17 << 20);
    let limit = writer.insert_columns(&[
        ("number", Cell::I64(6)),
        ("site", Cell::from("b")),
        ("name", Cell::from(long)),
    ]);
    assert!(matches!(
        limit,
        Err(Error::Store(tidalite_pager::Error::Limit { .. }))
    ));
    table.assert_whole();
    assert_eq!(table.rows().len(), 2);
}

#[test]
fn an_index_with_a_key_that_is_too_long_is_refused() {
    let columns = ["a", "b"].map(|name| Column::new(name, ColumnType::Text));
    let schema = columns.into_iter().fold(Schema::new(), Schema::column);
    let mut table = Table::new(512, &schema);
    let mut writer = table.write();
    let long = Cell::from("x".repeat(9 << 20));
    for text in ["short", "also short"] {
        writer.insert(&[Cell::from(text), Cell::Null]).unwrap();
    }
    writer.insert(&[long.clone(), long]).unwrap();
    let layout = writer.reader().into_layout();
    let refused = writer.create_index(Index::new("both", ["a", "b"]));
    assert!(matches!(
        refused,
        Err(Error::Store(tidalite_pager::Error::Limit { .. }))
    ));
    assert_eq!(table.read().into_layout(), layout);
    table.write().create_index(Index::new("a", ["a"])).unwrap();
    table.assert_whole();
}

/// In tests, indexes are built from pieces of 1 KiB: rows that conflict are in different pieces, or in the same one.
#[test]
fn a_unique_index_is_refused_wherever_its_rows_lie() {
    let guid = |writer: &crate::RelationWriter<'_, _>| writer.layout.schema.expect("guid").unwrap();
    for (first, second) in [(0, 1), (0, 199), (93, 150), (198, 199)] {
        let mut table = full(512, 200);
        let mut writer = table.write();
        let at = guid(&writer);
        let key = |i: i64| [Cell::from(format!("site\0{}", i % 7)), Cell::I64(i)];
        let index = || Index::new("by_guid", ["guid"]).unique();
        writer.create_index(index()).unwrap();
        assert!(writer.drop_index("by_guid").unwrap());
        let [first, second] = [first, second].map(|i| writer.reader().row_key(&key(i)).unwrap());
        let reader = writer.reader();
        let same = reader.get_row(&first).unwrap().unwrap()[at].clone();
        let mut row = reader.get_row(&second).unwrap().unwrap();
        drop(reader);
        row[at] = same;
        writer.update(&second, &row).unwrap();
        let error = writer.create_index(index()).unwrap_err();
        assert!(matches!(error, Error::Unique { .. }), "{error}");
        row[at] = Cell::Null;
        writer.update(&second, &row).unwrap();
        writer.create_index(index()).unwrap();
        table.assert_whole();
    }
}

/// The encoder writes exactly the example of docs/format/relations.md.
#[test]
fn the_example_of_the_description_is_what_is_written() {
    let schema = Schema::new()
        .column(Column::new("id", ColumnType::I64))
        .column(Column::new("name", ColumnType::Text))
        .primary_key(["id"])
        .index(Index::new("by_name", ["name"]));
    let layout = Layout::of(schema).unwrap();
    let expected = b"\x01\x02\x02id\x03\x03\x00\x04name\x07\x00\x00\x01\x07\x00\x01\x01\x00\x00\x07by_name\x01\x01";
    assert_eq!(layout.encode(), expected);
    let row = [Cell::I64(7), Cell::from("R7")];
    assert_eq!(layout.key_of(&row), [0x80, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(layout.value_of(&row), b"\x01\x01\x02R7");
    let prefix = layout.index_prefix(&layout.indexes[0], &row);
    assert_eq!(prefix, b"\x01R7\x00\x00");
}
