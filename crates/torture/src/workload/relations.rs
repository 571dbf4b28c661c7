//! Random operations on relations: one with a primary key, one with a hidden key. The result of each operation is checked, and
//! its effect is applied to the model.

use crate::model::{HIDDEN, Model, Relation};
use std::collections::BTreeSet;
use std::sync::Arc;
use tidalite::relation::{Cell, Column, ColumnType, Index, KeyBounds, RowKey, Schema};
use tidalite::{ErrorKind, RelationMut, Result, WriteTxn};
use tidalite_testkit::rng::Rng;

const KEYED: &str = "r0";
/// Number of different primary keys, and of different names.
const KEYS: u64 = 60;
const NAMES: u64 = 200;
/// Maximum number of columns.
const COLUMNS_MAX: usize = 6;
/// The unique index, and one that comes and goes.
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
    if tx.view_relation(name)?.is_none() {
        drop(tx.create_relation(name, &schema(name))?);
        let created = Relation {
            columns: vec!["id".into(), "name".into()],
            defaults: vec![None, None],
            indexes: [BY_NAME.to_owned()].into(),
            ..Relation::default()
        };
        let before = next.relations.insert(name.to_owned(), Arc::new(created));
        assert!(before.is_none(), "a relation that is expected is there");
    }
    let Some(mut table) = tx.relation_mut(name)? else {
        panic!("a relation that was just found");
    };
    let known = Arc::make_mut(next.relations.entry(name.to_owned()).or_default());
    let mut one = One { name, known };
    match rng.below(18) {
        0 => one.add_column(&mut table, rng),
        1 => one.drop_column(&mut table),
        2 => one.change_index(&mut table),
        3 if rng.one_in(4) => {
            one.known.rows.clear();
            table.clear()
        }
        4..=5 => one.remove(&mut table, rng),
        6..=7 => one.update(&mut table, rng),
        8 => one.rename_column(&mut table, rng),
        9 => one.set_default(&mut table, rng),
        10 => one.insert_columns(&mut table, rng),
        11 => one.insert_many(&mut table, rng),
        12..=13 => one.upsert(&mut table, rng),
        14 => one.look(&table, rng),
        _ => {
            for _ in 0..=rng.below(12) {
                one.insert(&mut table, rng)?;
            }
            Ok(())
        }
    }
}

/// A relation of the model.
struct One<'m> {
    name: &'m str,
    known: &'m mut Relation,
}

impl One<'_> {
    fn row(&self, rng: &mut Rng) -> Vec<Cell> {
        let mut row = vec![Cell::I64(rng.below(KEYS) as i64), name(rng)];
        row.resize_with(self.known.columns.len(), || match rng.one_in(3) {
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

    /// Whether a row conflicts with another than the one with the key `old`.
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

    /// Inserts a row of which only the first columns are given.
    fn insert_columns(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let mut row = self.row(rng);
        for (cell, default) in row.iter_mut().zip(&self.known.defaults).skip(2) {
            *cell = default.clone().unwrap_or_default();
        }
        let names = self.known.columns.iter().map(String::as_str);
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
            let key = rng.below(KEYS);
            let found = view.get_row(&self.stored_key(table, key)?)?;
            assert_eq!(found.as_ref(), self.known.rows.get(&key), "row {key}");
            let name = name(rng);
            let known = self.known.rows.values().filter(|row| row[1] == name);
            let known: BTreeSet<String> = known.map(|row| format!("{row:?}")).collect();
            let range = KeyBounds::prefix([name]);
            assert_eq!(view.count_by(BY_NAME, range.clone())?, known.len() as u64);
            let mut found = BTreeSet::new();
            let mut rows = view.rows_by(BY_NAME, range)?;
            while let Some(row) = rows.next()? {
                found.insert(format!("{:?}", row.to_cells()?));
            }
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
            let key = rng.below(KEYS);
            let there = self.known.rows.remove(&key).is_some();
            let done = table.remove(&self.stored_key(table, key)?)?;
            assert_eq!(done, there, "remove tells whether it was there");
        }
        Ok(())
    }

    fn add_column(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let number = rng.below(1000) as i64;
        let name = format!("added {number}");
        if self.known.columns.len() == COLUMNS_MAX || self.known.columns.contains(&name) {
            return Ok(());
        }
        table.add_column(Column::new(name.clone(), ColumnType::I64).default(number))?;
        self.known.columns.push(name);
        self.known.defaults.push(Some(Cell::I64(number)));
        for row in self.known.rows.values_mut() {
            row.push(Cell::I64(number));
        }
        Ok(())
    }

    fn drop_column(&mut self, table: &mut RelationMut<'_>) -> Result<()> {
        if self.known.columns.len() <= 2 {
            return Ok(());
        }
        let dropped = self.known.columns.remove(2);
        self.known.defaults.remove(2);
        table.drop_column(&dropped)?;
        for row in self.known.rows.values_mut() {
            row.remove(2);
        }
        Ok(())
    }

    fn rename_column(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let to = format!("renamed {}", rng.below(1000));
        if !self.known.columns.contains(&to) {
            let at = rng.below(self.known.columns.len() as u64) as usize;
            let column = &mut self.known.columns[at];
            table.rename_column(column, &to)?;
            *column = to;
        }
        Ok(())
    }

    fn set_default(&mut self, table: &mut RelationMut<'_>, rng: &mut Rng) -> Result<()> {
        let at = rng.below(self.known.columns.len() as u64) as usize;
        if at >= 2 {
            let default = (!rng.one_in(3)).then(|| Cell::I64(rng.below(1000) as i64));
            table.set_default(&self.known.columns[at], default.clone())?;
            self.known.defaults[at] = default;
        }
        Ok(())
    }

    fn change_index(&mut self, table: &mut RelationMut<'_>) -> Result<()> {
        let there = self.known.indexes.remove(OTHER);
        assert_eq!(table.drop_index(OTHER)?, there, "whether it was dropped");
        if !there {
            let columns = [&self.known.columns[1], &self.known.columns[0]];
            table.create_index(Index::new(OTHER, columns))?;
            self.known.indexes.insert(OTHER.to_owned());
        }
        Ok(())
    }
}
