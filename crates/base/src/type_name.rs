//! Names of the types of keys and values, as stored with tables.

use std::fmt;

/// The name of a type, with the names of its parameters: `u64`, `[u8; 4]`, `(String, i32)`, `Option<f64>`. Unlike
/// [`std::any::type_name`], it stays the same in other versions of the compiler and after a move of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// Name of the type without its parameters; empty for a tuple.
    pub name: &'static str,
    /// Number of elements of an array type; `None` for other types.
    pub length: Option<usize>,
    /// Parameters of a generic type, or the element types of a tuple.
    pub parts: &'static [Self],
}

impl TypeName {
    /// The name of a type without parameters. For a type of your own, choose a name that no other program uses for
    /// another type, such as `weather::Station`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            length: None,
            parts: &[],
        }
    }
}

impl fmt::Display for TypeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(length) = self.length {
            return write!(f, "[{}; {length}]", self.name);
        }
        f.write_str(self.name)?;
        let Some((first, others)) = self.parts.split_first() else {
            return Ok(());
        };
        let (open, close) = if self.name.is_empty() {
            ("(", ")")
        } else {
            ("<", ">")
        };
        write!(f, "{open}{first}")?;
        for part in others {
            write!(f, ", {part}")?;
        }
        f.write_str(close)
    }
}

#[cfg(test)]
mod tests {
    use crate::order::{Ordered, Reversed};

    #[test]
    fn names_have_their_parameters() {
        type Long = (Vec<u8>, Reversed<(bool, f32)>, [u8; 16], i128);
        let names = [
            (u64::NAME, "u64"),
            (String::NAME, "String"),
            (<(i8,)>::NAME, "(i8)"),
            (
                Long::NAME,
                "(Vec<u8>, Reversed<(bool, f32)>, [u8; 16], i128)",
            ),
        ];
        for (name, text) in names {
            assert_eq!(name.to_string(), text);
        }
    }
}
