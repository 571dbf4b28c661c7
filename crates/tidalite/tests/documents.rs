//! Values that are stored through serde, as CBOR.
#![cfg(feature = "serde")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;
use tidalite::storage::MemoryStorage;
use tidalite::table::Document;
use tidalite::{Database, ErrorKind, Options};

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
enum State {
    Off,
    Running { since: i64, load: Option<f64> },
    Failed(String, Vec<u8>),
}

#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
struct Machine {
    name: String,
    state: State,
    limits: BTreeMap<String, (f64, f64)>,
    wide: i128,
    serial: u64,
}

impl Document for Machine {
    const NAME: &'static str = "tests::Machine";
}

/// A later version of the type: one field is removed, and a new one has a default.
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Later {
    name: String,
    serial: u64,
    #[serde(default)]
    note: String,
}

impl Document for Later {
    const NAME: &'static str = Machine::NAME;
}

/// A later version of the type with a new field that has no default.
#[derive(Serialize, Deserialize, Debug)]
struct Stricter {
    owner: String,
}

impl Document for Stricter {
    const NAME: &'static str = Machine::NAME;
}

#[derive(Deserialize)]
struct Even(u32);

impl Serialize for Even {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_multiple_of(2) {
            return Err(serde::ser::Error::custom("odd numbers are not stored"));
        }
        serializer.serialize_u32(self.0)
    }
}

impl Document for Even {
    const NAME: &'static str = "tests::Even";
}

fn memory() -> Database {
    tidalite_testkit::watch();
    Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap()
}

fn machine(serial: u64) -> Machine {
    let state = match serial % 3 {
        0 => State::Off,
        1 => State::Running {
            since: -5,
            load: serial.is_multiple_of(2).then_some(0.5),
        },
        _ => State::Failed("hot".into(), vec![1, 2, 255]),
    };
    Machine {
        name: format!("m{serial}"),
        state,
        limits: [("rpm".to_owned(), (0.0, f64::INFINITY))].into(),
        wide: i128::MIN + i128::from(serial),
        serial,
    }
}

#[test]
fn values_of_any_shape_come_back() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.typed_table::<u64, Machine>("machines").unwrap();
    table
        .extend((0..100).map(|serial| (serial, machine(serial))))
        .unwrap();
    assert!(table.put(&200, &machine(200)).unwrap());
    assert!(
        table
            .compare_and_set(&200, Some(&machine(200)), Some(&machine(201)))
            .unwrap()
    );
    assert_eq!(
        table.replace(&200, &machine(7)).unwrap(),
        Some(machine(201))
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap
        .typed_table::<u64, Machine>("machines")
        .unwrap()
        .unwrap();
    for (i, entry) in table.range(..100).unwrap().enumerate() {
        assert_eq!(entry.unwrap(), (i as u64, machine(i as u64)));
    }
    assert_eq!(table.get(&200).unwrap(), Some(machine(7)));
    // The name of the encoding is stored with the table.
    let types = snap.table_types("machines").unwrap().unwrap();
    assert_eq!(types.to_string(), "u64 -> cbor<tests::Machine>");
    let other = snap.typed_table::<u64, Even>("machines").map(|_| ());
    assert_eq!(other.unwrap_err().kind(), ErrorKind::WrongType);
}

#[test]
fn fields_may_come_and_go() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.typed_table::<u64, Machine>("machines").unwrap();
    table.put(&1, &machine(1)).unwrap();
    let later = tx.typed_table::<u64, Later>("machines").unwrap();
    let expected = Later {
        name: "m1".into(),
        serial: 1,
        note: String::new(),
    };
    assert_eq!(later.get(&1).unwrap(), Some(expected));
    let stricter = tx.typed_table::<u64, Stricter>("machines").unwrap();
    let error = stricter.get(&1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WrongType);
    assert!(error.to_string().contains("owner"), "{error}");
}

#[test]
fn a_value_that_cannot_be_encoded_is_not_stored() {
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.typed_table::<u8, Even>("even").unwrap();
    table.put(&0, &Even(0)).unwrap();
    let error = table.put(&0, &Even(1)).unwrap_err();
    assert_eq!(
        (error.kind(), error.table()),
        (ErrorKind::InvalidInput, Some("even"))
    );
    assert!(error.to_string().contains("odd numbers"), "{error}");
    assert!(std::error::Error::source(&error).is_some());
    assert!(table.insert(&9, &Even(3)).is_err());
    assert!(table.compare_and_set(&0, None, Some(&Even(5))).is_err());
    // Of many entries, those before the refused one are stored; the transaction can continue.
    let many = [(1, Even(2)), (2, Even(4)), (3, Even(5)), (4, Even(6))];
    assert_eq!(
        table.extend(many).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    let mut outer = tx.table("nest").unwrap();
    let mut nested = outer.nested(b"inner").typed::<u8, Even>();
    let many = [(1, Even(2)), (2, Even(3))];
    assert_eq!(
        nested.extend(many).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.typed_table::<u8, Even>("even").unwrap().unwrap();
    let stored: Vec<(u8, u32)> = table
        .range(..)
        .unwrap()
        .map(|entry| entry.map(|(key, value)| (key, value.0)).unwrap())
        .collect();
    assert_eq!(stored, [(0, 0), (1, 2), (2, 4)]);
}

/// The stored bytes are valid CBOR: the test compares them with bytes written by hand from RFC 8949, section 3.
#[test]
fn stored_bytes_are_cbor() {
    #[derive(Serialize, Deserialize)]
    struct Small {
        a: u8,
        b: Option<bool>,
        c: String,
    }
    impl Document for Small {
        const NAME: &'static str = "Small";
    }
    let db = memory();
    let mut tx = db.begin_write().unwrap();
    let small = Small {
        a: 24,
        b: None,
        c: "é".into(),
    };
    tx.typed_table::<u8, Small>("t")
        .unwrap()
        .put(&1, &small)
        .unwrap();
    tx.commit().unwrap();
    let snap = db.begin_read().unwrap();
    let bytes = snap
        .table("t")
        .unwrap()
        .unwrap()
        .get(&[1])
        .unwrap()
        .unwrap();
    assert_eq!(bytes, *b"\xa3\x61a\x18\x18\x61b\xf6\x61c\x62\xc3\xa9");
    // Extra bytes after a value, truncated values, and deep nesting are refused; nothing panics.
    let decode = <Small as tidalite::TableValue>::decode_value;
    assert!(decode(&[&bytes[..], &[0]].concat()).is_none());
    for cut in 0..bytes.len() {
        assert!(decode(&bytes[..cut]).is_none());
    }
    assert!(decode(&[0x9f; 100_000]).is_none());
    assert!(decode(b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff").is_none());
}
