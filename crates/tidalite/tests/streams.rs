//! Reading values of tables as streams.

use std::io::{BufRead, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tidalite::storage::{MemoryStorage, Storage};
use tidalite::tuning::Verify;
use tidalite::{Database, Error, Options, Tuning};
use tidalite_testkit::rng::Rng;

/// Maximum length in bytes of a piece of a value, header included.
const PIECE_BYTES: usize = 64 << 10;

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}

/// A large value is read piece by piece: a piece is read only when it is used, and released before the next one, so the
/// value never is in memory as a whole.
#[test]
fn a_large_value_comes_piece_by_piece() {
    tidalite_testkit::watch();
    let db = Options::new()
        .open_storage(Arc::new(MemoryStorage::new()))
        .unwrap();
    let mut rng = Rng::new(1);
    let large = random(&mut rng, (5 << 20) + 17);
    let mut tx = db.begin_write().unwrap();
    let mut table = tx.table("t").unwrap();
    table.put(b"large", &large).unwrap();
    table.put(b"small", b"in its leaf").unwrap();
    table.put(b"none", b"").unwrap();
    // A value in a write transaction can be streamed, too.
    let view = table.view().unwrap();
    let mut bytes = Vec::new();
    let mut own = view.read_value(b"large").unwrap().unwrap();
    own.read_to_end(&mut bytes).unwrap();
    assert!(bytes == large);
    tx.commit().unwrap();

    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    assert!(table.read_value(b"other").unwrap().is_none());
    let read = || snap.counters().blocks_read.load(Ordering::Relaxed);
    let mut reader = table.read_value(b"large").unwrap().unwrap();
    let (before, mut pieces, mut at) = (read(), 0, 0);
    loop {
        let piece = reader.fill_buf().unwrap();
        if piece.is_empty() {
            break;
        }
        assert!(piece.len() < PIECE_BYTES && *piece == large[at..at + piece.len()]);
        let len = piece.len();
        (at, pieces) = (at + len, pieces + 1);
        assert_eq!(read() - before, pieces, "no piece was read ahead");
        // A second call without `consume` returns the same piece.
        assert_eq!(reader.fill_buf().unwrap().len(), len);
        reader.consume(len);
        assert_eq!(reader.left(), (large.len() - at) as u64);
    }
    assert_eq!(at, large.len());
    assert_eq!(pieces, large.len().div_ceil(PIECE_BYTES - 48) as u64);

    // Reads of any length return the right bytes.
    let mut reader = table.read_value(b"large").unwrap().unwrap();
    let mut at = 0;
    while at < large.len() {
        let mut portion = vec![0; 1 + rng.index(200_000)];
        let len = reader.read(&mut portion).unwrap();
        assert!(len > 0 && portion[..len] == large[at..at + len]);
        at += len;
    }
    assert_eq!(reader.read(&mut [0; 8]).unwrap(), 0);
    for (key, value) in [(&b"small"[..], &b"in its leaf"[..]), (b"none", b"")] {
        let mut bytes = Vec::new();
        let mut reader = table.read_value(key).unwrap().unwrap();
        assert_eq!(reader.left(), value.len() as u64);
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, value);
    }
}

/// The stream returns correct data up to the damage. Then it returns an error, which the reader must be able to tell
/// from the end of the value.
#[test]
fn damage_in_a_value_is_reported_where_the_stream_reaches_it() {
    tidalite_testkit::watch();
    let storage = Arc::new(MemoryStorage::new());
    let large = random(&mut Rng::new(2), 1 << 20);
    let options = Options::new().tuning(Tuning::new().verify(Verify::Always));
    let db: Database = options.open_storage(Arc::clone(&storage) as _).unwrap();
    let mut tx = db.begin_write().unwrap();
    tx.table("t").unwrap().put(b"large", &large).unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    let mut image = vec![0; storage.len().unwrap() as usize];
    storage.read_at(0, &mut image).unwrap();
    let wanted = &large[500_000..500_016];
    let found = image.windows(16).position(|bytes| bytes == wanted);
    image[found.unwrap()] ^= 1;
    let damaged = Arc::new(MemoryStorage::from_image(image));
    let db = options.open_storage(damaged).unwrap();
    let snap = db.begin_read().unwrap();
    let table = snap.table("t").unwrap().unwrap();
    let mut reader = table.read_value(b"large").unwrap().unwrap();
    let mut bytes = Vec::new();
    let error = reader.read_to_end(&mut bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let told = error
        .get_ref()
        .and_then(|error| error.downcast_ref::<Error>());
    assert!(
        told.is_some_and(|error| error.corrupt().is_some()),
        "{told:?}"
    );
    assert!(bytes.len() > 400_000 && bytes[..] == large[..bytes.len()]);
    let kind = reader.read(&mut [0; 8]).unwrap_err().kind();
    assert_eq!(kind, ErrorKind::UnexpectedEof);
}
