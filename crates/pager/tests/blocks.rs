//! A block must match its pointer bit by bit: any single difference is damage.

use tidalite_base::TxnId;
use tidalite_pager::{Header, Kind, Ptr, seal_block, verify_block};

fn sealed() -> (Vec<u8>, Ptr) {
    let mut bytes: Vec<u8> = (0..200u8).collect();
    let header = Header {
        kind: Kind::RunBlock,
        flags: 3,
        owner: 77,
        address: 8192,
        birth: TxnId(12),
    };
    let ptr = seal_block(&mut bytes, &header);
    (bytes, ptr)
}

/// The test also flips bits of the checksum stored in the block, which the checksum in the pointer does not cover.
#[test]
fn every_bit_of_a_block_counts() {
    let (bytes, ptr) = sealed();
    assert!(verify_block(&bytes, &ptr).is_ok());
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(verify_block(&damaged, &ptr).is_err(), "bit {bit}");
    }
}

#[test]
fn every_bit_of_a_pointer_counts() {
    let (bytes, ptr) = sealed();
    let mut wrong = Vec::new();
    for bit in 0..64 {
        let checksum = ptr.checksum ^ 1 << bit;
        wrong.push(Ptr { checksum, ..ptr });
        let addr = ptr.addr ^ 1 << bit;
        wrong.push(Ptr { addr, ..ptr });
        let birth = TxnId(ptr.birth.0 ^ 1 << bit);
        wrong.push(Ptr { birth, ..ptr });
    }
    for bit in 0..32 {
        let len = ptr.len ^ 1 << bit;
        wrong.push(Ptr { len, ..ptr });
    }
    let kind = Kind::SeriesLeaf;
    wrong.push(Ptr { kind, ..ptr });
    for ptr in wrong {
        assert!(verify_block(&bytes, &ptr).is_err(), "{ptr:?}");
    }
}
