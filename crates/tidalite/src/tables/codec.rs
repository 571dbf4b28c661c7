//! How keys and values of tables are stored: as plain bytes, or as the encoding of a Rust type.
//!
//! ```text
//! keys, and values of sets    [u8]: as they are; str: like String; every Ordered type: its code, which sorts like it
//! values of other tables      [u8], str, Vec<u8>, String: their bytes; (): none; char: 4 bytes, big-endian
//!                             Option<T>: 0, or 1 and the code of T; every other Ordered type: as in a key;
//!                             a Document: CBOR (document.rs)
//! ```

use crate::catalog::table_name::Named;
use crate::tables::lent::Lent;
use crate::types::error::Error;
use crate::types::error::cause::Cause;
use crate::types::text_form::key_text;
use std::borrow::Cow;
use std::convert::Infallible;
use std::marker::PhantomData;
use tidalite_base::{Ordered, Reversed, TypeName, text_key};

/// The reason why a value cannot be encoded.
pub type EncodeError = Box<dyn std::error::Error + Send + Sync>;

/// The type name that stands for plain bytes.
const BYTES: TypeName = TypeName::new("bytes");

/// A type of keys of tables, and of values of [`SetTable`](crate::SetTable): `[u8]` for plain bytes, `str`, and every
/// type that implements [`Ordered`]. Entries are stored in the order of the type.
pub trait TableKey: 'static {
    /// The name of the type, which is stored with the table.
    const NAME: TypeName;

    /// The type in which keys are returned by reads.
    type Owned;

    /// Encodes this key to the bytes that are stored.
    fn key_code(&self) -> Cow<'_, [u8]>;

    /// Decodes a key from its stored bytes; `None` if no key of this type has these bytes.
    fn decode_key(code: &[u8]) -> Option<Self::Owned>;
}

impl TableKey for [u8] {
    const NAME: TypeName = BYTES;
    type Owned = Vec<u8>;

    #[inline(always)]
    fn key_code(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self)
    }

    #[inline]
    fn decode_key(code: &[u8]) -> Option<Vec<u8>> {
        Some(code.to_vec())
    }
}

impl TableKey for str {
    const NAME: TypeName = <String as Ordered>::NAME;
    type Owned = String;

    fn key_code(&self) -> Cow<'_, [u8]> {
        Cow::Owned(text_key(self))
    }

    fn decode_key(code: &[u8]) -> Option<String> {
        String::from_key(code)
    }
}

impl<T: Ordered + 'static> TableKey for T {
    const NAME: TypeName = <T as Ordered>::NAME;
    type Owned = T;

    #[inline]
    fn key_code(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.to_key())
    }

    #[inline]
    fn decode_key(code: &[u8]) -> Option<T> {
        T::from_key(code)
    }
}

/// A type of values of a [`Table`](crate::Table): `[u8]` or `Vec<u8>` for plain bytes, `str` or `String`, numbers,
/// `bool`, `char`, `()`, arrays of bytes, tuples of [`Ordered`] types, `Option` of a value type, and, with the feature
/// `serde`, every type that implements `Document`.
pub trait TableValue: 'static {
    /// The name of the type, which is stored with the table.
    const NAME: TypeName;

    /// The type in which values are passed to writes.
    type Borrowed: ?Sized;

    /// The type in which values are returned by reads.
    type Owned;

    /// The type of the values that iterators return: for plain bytes a value borrowed from the table, otherwise
    /// `Owned`.
    type Lent<'a>;

    /// Encodes a value to the bytes that are stored.
    ///
    /// # Errors
    /// If the value cannot be encoded, which happens only for a type that is stored through serde.
    fn value_code(value: &Self::Borrowed) -> Result<Cow<'_, [u8]>, EncodeError>;

    /// Decodes a value from its stored bytes; `None` if no value of this type has these bytes.
    fn decode_value(bytes: &[u8]) -> Option<Self::Owned>;

    /// Decodes a value like `decode_value`, to the type that iterations return.
    ///
    /// # Errors
    /// Returns the bytes if no value of this type has them.
    fn lend_value(bytes: Lent<'_>) -> Result<Self::Lent<'_>, Lent<'_>>;

    /// Decodes a value like `decode_value`, from bytes that may be moved into the result.
    ///
    /// # Errors
    /// Returns the bytes if no value of this type has them.
    fn take_value(bytes: Lent<'_>) -> Result<Self::Owned, Lent<'_>> {
        Self::decode_value(&bytes).ok_or(bytes)
    }

    /// The reason why `decode_value` refuses these bytes, for an error text; `None` if there is nothing to add.
    fn decode_problem(bytes: &[u8]) -> Option<String> {
        let _ = bytes;
        None
    }
}

impl TableValue for [u8] {
    const NAME: TypeName = BYTES;
    type Borrowed = [u8];
    type Owned = Vec<u8>;
    type Lent<'a> = Lent<'a>;

    #[inline(always)]
    fn value_code(value: &[u8]) -> Result<Cow<'_, [u8]>, EncodeError> {
        Ok(Cow::Borrowed(value))
    }

    fn decode_value(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }

    #[inline]
    fn lend_value(bytes: Lent<'_>) -> Result<Lent<'_>, Lent<'_>> {
        Ok(bytes)
    }

    #[inline]
    fn take_value(bytes: Lent<'_>) -> Result<Vec<u8>, Lent<'_>> {
        Ok(bytes.into_vec())
    }
}

impl TableValue for Vec<u8> {
    const NAME: TypeName = BYTES;
    type Borrowed = Self;
    type Owned = Self;
    type Lent<'a> = Self;

    fn value_code(value: &Self) -> Result<Cow<'_, [u8]>, EncodeError> {
        Ok(Cow::Borrowed(value))
    }

    fn decode_value(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }

    fn lend_value(bytes: Lent<'_>) -> Result<Self, Lent<'_>> {
        Ok(bytes.into_vec())
    }

    fn take_value(bytes: Lent<'_>) -> Result<Self, Lent<'_>> {
        Ok(bytes.into_vec())
    }
}

macro_rules! texts {
    ($($text:ty),*) => {$(
        impl TableValue for $text {
            const NAME: TypeName = <String as Ordered>::NAME;
            type Borrowed = Self;
            type Owned = String;
            type Lent<'a> = String;

            fn value_code(value: &Self) -> Result<Cow<'_, [u8]>, EncodeError> {
                Ok(Cow::Borrowed(value.as_bytes()))
            }

            fn decode_value(bytes: &[u8]) -> Option<String> {
                std::str::from_utf8(bytes).ok().map(str::to_owned)
            }

            fn lend_value(bytes: Lent<'_>) -> Result<String, Lent<'_>> {
                Self::take_value(bytes)
            }
        }
    )*};
}
texts! { str, String }

/// Implements `TableValue` for the listed types, each with the expressions that encode and decode its values.
macro_rules! values {
    ($([$($generic:tt)*] $ty:ty, $name:expr,
        $value:ident => $encode:expr, $bytes:ident => $decode:expr;)*) => {$(
        impl<$($generic)*> TableValue for $ty {
            const NAME: TypeName = $name;
            type Borrowed = Self;
            type Owned = Self;
            type Lent<'a> = Self;

            fn value_code($value: &Self) -> Result<Cow<'_, [u8]>, EncodeError> {
                Ok(Cow::Owned($encode))
            }

            fn decode_value($bytes: &[u8]) -> Option<Self> {
                $decode
            }

            fn lend_value(bytes: Lent<'_>) -> Result<Self, Lent<'_>> {
                Self::decode_value(&bytes).ok_or(bytes)
            }
        }
    )*};
}

macro_rules! ordered {
    ($([$($generic:tt)*] $ty:ty;)*) => {
        values! { $(
            [$($generic)*] $ty, <$ty as Ordered>::NAME,
                value => value.to_key(), bytes => Self::from_key(bytes);
        )* }
    };
}
ordered! {
    [] u8; [] u16; [] u32; [] u64; [] u128;
    [] i8; [] i16; [] i32; [] i64; [] i128;
    [] f32; [] f64; [] bool;
    [const N: usize] [u8; N];
    [T: Ordered + 'static] Reversed<T>;
    [A: Ordered + 'static] (A,);
    [A: Ordered + 'static, B: Ordered + 'static] (A, B);
    [A: Ordered + 'static, B: Ordered + 'static, C: Ordered + 'static] (A, B, C);
    [A: Ordered + 'static, B: Ordered + 'static, C: Ordered + 'static, D: Ordered + 'static] (A, B, C, D);
}

values! {
    [] (), TypeName::new("()"), _value => Vec::new(), bytes => bytes.is_empty().then_some(());
    [] char, TypeName::new("char"), value => u32::from(*value).to_key(), bytes => char::from_u32(u32::from_key(bytes)?);
    [T: TableValue<Borrowed = T, Owned = T>] Option<T>,
        TypeName { name: "Option", length: None, parts: &[T::NAME] },
        value => match value {
            None => vec![0],
            Some(value) => [&[1], &T::value_code(value)?[..]].concat(),
        },
        bytes => match bytes.split_first()? {
            (0, []) => Some(None),
            (1, code) => T::decode_value(code).map(Some),
            _ => None,
        };
}

/// An argument that is a `T` or a `&T`; for bytes and text, any type that can be borrowed as such. Used for the ends of
/// a range of keys and the entries of `extend`.
pub trait AsArg<T: ?Sized> {
    /// Borrows the argument as a `T`.
    fn as_arg(&self) -> &T;
}

impl<A: AsRef<[u8]> + ?Sized> AsArg<[u8]> for A {
    #[inline(always)]
    fn as_arg(&self) -> &[u8] {
        self.as_ref()
    }
}

impl<A: AsRef<str> + ?Sized> AsArg<str> for A {
    fn as_arg(&self) -> &str {
        self.as_ref()
    }
}

impl<T> AsArg<T> for T {
    #[inline(always)]
    fn as_arg(&self) -> &T {
        self
    }
}

impl<T> AsArg<T> for &T {
    #[inline(always)]
    fn as_arg(&self) -> &T {
        self
    }
}

/// Defines an argument together with its encoding, for calls that take many arguments. Plain bytes are their own
/// encoding and are not copied.
macro_rules! coded {
    ($name:ident, $part:ident: $ofs:ident, $given:ident, $code:expr, $form:ty, $error:ty) => {
        pub(crate) struct $name<$part: ?Sized, A> {
            given: A,
            code: Option<Vec<u8>>,
            part: PhantomData<fn(&$part)>,
        }

        impl<$part: $ofs + ?Sized, A: AsArg<$form>> $name<$part, A> {
            #[inline(always)]
            pub(crate) fn of(given: A) -> Result<Self, $error> {
                let $given = given.as_arg();
                let code: Result<Cow<'_, [u8]>, $error> = $code;
                let code = match code? {
                    Cow::Borrowed(_) => None,
                    Cow::Owned(code) => Some(code),
                };
                let part = PhantomData;
                Ok(Self { given, code, part })
            }
        }

        impl<$part: $ofs + ?Sized, A: AsArg<$form>> AsRef<[u8]> for $name<$part, A> {
            #[inline(always)]
            fn as_ref(&self) -> &[u8] {
                if let Some(code) = &self.code {
                    return code;
                }
                let $given = self.given.as_arg();
                let code: Result<Cow<'_, [u8]>, $error> = $code;
                match code {
                    Ok(Cow::Borrowed(code)) => code,
                    _ => unreachable!("an owned code is stored, and no code is an error before"),
                }
            }
        }
    };
}
coded! { CodedKey, K: TableKey, given, Ok(given.key_code()), K, Infallible }
coded! { CodedValue, V: TableValue, given, V::value_code(given), V::Borrowed, EncodeError }

/// The error for a value that cannot be encoded.
#[cold]
pub(crate) fn not_encoded<V: TableValue + ?Sized>(table: &str, source: EncodeError) -> Error {
    Error::from(Cause::NotEncoded {
        table: table.to_owned(),
        ty: std::any::type_name::<V>(),
        source,
    })
}

/// The error for bytes of a table that cannot be decoded as `T`.
#[cold]
fn wrong_type<T: ?Sized>(table: &str, part: &'static str, bytes: &[u8]) -> Error {
    Error::from(Cause::WrongType {
        table: table.to_owned(),
        part,
        expected: std::any::type_name::<T>(),
        found: format!("{} bytes, {}", bytes.len(), key_text(bytes)),
    })
}

/// The error for bytes of a table that cannot be decoded as a value of type `V`.
#[cold]
fn wrong_value<V: TableValue + ?Sized>(table: &str, bytes: &[u8]) -> Error {
    let mut found = format!("{} bytes, {}", bytes.len(), key_text(bytes));
    if let Some(problem) = V::decode_problem(bytes) {
        found = format!("{found} ({problem})");
    }
    Error::from(Cause::WrongType {
        table: table.to_owned(),
        part: "value",
        expected: std::any::type_name::<V>(),
        found,
    })
}

/// Decodes a key that was read from a table; an error names the table.
#[inline]
pub(crate) fn key_of<K: TableKey + ?Sized>(
    table: &Named<'_>,
    code: &[u8],
) -> crate::Result<K::Owned> {
    K::decode_key(code).ok_or_else(|| wrong_type::<K>(table.as_str(), "key", code))
}

/// Decodes a value that was read from a table of sets; an error names the table.
#[inline]
pub(crate) fn set_value_of<V: TableKey + ?Sized>(
    table: &Named<'_>,
    code: &[u8],
) -> crate::Result<V::Owned> {
    V::decode_key(code).ok_or_else(|| wrong_type::<V>(table.as_str(), "value", code))
}

/// Decodes a value that was read from a table; an error names the table.
#[inline]
pub(crate) fn value_of<V: TableValue + ?Sized>(
    table: &Named<'_>,
    bytes: Lent<'_>,
) -> crate::Result<V::Owned> {
    V::take_value(bytes).map_err(|bytes| wrong_value::<V>(table.as_str(), &bytes))
}

/// Decodes a value to the type that iterations return; an error names the table.
#[inline]
pub(crate) fn lent_of<'a, V: TableValue + ?Sized>(
    table: &Named<'_>,
    bytes: Lent<'a>,
) -> crate::Result<V::Lent<'a>> {
    V::lend_value(bytes).map_err(|bytes| wrong_value::<V>(table.as_str(), &bytes))
}
