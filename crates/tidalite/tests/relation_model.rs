//! Relations against a model: random schemas, rows, changes of the schema, savepoints, reopened files. The model keeps rows in a
//! `BTreeMap`, compares cells by their values, and answers every question by looking at all rows.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use tidalite::relation::{
    Cell, Column, ColumnType, Conflict, Index, KeyBounds, Relation, RelationMut, RowKey, Rows,
    Schema, TimeUnit,
};
use tidalite::storage::MemoryStorage;
use tidalite::{Database, ErrorKind, Options, WriteTxn};
use tidalite_testkit::rng::Rng;

const NAME: &str = "relation";

/// Cells as a key, in the order of their values.
#[derive(Clone, Debug)]
struct Key(Vec<Cell>);

fn compare(a: &Cell, b: &Cell) -> Ordering {
    match (a, b) {
        (Cell::Null, Cell::Null) => Ordering::Equal,
        (Cell::Null, _) => Ordering::Less,
        (_, Cell::Null) => Ordering::Greater,
        (Cell::Bool(a), Cell::Bool(b)) => a.cmp(b),
        (Cell::I64(a), Cell::I64(b)) => a.cmp(b),
        (Cell::U64(a), Cell::U64(b)) => a.cmp(b),
        (Cell::F64(a), Cell::F64(b)) => match a.partial_cmp(b) {
            Some(order) => order,
            None => a.is_nan().cmp(&b.is_nan()),
        },
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        (Cell::Bytes(a), Cell::Bytes(b)) => a.cmp(b),
        (Cell::Decimal(a), Cell::Decimal(b)) => a.cmp(b),
        (Cell::Guid(a), Cell::Guid(b)) => a.cmp(b),
        _ => panic!("{a:?} and {b:?} are of different types"),
    }
}

/// Compares as many cells as both have.
fn compare_prefix(a: &[Cell], b: &[Cell]) -> Ordering {
    let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
    pairs.fold(Ordering::Equal, Ordering::then)
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare_prefix(&self.0, &other.0)
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

/// Exactly the same cells; all NaN are the same.
fn is_same(a: &[Cell], b: &[Cell]) -> bool {
    let same = |(a, b): (&Cell, &Cell)| match (a, b) {
        (Cell::F64(a), Cell::F64(b)) => a.is_nan() && b.is_nan() || a.to_bits() == b.to_bits(),
        _ => a == b,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

#[derive(Clone, Debug, Default)]
struct Model {
    schema: Schema,
    rows: BTreeMap<Key, Vec<Cell>>,
    /// The next hidden key.
    next: u64,
    /// Number of a name for columns and indexes.
    names: usize,
    work: Work,
}

/// What was done, to tell that all of it was reached.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    inserted: u64,
    replaced: u64,
    updated: u64,
    removed: u64,
    refused: u64,
    altered: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Refusal {
    Null(String),
    Unique(Conflict),
}

impl Model {
    fn has_hidden_key(&self) -> bool {
        self.schema.primary_key.is_empty()
    }

    fn positions(&self, names: &[String]) -> Vec<usize> {
        let columns = &self.schema.columns;
        let position = |name: &String| columns.iter().position(|one| one.name == *name).unwrap();
        names.iter().map(position).collect()
    }

    fn pick(&self, names: &[String], row: &[Cell]) -> Vec<Cell> {
        let positions = self.positions(names).into_iter();
        positions.map(|at| row[at].clone()).collect()
    }

    /// The row as it is read back: keys know neither -0 nor several NaN.
    fn stored(&self, mut row: Vec<Cell>) -> Vec<Cell> {
        for at in self.positions(&self.schema.primary_key) {
            if let Cell::F64(value) = &mut row[at]
                && *value == 0.0
            {
                *value = 0.0;
            }
        }
        row
    }

    fn refusal(&self, row: &[Cell], old: Option<&Key>) -> Option<Refusal> {
        for (column, cell) in self.schema.columns.iter().zip(row) {
            let in_key = self.schema.primary_key.contains(&column.name);
            if (column.not_null || in_key) && cell.is_null() {
                return Some(Refusal::Null(column.name.clone()));
            }
        }
        self.conflict(row, old)
            .map(|(conflict, _)| Refusal::Unique(conflict))
    }

    fn conflict(&self, row: &[Cell], old: Option<&Key>) -> Option<(Conflict, Key)> {
        if !self.has_hidden_key() {
            let key = Key(self.pick(&self.schema.primary_key, row));
            if old != Some(&key) && self.rows.contains_key(&key) {
                return Some((Conflict::PrimaryKey, key));
            }
        }
        for index in self.schema.indexes.iter().filter(|index| index.unique) {
            let cells = self.pick(&index.columns, row);
            if cells.iter().any(Cell::is_null) {
                continue;
            }
            for (key, other) in &self.rows {
                let others = self.pick(&index.columns, other);
                if old != Some(key) && compare_prefix(&cells, &others).is_eq() {
                    return Some((Conflict::Index(index.name.clone()), key.clone()));
                }
            }
        }
        None
    }

    /// The rows in the order of an index, each with its key.
    fn by_index(&self, index: &Index) -> Vec<(Vec<Cell>, &Vec<Cell>)> {
        let rows = self.rows.iter();
        let keyed = rows.map(|(key, row)| {
            let mut cells = self.pick(&index.columns, row);
            cells.extend(key.0.iter().cloned());
            (cells, row)
        });
        let mut all: Vec<_> = keyed.collect();
        all.sort_by(|a, b| compare_prefix(&a.0, &b.0));
        all
    }
}

fn kinds() -> Vec<ColumnType> {
    use TimeUnit::{Micros, Millis, Nanos, Seconds};
    let decimal = |precision, scale| ColumnType::Decimal { precision, scale };
    let time = |unit, zoned| ColumnType::Time { unit, zoned };
    vec![
        ColumnType::Bool,
        ColumnType::I16,
        ColumnType::I32,
        ColumnType::I64,
        ColumnType::U64,
        ColumnType::F32,
        ColumnType::F64,
        ColumnType::Text,
        ColumnType::Text,
        ColumnType::Bytes,
        decimal(5, 2),
        decimal(18, 4),
        decimal(38, 0),
        ColumnType::Date,
        time(Seconds, false),
        time(Millis, true),
        time(Micros, false),
        time(Nanos, true),
        ColumnType::Guid,
    ]
}

/// A value of few different ones, so that rows conflict, or of many.
fn value(rng: &mut Rng, kind: ColumnType) -> Cell {
    let few = rng.one_in(2);
    let below = if few { 4 } else { 1 << 20 };
    let small = rng.below(below) as i64 - below as i64 / 2;
    match kind {
        ColumnType::Bool => Cell::Bool(rng.one_in(2)),
        ColumnType::I16 => Cell::I64(small.clamp(i16::MIN.into(), i16::MAX.into())),
        ColumnType::I32 | ColumnType::Date => match rng.below(9) {
            0 => Cell::I64(i32::MIN.into()),
            1 => Cell::I64(i32::MAX.into()),
            _ => Cell::I64(small),
        },
        ColumnType::I64 | ColumnType::Time { .. } => match rng.below(9) {
            0 => Cell::I64(i64::MIN),
            1 => Cell::I64(i64::MAX),
            2 => Cell::I64(rng.u64() as i64),
            _ => Cell::I64(small),
        },
        ColumnType::U64 => match rng.below(9) {
            0 => Cell::U64(u64::MAX),
            _ => Cell::U64(small.unsigned_abs()),
        },
        ColumnType::F32 | ColumnType::F64 => match rng.below(9) {
            0 => Cell::F64(f64::NAN),
            1 => Cell::F64(-0.0),
            2 => Cell::F64(f64::NEG_INFINITY),
            3 => Cell::F64(f64::INFINITY),
            _ => Cell::F64(small as f64 / 4.0),
        },
        ColumnType::Text => Cell::Text(match rng.below(12) {
            0 => String::new(),
            1 => "\0".repeat(1 + rng.index(3)),
            2 => "long ".repeat(1 + rng.index(400)),
            3 => format!("a\0{small}"),
            _ => format!("ä{small}"),
        }),
        ColumnType::Bytes => match rng.below(12) {
            0 => Cell::Bytes(vec![0; rng.index(4)]),
            1 => Cell::Bytes(vec![0xff; rng.index(900)]),
            _ => Cell::Bytes(small.to_be_bytes().to_vec()),
        },
        ColumnType::Decimal { precision, .. } => {
            let most = 10i128.pow(precision.into()) - 1;
            match rng.below(9) {
                0 => Cell::Decimal(most),
                1 => Cell::Decimal(-most),
                _ => Cell::Decimal(i128::from(small).clamp(-most, most)),
            }
        }
        ColumnType::Guid => {
            let mut guid = [0; 16];
            guid[rng.index(16)] = small as u8;
            Cell::Guid(guid)
        }
        _ => unreachable!("all types are listed"),
    }
}

fn column(rng: &mut Rng, number: usize) -> Column {
    let mut column = Column::new(format!("c{number}"), *rng.pick(&kinds()));
    column.not_null = rng.one_in(4);
    if rng.one_in(2) {
        column.default = Some(value(rng, column.kind));
    }
    column
}

fn index(rng: &mut Rng, number: usize, schema: &Schema) -> Index {
    let mut names: Vec<String> = schema.columns.iter().map(|one| one.name.clone()).collect();
    rng.shuffle(&mut names);
    names.truncate(1 + rng.index(3));
    let mut index = Index::new(format!("i{number}"), names);
    index.unique = rng.one_in(2);
    index
}

fn random_schema(rng: &mut Rng) -> Model {
    let mut model = Model::default();
    for number in 0..1 + rng.index(6) {
        model.schema.columns.push(column(rng, number));
    }
    if !rng.one_in(4) {
        let mut names: Vec<String> = model
            .schema
            .columns
            .iter()
            .map(|one| one.name.clone())
            .collect();
        rng.shuffle(&mut names);
        names.truncate(1 + rng.index(3));
        model.schema.primary_key = names;
    }
    for number in 0..rng.index(3) {
        let index = index(rng, number, &model.schema);
        model.schema.indexes.push(index);
    }
    model.names = 10;
    model
}

fn row(rng: &mut Rng, model: &Model) -> Vec<Cell> {
    let columns = model.schema.columns.iter();
    let cells = columns.map(
        |column| match rng.one_in(if column.not_null { 40 } else { 6 }) {
            true => Cell::Null,
            false => value(rng, column.kind),
        },
    );
    let mut row: Vec<Cell> = cells.collect();
    if rng.one_in(2) {
        for at in model.positions(&model.schema.primary_key) {
            if row[at].is_null() {
                row[at] = value(rng, model.schema.columns[at].kind);
            }
        }
    }
    row
}

/// A key that exists, if there is one.
fn some_key(rng: &mut Rng, model: &Model) -> Option<Key> {
    let count = model.rows.len();
    (count > 0).then(|| model.rows.keys().nth(rng.index(count)).unwrap().clone())
}

fn assert_refused(error: &tidalite::Error, refusal: &Refusal) {
    assert_eq!(error.table(), Some(NAME), "{error}");
    match refusal {
        Refusal::Null(column) => assert_eq!(error.not_null_violation(), Some(column.as_str())),
        Refusal::Unique(conflict) => {
            assert_eq!(
                error.unique_violation().map(|(rule, _)| rule),
                Some(conflict)
            );
        }
    }
}

fn row_key(relation: &RelationMut<'_>, key: &Key) -> RowKey {
    relation.view().unwrap().row_key(&key.0).unwrap()
}

/// One random change of rows.
fn change_rows(rng: &mut Rng, relation: &mut RelationMut<'_>, model: &mut Model) {
    let new = row(rng, model);
    match rng.below(10) {
        0..=4 => {
            let refusal = model.refusal(&new, None);
            if !matches!(refusal, Some(Refusal::Null(_))) {
                let found = relation.find_conflict(&new).unwrap();
                let known = model.conflict(&new, None);
                let known = known.map(|(rule, key)| (rule, row_key(relation, &key)));
                assert_eq!(found, known);
            }
            match (relation.insert(&new), refusal) {
                (Err(error), Some(refusal)) => {
                    assert_refused(&error, &refusal);
                    model.work.refused += 1;
                }
                (Ok(key), None) => {
                    let cells = if model.has_hidden_key() {
                        model.next += 1;
                        vec![Cell::U64(model.next - 1)]
                    } else {
                        model.pick(&model.schema.primary_key, &new)
                    };
                    assert_eq!(key, row_key(relation, &Key(cells.clone())));
                    let new = model.stored(new);
                    model.rows.insert(Key(cells), new);
                    model.work.inserted += 1;
                }
                (found, known) => panic!("{found:?}, not {known:?}"),
            }
        }
        5 => {
            let mut new = new;
            if let Some(key) = some_key(rng, model)
                && rng.one_in(2)
            {
                for at in model.positions(&model.schema.primary_key) {
                    new[at].clone_from(&model.rows[&key][at]);
                }
            }
            let key = match model.has_hidden_key() {
                true => Key(vec![Cell::U64(model.next)]),
                false => Key(model.pick(&model.schema.primary_key, &new)),
            };
            let there = model.rows.contains_key(&key);
            let refusal = model.refusal(&new, Some(&key));
            match (relation.upsert(&new), refusal) {
                (Err(error), Some(refusal)) => {
                    assert_refused(&error, &refusal);
                    model.work.refused += 1;
                }
                (Ok(replaced), None) => {
                    assert_eq!(replaced, there, "whether a row was replaced");
                    let new = model.stored(new);
                    model.next += u64::from(model.has_hidden_key());
                    model.rows.remove(&key);
                    model.rows.insert(key, new);
                    match replaced {
                        true => model.work.replaced += 1,
                        false => model.work.inserted += 1,
                    }
                }
                (found, known) => panic!("{found:?}, not {known:?}"),
            }
        }
        6..=7 => {
            let Some(key) = some_key(rng, model) else {
                return;
            };
            let mut new = new;
            if rng.one_in(2) {
                // Few columns change, so that indexes are left alone.
                let old = &model.rows[&key];
                for (cell, old) in new.iter_mut().zip(old) {
                    if !rng.one_in(3) {
                        cell.clone_from(old);
                    }
                }
            }
            let stored = row_key(relation, &key);
            let refusal = model.refusal(&new, Some(&key));
            match (relation.update(&stored, &new), refusal) {
                (Err(error), Some(refusal)) => {
                    assert_refused(&error, &refusal);
                    model.work.refused += 1;
                }
                (Ok(()), None) => {
                    model.rows.remove(&key);
                    let key = match model.has_hidden_key() {
                        true => key,
                        false => Key(model.pick(&model.schema.primary_key, &new)),
                    };
                    let new = model.stored(new);
                    model.rows.insert(key, new);
                    model.work.updated += 1;
                }
                (found, known) => panic!("{found:?}, not {known:?}"),
            }
        }
        8 => {
            let Some(key) = some_key(rng, model) else {
                return;
            };
            let stored = row_key(relation, &key);
            assert!(relation.remove(&stored).unwrap());
            model.rows.remove(&key);
            model.work.removed += 1;
            assert!(!relation.remove(&stored).unwrap());
            let missing =
                relation.update(&stored, &model.rows.values().next().cloned().unwrap_or(new));
            assert!(missing.is_err());
        }
        _ if rng.one_in(2) => insert_many(rng, relation, model),
        _ if rng.one_in(30) => {
            relation.clear().unwrap();
            model.rows.clear();
        }
        _ => {}
    }
}

/// Inserts several rows at once, all or none.
fn insert_many(rng: &mut Rng, relation: &mut RelationMut<'_>, model: &mut Model) {
    let mut after = model.clone();
    let mut new = Vec::new();
    let (mut keys, mut is_refused) = (Vec::new(), false);
    for _ in 0..rng.index(12) {
        let row = row(rng, model);
        is_refused |= after.refusal(&row, None).is_some();
        new.push(row.clone());
        if !is_refused {
            let cells = match after.has_hidden_key() {
                true => vec![Cell::U64(after.next)],
                false => after.pick(&after.schema.primary_key, &row),
            };
            after.next += u64::from(after.has_hidden_key());
            let row = after.stored(row);
            after.rows.insert(Key(cells.clone()), row);
            after.work.inserted += 1;
            keys.push(Key(cells));
        }
    }
    match relation.insert_many(&new) {
        Err(error) => assert!(is_refused && error.kind() != ErrorKind::Broken, "{error}"),
        Ok(found) => {
            assert!(!is_refused);
            *model = after;
            let keys: Vec<RowKey> = keys.iter().map(|key| row_key(relation, key)).collect();
            assert_eq!(found, keys);
        }
    }
}

fn expect_schema_error<T: std::fmt::Debug>(result: tidalite::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Schema);
}

/// One random change of the schema.
fn change_schema(rng: &mut Rng, relation: &mut RelationMut<'_>, model: &mut Model) {
    model.names += 1;
    model.work.altered += 1;
    let number = model.names;
    match rng.below(6) {
        0 | 1 => {
            let new = column(rng, number);
            let refused = match &new.default {
                None | Some(Cell::Null) => new.not_null && !model.rows.is_empty(),
                Some(_) => false,
            };
            let done = relation.add_column(new.clone());
            if refused {
                return expect_schema_error(done);
            }
            done.unwrap();
            for row in model.rows.values_mut() {
                row.push(new.default.clone().unwrap_or_default());
            }
            model.schema.columns.push(new);
        }
        2 => {
            let at = rng.index(model.schema.columns.len());
            let name = model.schema.columns[at].name.clone();
            let used = model.schema.indexes.iter().flat_map(|index| &index.columns);
            let mut used = used.chain(&model.schema.primary_key);
            let refused = used.any(|one| *one == name) || model.schema.columns.len() == 1;
            let done = relation.drop_column(&name);
            if refused {
                return expect_schema_error(done);
            }
            done.unwrap();
            model.schema.columns.remove(at);
            for row in model.rows.values_mut() {
                row.remove(at);
            }
        }
        3 => {
            let at = rng.index(model.schema.columns.len());
            let from = model.schema.columns[at].name.clone();
            let to = format!("c{number}");
            relation.rename_column(&from, &to).unwrap();
            model.schema.columns[at].name.clone_from(&to);
            let indexes = model.schema.indexes.iter_mut();
            let names = indexes.flat_map(|index| &mut index.columns);
            for name in names.chain(&mut model.schema.primary_key) {
                if *name == from {
                    name.clone_from(&to);
                }
            }
        }
        4 => {
            let new = index(rng, number, &model.schema);
            let done = relation.create_index(new.clone());
            let mut with = model.clone();
            with.schema.indexes = vec![new.clone()];
            let rows = model.rows.iter();
            let conflicts = rows
                .filter(|(key, row)| with.conflict(row, Some(key)).is_some())
                .count();
            if conflicts > 0 {
                let error = done.unwrap_err();
                return assert_refused(&error, &Refusal::Unique(Conflict::Index(new.name)));
            }
            done.unwrap();
            model.schema.indexes.push(new);
        }
        _ => {
            if model.schema.indexes.is_empty() {
                assert!(!relation.drop_index("none").unwrap());
                return;
            }
            let at = rng.index(model.schema.indexes.len());
            let dropped = model.schema.indexes.remove(at);
            assert!(relation.drop_index(&dropped.name).unwrap());
        }
    }
}

fn collect(mut rows: Rows<'_>) -> Vec<Vec<Cell>> {
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let cells = row.to_cells().unwrap();
        // Cells in any order give the same values.
        for at in (0..cells.len()).rev() {
            let again = row.cell(at).unwrap().to_cell();
            assert!(is_same(&[again], &cells[at..=at]));
        }
        all.push(cells);
    }
    assert!(rows.next().unwrap().is_none());
    all
}

fn assert_rows(found: &[Vec<Cell>], known: &[&Vec<Cell>]) {
    assert_eq!(found.len(), known.len());
    for (found, known) in found.iter().zip(known) {
        assert!(is_same(found, known), "{found:?}, not {known:?}");
    }
}

fn bound(rng: &mut Rng, cells: Option<&Vec<Cell>>) -> Bound<Vec<Cell>> {
    let Some(cells) = cells else {
        return Bound::Unbounded;
    };
    let prefix = cells[..1 + rng.index(cells.len())].to_vec();
    match rng.below(3) {
        0 => Bound::Unbounded,
        1 => Bound::Included(prefix),
        _ => Bound::Excluded(prefix),
    }
}

fn holds(range: &KeyBounds, key: &[Cell]) -> bool {
    (match &range.lower {
        Bound::Unbounded => true,
        Bound::Included(cells) => compare_prefix(key, cells).is_ge(),
        Bound::Excluded(cells) => compare_prefix(key, cells).is_gt(),
    }) && match &range.upper {
        Bound::Unbounded => true,
        Bound::Included(cells) => compare_prefix(key, cells).is_le(),
        Bound::Excluded(cells) => compare_prefix(key, cells).is_lt(),
    }
}

/// Compares everything that can be read, and some random ranges.
fn compare_all(rng: &mut Rng, relation: &Relation<'_>, model: &Model) {
    let mut schema = model.schema.clone();
    for name in &model.schema.primary_key {
        let at = relation.schema().position(name).unwrap();
        schema.columns[at].not_null = true;
    }
    // A default of NaN is not equal to itself.
    assert_eq!(format!("{:?}", relation.schema()), format!("{schema:?}"));
    assert_eq!(relation.count(), model.rows.len() as u64);
    relation.check(&mut |problem| panic!("{problem}")).unwrap();
    for (key, row) in &model.rows {
        assert!(is_same(&relation.get(&key.0).unwrap().unwrap(), row));
        let stored = relation.row_key(&key.0).unwrap();
        let known = row.clone();
        let found = relation.with_row(&stored, |row| row.to_cells()).unwrap();
        assert!(is_same(&found.unwrap(), &known));
    }
    let keys: Vec<Vec<Cell>> = model.rows.keys().map(|key| key.0.clone()).collect();
    let all: Vec<(Vec<Cell>, &Vec<Cell>)> = keys.into_iter().zip(model.rows.values()).collect();
    compare_order(rng, &all, &|range| relation.rows(range).unwrap());
    let range = KeyBounds::all();
    let cuts = relation.split(range.clone(), 3).unwrap();
    let mut parts = Vec::new();
    for part in 0..=cuts.len() {
        let from = part.checked_sub(1).map(|at| &cuts[at]);
        let rows = relation.rows_between(range.clone(), from, cuts.get(part));
        parts.extend(collect(rows.unwrap()));
    }
    assert_rows(&parts, &all.iter().map(|(_, row)| *row).collect::<Vec<_>>());
    for index in &model.schema.indexes {
        let all = model.by_index(index);
        compare_order(rng, &all, &|range| {
            relation.rows_by(&index.name, range).unwrap()
        });
        let pick = rng.index(all.len().max(1));
        let lower = bound(rng, all.get(pick).map(|(key, _)| key));
        let range = KeyBounds::new(lower, Bound::Unbounded);
        let known = all.iter().filter(|(key, _)| holds(&range, key)).count() as u64;
        assert_eq!(relation.count_by(&index.name, range).unwrap(), known);
    }
}

fn compare_order<'r>(
    rng: &mut Rng,
    all: &[(Vec<Cell>, &Vec<Cell>)],
    rows: &dyn Fn(KeyBounds) -> Rows<'r>,
) {
    for round in 0..4 {
        let lower = rng.index(all.len().max(1));
        let upper = rng.index(all.len().max(1));
        let range = match round {
            0 => KeyBounds::all(),
            1 => {
                let key = all
                    .get(lower)
                    .map(|(key, _)| key.clone())
                    .unwrap_or_default();
                let len = rng.index(key.len() + 1);
                KeyBounds::prefix(&key[..len])
            }
            _ => KeyBounds::new(
                bound(rng, all.get(lower).map(|(key, _)| key)),
                bound(rng, all.get(upper).map(|(key, _)| key)),
            ),
        };
        let known = all.iter().filter(|(key, _)| holds(&range, key));
        let mut known: Vec<&Vec<Cell>> = known.map(|(_, row)| *row).collect();
        assert_rows(&collect(rows(range.clone())), &known);
        known.reverse();
        assert_rows(&collect(rows(range).rev()), &known);
    }
}

fn open(storage: &Arc<MemoryStorage>, page_size: usize) -> Database {
    let storage = Arc::clone(storage);
    let options = Options::new().page_size(page_size);
    options.open_storage(storage).unwrap()
}

fn some_changes(rng: &mut Rng, tx: &mut WriteTxn, model: &mut Model) {
    let mut relation = tx.relation_mut(NAME).unwrap().unwrap();
    for _ in 0..1 + rng.index(20) {
        match rng.one_in(8) {
            true => change_schema(rng, &mut relation, model),
            false => change_rows(rng, &mut relation, model),
        }
    }
    if rng.one_in(4) {
        compare_all(rng, &relation.view().unwrap(), model);
    }
}

fn run(seed: u64) -> Work {
    let rng = &mut Rng::new(seed);
    let storage = Arc::new(MemoryStorage::new());
    let page_size = *rng.pick(&[512, 1024, 4096]);
    let mut db = open(&storage, page_size);
    let mut model = random_schema(rng);
    let mut tx = db.begin_write().unwrap();
    let created = tx.create_relation(NAME, &model.schema).map(drop);
    created.unwrap();
    tx.commit().unwrap();
    for _ in 0..12 {
        let before = db.begin_read().unwrap();
        let (old, version) = (model.clone(), before.catalog_version());
        let mut tx = db.begin_write().unwrap();
        some_changes(rng, &mut tx, &mut model);
        if rng.one_in(2) {
            let (point, known) = (tx.savepoint().unwrap(), model.clone());
            some_changes(rng, &mut tx, &mut model);
            if rng.one_in(2) {
                tx.rollback_to(&point).unwrap();
                model = known;
            }
            some_changes(rng, &mut tx, &mut model);
        }
        compare_all(rng, &tx.view_relation(NAME).unwrap().unwrap(), &model);
        if rng.one_in(6) {
            drop(tx);
            model = old.clone();
        } else {
            tx.commit().unwrap();
        }
        compare_all(rng, &before.relation(NAME).unwrap().unwrap(), &old);
        let now = db.begin_read().unwrap();
        compare_all(rng, &now.relation(NAME).unwrap().unwrap(), &model);
        if format!("{:?}", old.schema) != format!("{:?}", model.schema) {
            assert!(now.catalog_version() != version, "the schema has changed");
        }
        drop((before, now));
        if rng.one_in(3) {
            assert!(db.check().unwrap().is_clean());
            drop(db);
            db = open(&storage, page_size);
        }
    }
    let report = db.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
    model.work
}

#[test]
fn random_work_agrees_with_a_model() {
    tidalite_testkit::watch();
    let seeds = match std::env::var("TIDALITE_SEED") {
        Ok(seed) => vec![seed.parse::<u64>().unwrap()],
        Err(_) => (0..150).collect(),
    };
    let count = seeds.len() as u64;
    let seeds = seeds.into_iter();
    let all: Vec<Work> = seeds
        .map(|seed| {
            println!("seed {seed}");
            run(seed)
        })
        .collect();
    let total = |of: fn(&Work) -> u64| all.iter().map(of).sum::<u64>();
    let totals = [
        total(|work| work.inserted),
        total(|work| work.replaced),
        total(|work| work.updated),
        total(|work| work.removed),
        total(|work| work.refused),
        total(|work| work.altered),
    ];
    println!("inserted, replaced, updated, removed, refused, altered: {totals:?}");
    assert!(count == 1 || totals.iter().all(|one| *one > 5 * count));
}
