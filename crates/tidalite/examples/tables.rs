//! Ordered tables, for who knows LMDB or redb: a table and its index in one transaction, ranges, a cursor, several
//! values a key, typed tables, tables inside tables.
//!
//! `cargo run --release -p tidalite --example tables`

#![expect(clippy::print_stdout, reason = "an example talks")]

use tidalite::{Database, ReadTxn, WriteTxn};

/// A user and the index by city: two tables, always of one state, because they change in one transaction.
fn add(tx: &mut WriteTxn, id: u64, name: &str, city: &str) -> tidalite::Result<()> {
    tx.table("users")?.put(&id.to_be_bytes(), name.as_bytes())?; // big-endian: sorts as the number does
    tx.set_table("by city")?
        .put(city.as_bytes(), &id.to_be_bytes())?; // a sorted set of values under each key
    Ok(())
}

/// Names of those in a city, by the index.
fn living_in(snap: &ReadTxn, city: &str) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let users = snap.table("users")?.ok_or("no users")?;
    let index = snap.set_table("by city")?.ok_or("no index")?;
    let mut names = Vec::new();
    for id in index.values(city.as_bytes())? {
        let name = users.get(&id?)?.ok_or("the index knows more")?;
        names.push(String::from_utf8(name)?);
    }
    Ok(names)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("tidalite-tables-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let db = Database::open(dir.join("users.tdl"))?; // no map size, no number of tables to set

    let mut tx = db.begin_write()?; // one at a time, in whatever process; drop = roll back
    add(&mut tx, 1, "Ada", "London")?;
    add(&mut tx, 2, "Emmy", "Erlangen")?;
    add(&mut tx, 3, "Alan", "London")?;
    tx.commit()?; // durable when it returns

    let snap = db.begin_read()?; // waits for nobody, sees one state until it is dropped
    let users = snap.table("users")?.ok_or("no users")?; // None where there is no such table
    let ada = users.get(&1u64.to_be_bytes())?; // Some(b"Ada")
    for entry in users.range(2u64.to_be_bytes()..)?.rev() {
        let (key, name) = entry?;
        println!("{key:?}: {}", String::from_utf8_lossy(&name));
    }
    let mut cursor = users.cursor();
    let mut found = cursor.seek_ge(&2u64.to_be_bytes())?; // MDB_SET_RANGE
    while found {
        println!("{:?} is number {:?}", cursor.key(), cursor.rank()?);
        found = cursor.next()?; // and previous, first, last, select
    }
    let before_three = users.rank(&3u64.to_be_bytes())?; // 2, counted in the tree
    let londoners = living_in(&snap, "London")?; // Ada and Alan

    assert_eq!(ada.as_deref(), Some(&b"Ada"[..]));
    assert_eq!(before_three, 2);
    assert_eq!(londoners, ["Ada", "Alan"]);
    drop(snap);

    typed(&db)?;
    nested(&db)?;
    undone(&db)?;
    std::fs::remove_dir_all(dir)?;
    Ok(())
}

/// Keys and values of Rust types, in the order of the types; a tuple sorts by its parts.
fn typed(db: &Database) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = db.begin_write()?;
    let mut prices = tx.typed_table::<(String, i32), f64>("prices")?;
    prices.put(&("tea".into(), 2024), &2.5)?;
    prices.put(&("tea".into(), 2025), &2.75)?;
    tx.commit()?;

    let snap = db.begin_read()?;
    let prices = snap
        .typed_table::<(String, i32), f64>("prices")?
        .ok_or("no prices")?;
    let newest = prices.floor(&("tea".into(), i32::MAX))?;
    assert_eq!(newest, Some((("tea".into(), 2025), 2.75)));
    Ok(())
}

/// Under a key a table in place of a value, as deep as is useful.
fn nested(db: &Database) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = db.begin_write()?;
    let mut topics = tx.table("topics")?;
    topics
        .nested_at(&["plant", "tank 4"])
        .put(b"level", b"3.5")?; // the tables on the way are made
    let view = topics.view()?;
    let tank = view.nested_at(&["plant", "tank 4"])?.ok_or("no tank")?;
    assert_eq!(tank.get(b"level")?, Some(b"3.5".to_vec()));
    topics.remove(b"plant")?; // with all that is in it
    tx.commit()?;
    Ok(())
}

/// A part of a transaction that is taken back: a nested transaction, and dropping the whole.
fn undone(db: &Database) -> Result<(), Box<dyn std::error::Error>> {
    let mut tx = db.begin_write()?;
    let refused = tx.nested(|tx| {
        add(tx, 4, "Grace", "New York")?;
        tx.table("users")?.append(&1u64.to_be_bytes(), b"again") // not behind the last key
    });
    assert!(refused.is_err());
    assert_eq!(tx.table("users")?.view()?.count(), 3); // Grace is gone, with her entry in the index
    tx.table("users")?.clear()?;
    drop(tx);
    assert_eq!(
        db.begin_read()?.table("users")?.ok_or("no users")?.count(),
        3
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() -> Result<(), Box<dyn std::error::Error>> {
        super::main()
    }
}
