//! A file with relations, and their answers through the engine's public interface.

use super::{Made, make, small};
use tidalite::ReadTxn;
use tidalite::relation::{
    self, Cell as Given, Column, ColumnType, Index, KeyBounds, Schema, TimeUnit,
};
use tidalite_reader::relation::{self as read, Relation};
use tidalite_reader::relation_cells::{Cell, Kind};

pub(crate) fn relations() -> Made {
    make(&small(512), |db| {
        let mut tx = db.begin_write().unwrap();
        let (unit, zoned) = (TimeUnit::Millis, true);
        let decimal = |precision| ColumnType::Decimal {
            precision,
            scale: 2,
        };
        let schema = Schema::new()
            .column(Column::new("number", ColumnType::I32))
            .column(Column::new("name", ColumnType::Text))
            .column(Column::new("is_new", ColumnType::Bool).not_null())
            .column(Column::new("small", ColumnType::I16))
            .column(Column::new("large", ColumnType::I64).default(-3_i64))
            .column(Column::new("count", ColumnType::U64))
            .column(Column::new("weight", ColumnType::F32))
            .column(Column::new("power", ColumnType::F64))
            .column(Column::new("raw", ColumnType::Bytes))
            .column(Column::new("price", decimal(9)))
            .column(Column::new("sum", decimal(18)))
            .column(Column::new("total", decimal(38)))
            .column(Column::new("built", ColumnType::Date))
            .column(Column::new("seen", ColumnType::Time { unit, zoned }))
            .column(Column::new("guid", ColumnType::Guid))
            .primary_key(["name", "number"])
            .index(Index::new(
                "by_all",
                ["power", "weight", "price", "sum", "total"],
            ))
            .index(Index::new("by_guid", ["guid"]).unique())
            .index(Index::new(
                "rest",
                ["raw", "built", "seen", "count", "is_new", "small"],
            ));
        let mut parts = tx.create_relation("parts", &schema).unwrap();
        for i in 0..30_i64 {
            let mut row = vec![
                Given::I64(i - 15),
                Given::Text(format!("part\0{}", i % 3)),
                Given::Bool(i % 2 == 0),
                Given::I64(-i * 1000),
                Given::I64(i << 40),
                Given::U64(u64::MAX >> i),
                Given::F64(if i == 7 {
                    f64::NAN
                } else {
                    i as f64 / 4.0 - 2.0
                }),
                Given::F64(if i == 8 { -0.0 } else { 1e300 * (i - 9) as f64 }),
                Given::Bytes(vec![0; (i % 4) as usize]),
                Given::Decimal((i - 3).into()),
                Given::Decimal(999_999_999_999 - i128::from(i)),
                Given::Decimal(10_i128.pow(37) * i128::from(i % 9)),
                Given::I64(16_000 - i),
                Given::I64(1_400_000_000_000 + i),
                Given::Guid([i as u8; 16]),
            ];
            for (at, cell) in row.iter_mut().enumerate().skip(3) {
                if (at as i64 + i) % 11 == 0 {
                    *cell = Given::Null;
                }
            }
            parts.insert(&row).unwrap();
        }
        parts
            .add_column(Column::new("later", ColumnType::Text).default("absent"))
            .unwrap();
        parts.set_default("later", Some(Given::Null)).unwrap();
        parts.drop_column("large").unwrap();
        parts.rename_column("guid", "id").unwrap();
        parts.drop_index("rest").unwrap();
        parts
            .create_index(Index::new("by_later", ["later", "seen"]))
            .unwrap();
        let first = parts
            .view()
            .unwrap()
            .rows(KeyBounds::all())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .key();
        parts.remove(&first).unwrap();
        let row = parts
            .view()
            .unwrap()
            .get(&[Given::from("part\0".to_owned() + "1"), Given::I64(-14)])
            .unwrap();
        let mut row = row.unwrap();
        row[1] = Given::from("moved");
        parts.upsert(&row).unwrap_err();
        row[13] = Given::Null;
        parts.upsert(&row).unwrap();

        let schema = Schema::new()
            .column(Column::new("line", ColumnType::Text))
            .index(Index::new("by_line", ["line"]));
        let mut log = tx.create_relation("log", &schema).unwrap();
        for i in 0..12 {
            log.insert(&[Given::from(format!("line {}", i % 5))])
                .unwrap();
        }
        log.insert(&[Given::from("long ".repeat(300))]).unwrap();
        let last = log.view().unwrap().row_key(&[Given::U64(11)]).unwrap();
        log.remove(&last).unwrap();
        let schema = Schema::new()
            .column(Column::new("x", ColumnType::I64))
            .primary_key(["x"]);
        drop(tx.create_relation("empty", &schema).unwrap());
        tx.commit().unwrap();
    })
}

fn kind(kind: ColumnType) -> Kind {
    let (code, of) = match kind {
        ColumnType::Bool => (0, [0, 0]),
        ColumnType::I16 => (1, [0, 0]),
        ColumnType::I32 => (2, [0, 0]),
        ColumnType::I64 => (3, [0, 0]),
        ColumnType::U64 => (4, [0, 0]),
        ColumnType::F32 => (5, [0, 0]),
        ColumnType::F64 => (6, [0, 0]),
        ColumnType::Text => (7, [0, 0]),
        ColumnType::Bytes => (8, [0, 0]),
        ColumnType::Decimal { precision, scale } => (9, [precision, scale]),
        ColumnType::Date => (10, [0, 0]),
        ColumnType::Time { unit, zoned } => (11, [unit as u8, u8::from(zoned)]),
        ColumnType::Guid => (12, [0, 0]),
        other => panic!("a type {other}"),
    };
    Kind { code, of }
}

fn cell(cell: &Given) -> Cell {
    match cell {
        Given::Null => Cell::Null,
        Given::Bool(value) => Cell::Bool(*value),
        Given::I64(value) => Cell::I64(*value),
        Given::U64(value) => Cell::U64(*value),
        Given::F64(value) => Cell::Float(value.to_bits()),
        Given::Text(text) => Cell::Text(text.clone()),
        Given::Bytes(bytes) => Cell::Bytes(bytes.clone()),
        Given::Decimal(value) => Cell::Decimal(*value),
        Given::Guid(guid) => Cell::Guid(*guid),
    }
}

pub(super) fn relation(snap: &ReadTxn, name: &str) -> Relation {
    let relation: relation::Relation<'_> = snap.relation(name).unwrap().expect("a relation");
    let schema = relation.schema();
    let positions = |names: &[String]| -> Vec<usize> {
        names
            .iter()
            .map(|name| schema.position(name).unwrap())
            .collect()
    };
    let is_hidden = schema.primary_key.is_empty();
    let mut rows = Vec::new();
    let mut all = relation.rows(KeyBounds::all()).unwrap();
    while let Some(row) = all.next().unwrap() {
        let hidden = is_hidden.then(|| u64::from_be_bytes(row.key_bytes().try_into().unwrap()));
        let cells = row.to_cells().unwrap();
        rows.push((hidden, cells.iter().map(cell).collect()));
    }
    let raw = snap.raw_table(name).unwrap().expect("a table");
    let nested = raw.nested(&[1]).unwrap();
    Relation {
        columns: schema
            .columns()
            .iter()
            .map(|column| read::Column {
                name: column.name.clone(),
                kind: kind(column.kind),
                not_null: column.not_null,
                default: column.default.as_ref().map(cell),
            })
            .collect(),
        key: positions(&schema.primary_key),
        indexes: schema
            .indexes()
            .iter()
            .map(|index| read::Index {
                name: index.name.clone(),
                columns: positions(&index.columns),
                unique: index.unique,
            })
            .collect(),
        sequence: nested.map_or(0, |rows| rows.sequence()),
        rows,
    }
}
