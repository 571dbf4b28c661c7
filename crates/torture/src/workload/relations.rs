//! Random operations on relations: one with a primary key, one with a hidden key. The result of each operation is
//! checked, and its effect is applied to the model.

use crate::model::{HIDDEN, Model, Relation};
use std::ops::RangeInclusive;
use std::sync::Arc;
use tidalite::relation::{Cell, Column, ColumnType, Index, KeyBounds, RelationMut, RowKey, Schema};
use tidalite::{ErrorKind, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

const KEYED: &str = "r0";
/// Number of different primary keys, and of different names.
const KEYS: u64 = 100;
const NAMES: u64 = 400;
/// Number of rows of a new relation.
const FIRST_ROWS: RangeInclusive<i64> = 40..=80;
/// Maximum number of actions in one call of [`work`].
const ACTIONS_MAX: u64 = 6;
/// Maximum number of columns.
const COLUMNS_MAX: usize = 6;
/// The unique index, and an index that is created and dropped repeatedly.
const BY_NAME: &str = "by name";
const OTHER: &str = "other";

fn schema(name: &str) -> Schema {
    let schema = Schema::new()
        .column(Column::new("id", ColumnType::I64))
        .column(Column::new("name", ColumnType::Text))
        .index(Index::new(BY_NAME, ["name"]).unique());
    match name == HIDDEN {
        true => schema,
        false => schema.primary_key(["id"]),
    }
}

fn name(rng: &mut Rng) -> Cell {
    match rng.below(30) {
        0 => Cell::Null,
        1 => Cell::from(format!("{} {}", rng.below(NAMES), "long ".repeat(300))),
        _ => Cell::from(format!("name {}", rng.below(NAMES))),
    }
}

/// Performs random operations on a relation.
pub(super) fn work(tx: &mut WriteTxn, next: &mut Model, rng: &mut Rng) -> Result<()> {
    let name = *rng.pick(&[KEYED, HIDDEN]);
    if rng.one_in(60) {
        let there = next.relations.remove(name).is_some();
        assert_eq!(tx.drop_table(name)?, there, "drop tells whether it was");
        return Ok(());
    }
    let is_new = tx.view_relation(name)?.is_none();
    if is_new {
        drop(tx.create_relation(name, &schema(name))?);
        let mut created = Relation {
            schema: schema(name),
            ..Relation::default()
        };
        // A column of the primary key is never null, without saying so.
        created.schema.columns[0].not_null = name == KEYED;
        let before = next.relations.insert(name.to_owned(), Arc::new(created));
        assert!(before.is_none(), "a relation that is expected is there");
    }
    let Some(mut table) = tx.relation_mut(name)? else {
        panic!("a relation that was just found");
    };
    let known = Arc::make_mut(next.relations.entry(name.to_owned()).or_default());
    let mut one = One { name, known };
    if is_new {
        one.fill(&mut table, rng)?;
    }
    for _ in 0..=rng.below(ACTIONS_MAX) {
        one.act(&mut table, rng)?;
    }
    Ok(())
}

/// A relation of the model.
struct One<'m> {
    name: &'m str,
    known: &'m mut Relation,
}

impl One<'_> {
    /// Performs one random operation.
    fn act(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        match rng.below(18) {
            0 => self.add_column(table, rng),
            1 => self.drop_column(table),
            2 => self.change_index(table),
            3 if rng.one_in(12) => {
                self.known.rows.clear();
                table.clear()
            }
            4..=5 => self.remove(table, rng),
            6..=7 => self.update(table, rng),
            8 => self.rename_column(table, rng),
            9 => self.set_default(table, rng),
            10 => self.insert_columns(table, rng),
            11 => self.insert_many(table, rng),
            12..=13 => self.upsert(table, rng),
            14 => self.look(table, rng),
            _ => {
                for _ in 0..=rng.below(12) {
                    self.insert(table, rng)?;
                }
                Ok(())
            }
        }
    }

    /// Inserts the first rows of a new relation, together or one by one; none of them conflict.
    fn fill(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let mut rows = Vec::new();
        let count = rng.between(*FIRST_ROWS.start(), *FIRST_ROWS.end());
        while (rows.len() as i64) < count {
            let row = self.row(rng);
            let key = self.key_of(&row);
            if !self.conflicts(key, &row, None) {
                self.put(key, row.clone());
                rows.push(row);
            }
        }
        if rng.one_in(2) {
            return table.insert_many(&rows).map(drop);
        }
        for row in &rows {
            table.insert(row)?;
        }
        Ok(())
    }

    /// The key of a row half of the time, and otherwise any key.
    fn any_key(&self, rng: &mut Rng) -> u64 {
        let known: Vec<&u64> = self.known.rows.keys().collect();
        match known.is_empty() || rng.one_in(2) {
            true => rng.below(KEYS),
            false => **rng.pick(&known),
        }
    }

    /// The name in a row half of the time, and otherwise any name.
    fn any_name(&self, rng: &mut Rng) -> Cell {
        let known: Vec<&Vec<Cell>> = self.known.rows.values().collect();
        match known.is_empty() || rng.one_in(2) {
            true => name(rng),
            false => rng.pick(&known)[1].clone(),
        }
    }

    fn row(&self, rng: &mut Rng) -> Vec<Cell> {
        let mut row = vec![Cell::I64(rng.below(KEYS) as i64), name(rng)];
        row.resize_with(self.known.schema.columns.len(), || match rng.one_in(3) {
            true => Cell::Null,
            false => Cell::I64(rng.below(1 << 40) as i64),
        });
        row
    }

    /// The primary key of a row; the next hidden key for a new row.
    fn key_of(&self, row: &[Cell]) -> u64 {
        match &row[0] {
            Cell::I64(id) if self.name == KEYED => id.unsigned_abs(),
            _ => self.known.next,
        }
    }

    fn stored_key(&self, table: &RelationMut<'_>, key: u64) -> Result<RowKey> {
        let cell = match self.name == KEYED {
            true => Cell::I64(key as i64),
            false => Cell::U64(key),
        };
        table.view()?.row_key(&[cell])
    }

    /// Whether a row conflicts with any row other than the one with the key `old`.
    fn conflicts(&self, key: u64, row: &[Cell], old: Option<u64>) -> bool {
        let mut others = self
            .known
            .rows
            .iter()
            .filter(|(other, _)| Some(**other) != old);
        others.any(|(other, cells)| *other == key || !row[1].is_null() && cells[1] == row[1])
    }

    fn insert(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let row = self.row(rng);
        let conflicts = self.conflicts(self.key_of(&row), &row, None);
        let found = table.find_conflict(&row)?;
        assert_eq!(found.is_some(), conflicts, "whether a row conflicts");
        let done = table.insert(&row);
        self.inserted(table, row, done)
    }

    /// Inserts a row with values for the first columns only.
    fn insert_columns(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let mut row = self.row(rng);
        let columns = &self.known.schema.columns;
        for (cell, column) in row.iter_mut().zip(columns).skip(2) {
            *cell = column.default.clone().unwrap_or_default();
        }
        let names = columns.iter().map(|column| column.name.as_str());
        let given: Vec<(&str, Cell)> = names.zip(row.iter().cloned()).take(2).collect();
        let done = table.insert_columns(&given);
        self.inserted(table, row, done)
    }

    /// Checks the result of inserting a row, and applies it.
    fn inserted(
        &mut self,
        table: &RelationMut<'_>,
        row: Vec<Cell>,
        done: Result<RowKey>,
    ) -> Result<()> {
        let key = self.key_of(&row);
        let conflicts = self.conflicts(key, &row, None);
        match done {
            Err(error) if error.kind() == ErrorKind::UniqueViolation => {
                assert!(conflicts, "{error}");
            }
            done => {
                let stored = done?;
                assert!(!conflicts, "a conflict is refused");
                assert_eq!(stored, self.stored_key(table, key)?, "the key of a row");
                self.put(key, row);
            }
        }
        Ok(())
    }

    /// Adds a new row to the model.
    fn put(&mut self, key: u64, row: Vec<Cell>) {
        self.known.next += u64::from(self.name == HIDDEN);
        self.known.rows.insert(key, row);
    }

    /// Inserts several rows, all or none.
    fn insert_many(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let mut after = self.known.clone();
        let mut next = One {
            name: self.name,
            known: &mut after,
        };
        let (mut rows, mut keys, mut conflicts) = (Vec::new(), Vec::new(), false);
        for _ in 0..rng.below(6) {
            let row = next.row(rng);
            let key = next.key_of(&row);
            conflicts |= next.conflicts(key, &row, None);
            keys.push(next.stored_key(table, key)?);
            next.put(key, row.clone());
            rows.push(row);
        }
        match table.insert_many(&rows) {
            Err(error) if error.kind() == ErrorKind::UniqueViolation => {
                assert!(conflicts, "{error}");
            }
            done => {
                let stored = done?;
                assert!(!conflicts, "a conflict of one row refuses all");
                assert_eq!(stored, keys, "the keys of the rows");
                *self.known = after;
            }
        }
        Ok(())
    }

    fn upsert(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let row = self.row(rng);
        let key = self.key_of(&row);
        let there = self.known.rows.contains_key(&key);
        let conflicts = self.conflicts(key, &row, Some(key));
        match table.upsert(&row) {
            Err(error) if error.kind() == ErrorKind::UniqueViolation => {
                assert!(conflicts, "{error}");
            }
            done => {
                assert_eq!(done?, there, "upsert tells whether it has replaced a row");
                assert!(!conflicts, "a conflict is refused");
                self.put(key, row);
            }
        }
        Ok(())
    }

    /// Looks rows up by their primary keys and by the unique index.
    fn look(&self, table: &RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let view = table.view()?;
        assert_eq!(view.count(), self.known.rows.len() as u64);
        for _ in 0..4 {
            let key = self.any_key(rng);
            let found = view.get_row(&self.stored_key(table, key)?)?;
            assert_eq!(found.as_ref(), self.known.rows.get(&key), "row {key}");
            let name = self.any_name(rng);
            let known = self.known.rows.values().filter(|row| row[1] == name);
            let mut known: Vec<String> = known.map(|row| format!("{row:?}")).collect();
            let range = KeyBounds::prefix([name]);
            assert_eq!(view.count_by(BY_NAME, range.clone())?, known.len() as u64);
            let mut found = Vec::new();
            let mut rows = view.rows_by(BY_NAME, range)?;
            while let Some(row) = rows.next()? {
                found.push(format!("{:?}", row.to_cells()?));
            }
            // Rows without a name may be equal, except for their hidden keys.
            known.sort();
            found.sort();
            assert_eq!(found, known, "rows by the unique index");
        }
        Ok(())
    }

    fn update(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let keys: Vec<u64> = self.known.rows.keys().copied().collect();
        if keys.is_empty() {
            return Ok(());
        }
        let (old, row) = (*rng.pick(&keys), self.row(rng));
        let key = match self.name == KEYED {
            true => self.key_of(&row),
            false => old,
        };
        let conflicts = self.conflicts(key, &row, Some(old));
        match table.update(&self.stored_key(table, old)?, &row) {
            Err(error) if error.kind() == ErrorKind::UniqueViolation => {
                assert!(conflicts, "{error}");
            }
            done => {
                done?;
                assert!(!conflicts, "a conflict is refused");
                self.known.rows.remove(&old);
                self.known.rows.insert(key, row);
            }
        }
        Ok(())
    }

    fn remove(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        for _ in 0..=rng.below(6) {
            let key = self.any_key(rng);
            let there = self.known.rows.remove(&key).is_some();
            let done = table.remove(&self.stored_key(table, key)?)?;
            assert_eq!(done, there, "remove tells whether it was there");
        }
        Ok(())
    }

    fn add_column(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let number = rng.below(1000) as i64;
        let column = Column::new(format!("added {number}"), ColumnType::I64).default(number);
        let schema = &mut self.known.schema;
        if schema.columns.len() == COLUMNS_MAX || schema.position(&column.name).is_some() {
            return Ok(());
        }
        table.add_column(column.clone())?;
        schema.columns.push(column);
        for row in self.known.rows.values_mut() {
            row.push(Cell::I64(number));
        }
        Ok(())
    }

    fn drop_column(&mut self, table: &mut RelationMut<'_>) -> Result<()> {
        if self.known.schema.columns.len() <= 2 {
            return Ok(());
        }
        let dropped = self.known.schema.columns.remove(2);
        table.drop_column(&dropped.name)?;
        for row in self.known.rows.values_mut() {
            row.remove(2);
        }
        Ok(())
    }

    fn rename_column(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let to = format!("renamed {}", rng.below(1000));
        let schema = &mut self.known.schema;
        if schema.position(&to).is_some() {
            return Ok(());
        }
        let at = rng.index(schema.columns.len());
        let from = std::mem::replace(&mut schema.columns[at].name, to.clone());
        table.rename_column(&from, &to)?;
        let of_indexes = schema.indexes.iter_mut();
        let of_indexes = of_indexes.flat_map(|index| &mut index.columns);
        for name in of_indexes.chain(&mut schema.primary_key) {
            if *name == from {
                name.clone_from(&to);
            }
        }
        Ok(())
    }

    fn set_default(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let at = rng.index(self.known.schema.columns.len());
        if at >= 2 {
            let column = &mut self.known.schema.columns[at];
            column.default = (!rng.one_in(3)).then(|| Cell::I64(rng.below(1000) as i64));
            table.set_default(&column.name, column.default.clone())?;
        }
        Ok(())
    }

    fn change_index(&mut self, table: &mut RelationMut<'_>) -> Result<()> {
        let schema = &mut self.known.schema;
        let before = schema.indexes.len();
        schema.indexes.retain(|index| index.name != OTHER);
        let there = schema.indexes.len() < before;
        assert_eq!(table.drop_index(OTHER)?, there, "whether it was dropped");
        if !there {
            let columns = [&schema.columns[1].name, &schema.columns[0].name];
            let index = Index::new(OTHER, columns);
            table.create_index(index.clone())?;
            schema.indexes.push(index);
        }
        Ok(())
    }
}
