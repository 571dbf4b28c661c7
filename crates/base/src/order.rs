//! Order-preserving key encoding: bytes that sort like the numbers, texts and tuples that they encode.
//!
//! ```text
//! u8..u128     big-endian                                i8..i128   big-endian, sign bit flipped
//! f32, f64     big-endian; positive: sign bit flipped, negative: all bits flipped. This is the order of `total_cmp`:
//!              -0 below 0, NaN with a negative sign before all numbers, other NaN after them
//! bool         0, 1
//! bytes, text  zero bytes become 00 ff, and 00 00 terminates; a prefix sorts before a longer value in any tuple
//! [u8; N]      unchanged
//! (A, B, ..)   concatenated
//! Reversed<T>  every bit flipped
//! ```
//!
//! No encoding is a prefix of another encoding of the same type, so tuples and reversed values need no lengths.

use crate::type_name::TypeName;

/// A value whose encoding as bytes sorts like the value itself.
pub trait Ordered: Sized {
    /// Name of the type, which is stored with tables. Two types with the same name must have the same encoding.
    const NAME: TypeName;

    /// Appends the encoding of the value to `bytes`.
    fn encode(&self, bytes: &mut Vec<u8>);

    /// Decodes a value at the front of `bytes` and moves `bytes` past it; `None` if the bytes are invalid.
    fn decode(bytes: &mut &[u8]) -> Option<Self>;

    /// The encoding of the value as a new vector.
    fn to_key(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }

    /// Decodes a value from `key`; `None` if the bytes are invalid or more than one value.
    fn from_key(mut key: &[u8]) -> Option<Self> {
        let value = Self::decode(&mut key)?;
        key.is_empty().then_some(value)
    }
}

fn split<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk::<N>()?;
    *bytes = rest;
    Some(*first)
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty;)*) => {$(
        impl Ordered for $unsigned {
            const NAME: TypeName = TypeName::new(stringify!($unsigned));
            fn encode(&self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_be_bytes());
            }
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                split(bytes).map(Self::from_be_bytes)
            }
        }
        impl Ordered for $signed {
            const NAME: TypeName = TypeName::new(stringify!($signed));
            fn encode(&self, bytes: &mut Vec<u8>) {
                (self.cast_unsigned() ^ (1 << (<$unsigned>::BITS - 1))).encode(bytes);
            }
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let code = <$unsigned>::decode(bytes)?;
                Some((code ^ (1 << (<$unsigned>::BITS - 1))).cast_signed())
            }
        }
    )*};
}
integers! { u8, i8; u16, i16; u32, i32; u64, i64; u128, i128; }

macro_rules! floats {
    ($($float:ty, $bits:ty;)*) => {$(
        impl Ordered for $float {
            const NAME: TypeName = TypeName::new(stringify!($float));
            fn encode(&self, bytes: &mut Vec<u8>) {
                let top = 1 << (<$bits>::BITS - 1);
                let bits = self.to_bits();
                (if bits & top == 0 { bits | top } else { !bits }).encode(bytes);
            }
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                let top = 1 << (<$bits>::BITS - 1);
                let code = <$bits>::decode(bytes)?;
                Some(Self::from_bits(if code & top == 0 { !code } else { code ^ top }))
            }
        }
    )*};
}
floats! { f32, u32; f64, u64; }

impl Ordered for bool {
    const NAME: TypeName = TypeName::new("bool");

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(*self));
    }
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        match split::<1>(bytes)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl<const N: usize> Ordered for [u8; N] {
    const NAME: TypeName = TypeName {
        length: Some(N),
        ..TypeName::new("u8")
    };

    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(self);
    }
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        split(bytes)
    }
}

/// Appends the encoding of a byte string, as for a `Vec<u8>` that holds it.
pub fn encode_bytes(mut value: &[u8], bytes: &mut Vec<u8>) {
    while let Some(zero) = value.iter().position(|byte| *byte == 0) {
        bytes.extend_from_slice(&value[..=zero]);
        bytes.push(0xff);
        value = &value[zero + 1..];
    }
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(&[0, 0]);
}

/// The least key above all keys that begin with `prefix`; `None` if there is no such key.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut key = prefix[..=last].to_vec();
    key[last] += 1;
    Some(key)
}

/// The encoding of a text, for a `&str` without a copy to a `String`.
#[must_use]
pub fn text_key(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() + 2);
    encode_bytes(text.as_bytes(), &mut bytes);
    bytes
}

impl Ordered for Vec<u8> {
    const NAME: TypeName = TypeName::new("Vec<u8>");

    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_bytes(self, bytes);
    }
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let mut value = Self::new();
        loop {
            let [byte] = split::<1>(bytes)?;
            if byte != 0 {
                value.push(byte);
                continue;
            }
            match split::<1>(bytes)? {
                [0] => return Some(value),
                [0xff] => value.push(0),
                _ => return None,
            }
        }
    }
}

impl Ordered for String {
    const NAME: TypeName = TypeName::new("String");

    fn encode(&self, bytes: &mut Vec<u8>) {
        encode_bytes(self.as_bytes(), bytes);
    }
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        Self::from_utf8(Vec::decode(bytes)?).ok()
    }
}

/// A wrapper for a value whose encodings sort in reverse order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Reversed<T>(pub T);

impl<T: Ordered> Ordered for Reversed<T> {
    const NAME: TypeName = TypeName {
        name: "Reversed",
        length: None,
        parts: &[T::NAME],
    };

    fn encode(&self, bytes: &mut Vec<u8>) {
        let from = bytes.len();
        self.0.encode(bytes);
        bytes[from..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    fn decode(bytes: &mut &[u8]) -> Option<Self> {
        let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
        let mut rest = &flipped[..];
        let value = T::decode(&mut rest)?;
        *bytes = &bytes[flipped.len() - rest.len()..];
        Some(Self(value))
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),*))*) => {$(
        impl<$($part: Ordered),*> Ordered for ($($part,)*) {
            const NAME: TypeName = TypeName {
                name: "",
                length: None,
                parts: &[$($part::NAME),*],
            };

            fn encode(&self, bytes: &mut Vec<u8>) {
                $(self.$at.encode(bytes);)*
            }
            fn decode(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($part::decode(bytes)?,)*))
            }
        }
    )*};
}
tuples! { (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) }

/// The encoding of a JSON number as a key: integers up to 2^53 and doubles have one common order.
#[must_use]
pub fn json_number_key(number: f64) -> [u8; 8] {
    // JSON treats -0 and 0 as the same number.
    let number = if number == 0.0 { 0.0 } else { number };
    let mut bytes = Vec::with_capacity(8);
    number.encode(&mut bytes);
    *bytes
        .first_chunk()
        .unwrap_or_else(|| unreachable!("a double has eight bytes"))
}

/// The encoding of a JSON integer as a key; `None` beyond 2^53, where doubles cannot represent every integer.
#[must_use]
pub fn json_integer_key(number: i64) -> Option<[u8; 8]> {
    (number.unsigned_abs() <= 1 << 53).then(|| json_number_key(number as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering;
    use std::fmt::Debug;

    fn sorted<T: Ordered + Debug>(values: &[T], compare: impl Fn(&T, &T) -> Ordering) {
        for a in values {
            let key = a.to_key();
            assert_eq!(compare(&T::from_key(&key).unwrap(), a), Ordering::Equal);
            assert!(T::from_key(&[&key[..], &[0]].concat()).is_none());
            assert!(T::from_key(&key[..key.len() - 1]).is_none());
            for b in values {
                assert_eq!(key.cmp(&b.to_key()), compare(a, b), "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn codes_sort_as_their_values_do() {
        sorted(&[0u64, 1, 255, 256, u64::MAX], Ord::cmp);
        sorted(&[i64::MIN, -256, -1, 0, 1, i64::MAX], Ord::cmp);
        sorted(&[i8::MIN, -1, 0, 1, i8::MAX], Ord::cmp);
        sorted(&[u128::MAX, 0, 1 << 70], Ord::cmp);
        let floats = [
            f64::NEG_INFINITY,
            -1e300,
            -1.5,
            -0.0,
            0.0,
            5e-324,
            1.5,
            f64::INFINITY,
            f64::NAN,
        ];
        sorted(&floats, f64::total_cmp);
        sorted(&[-1.5f32, 0.0, 2.0], f32::total_cmp);
        sorted(&[false, true], Ord::cmp);
        sorted(&[*b"\0\0\0", *b"\0\0\xff", *b"abc", *b"b\0\0"], Ord::cmp);
        let texts = ["", "a", "a\0", "a\0\0", "a\0b", "ab", "b", "\0", "\u{ff}"];
        let texts = texts.map(str::to_owned);
        sorted(&texts, Ord::cmp);
        for text in &texts {
            assert_eq!(text_key(text), text.to_key());
        }
        let pairs: Vec<(String, i32)> = texts
            .iter()
            .flat_map(|text| [-1, 0, 7].map(|number| (text.clone(), number)))
            .collect();
        sorted(&pairs, Ord::cmp);
        let reversed: Vec<_> = pairs.iter().cloned().map(Reversed).collect();
        sorted(&reversed, |a, b| b.0.cmp(&a.0));
        let mixed: Vec<_> = pairs
            .iter()
            .map(|(a, b)| (Reversed(a.clone()), *b))
            .collect();
        sorted(&mixed, |a, b| b.0.0.cmp(&a.0.0).then(a.1.cmp(&b.1)));
    }

    #[test]
    fn the_key_after_a_prefix_is_the_least_above_it() {
        assert_eq!(after_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(after_prefix(b"a\xff\xff"), Some(b"b".to_vec()));
        assert_eq!(after_prefix(b"\xff"), None);
        assert_eq!(after_prefix(b""), None);
    }

    #[test]
    fn json_integers_and_doubles_share_one_order() {
        let key = |number: i64| json_integer_key(number).unwrap();
        assert!(key(-3) < json_number_key(-2.5) && json_number_key(-2.5) < key(-2));
        assert!(key(2) < json_number_key(2.5) && json_number_key(2.5) < key(3));
        assert_eq!(key(0), json_number_key(-0.0));
        assert!(json_integer_key(1 << 53).is_some() && json_integer_key((1 << 53) + 1).is_none());
    }
}
