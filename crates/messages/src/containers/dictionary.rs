//! The dictionary of field names of a table: documents store the numbers of names.
//!
//! Names are never removed, and numbers are assigned in ascending order. A new number is only kept in memory until the
//! call stores its changes, so a call that fails adds no names to the dictionary.

use crate::containers::codec;
use crate::containers::document::Document;
use crate::containers::keys::{number_of, text_of};
use crate::containers::options::ContainerTableOptions;
use crate::containers::parts::{Part, change, damaged, part, shown, within};
use crate::containers::state::{NUMBERS_MAX, State};
use std::collections::HashMap;
use std::sync::Arc;
use tidalite_base::get_u32;
use tidalite_kv::{TableReader, Tree};
use tidalite_pager::{PageRead, PageWrite, Result};

/// The names of all fields of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// Sorted by number. Numbers are assigned without gaps, so the name with number `n` is at place `n`, unless rows
    /// are lost.
    names: Vec<(u32, Arc<str>)>,
}

impl FieldNames {
    pub(crate) fn read<R: PageRead>(root: &Tree, r: &R) -> Result<Self> {
        let mut names = Vec::new();
        let mut rows = part(root, r, Part::FieldNames)?.cursor(r)?;
        let mut there = rows.first()?;
        while there {
            let value = rows.value()?;
            let name = Arc::from(text_of(&value.bytes()?)?);
            names.push((number_of(rows.key())?, name));
            there = rows.next()?;
        }
        Ok(Self { names })
    }

    /// The name of the field with a number; `None` if the number is unused.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&Arc<str>> {
        let names = &self.names;
        let direct = names.get(number as usize);
        let found = direct.filter(|(of, _)| *of == number).or_else(|| {
            let place = names.binary_search_by_key(&number, |(of, _)| *of).ok()?;
            names.get(place)
        });
        found.map(|(_, name)| name)
    }

    /// Decodes the document of a message of the table, for example
    /// [`StoredMessage::document`](crate::StoredMessage::document) of a message that an append has replaced.
    ///
    /// # Errors
    /// `Corrupt` for bytes that no encoder writes, and for fields whose names are not here.
    pub fn decode(&self, document: &[u8]) -> Result<Document> {
        codec::decode(document, &|number| self.get(number))
    }

    /// Number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All fields, by number.
    #[must_use]
    pub fn by_number(&self) -> Vec<(u32, &str)> {
        let names = self.names.iter();
        names.map(|(number, name)| (*number, &**name)).collect()
    }
}

/// Decodes the number in a row of the part `Fields`.
pub(crate) fn decode_number(bytes: &[u8]) -> Result<u32> {
    match bytes.len() {
        4 if get_u32(bytes, 0) < NUMBERS_MAX => Ok(get_u32(bytes, 0)),
        _ => Err(damaged(
            "number of a field",
            shown(bytes),
            "a number of 4 bytes",
        )),
    }
}

/// The numbers of fields that a writer has looked up or assigned.
#[derive(Debug, Default)]
pub(crate) struct FieldNumbers {
    known: HashMap<String, u32>,
    /// Names that are not stored yet. The first of these has the number `State::next_field`.
    new: Vec<String>,
    pub(crate) lookups: u64,
}

impl FieldNumbers {
    /// The number of a field. A new field is assigned a number. `table` is the part `Fields`.
    pub(crate) fn number<'r, R: PageRead>(
        &mut self,
        table: &TableReader<'r>,
        r: &'r R,
        state: &State,
        name: &str,
    ) -> Result<u32> {
        if let Some(number) = self.known.get(name) {
            return Ok(*number);
        }
        self.lookups += 1;
        let number = match table.get(r, name.as_bytes())? {
            Some(found) => decode_number(&found.bytes()?)?,
            None => {
                let number = u64::from(state.next_field) + self.new.len() as u64;
                within("fields of a table", number + 1, NUMBERS_MAX.into())?;
                self.new.push(name.to_owned());
                number as u32
            }
        };
        self.known.insert(name.to_owned(), number);
        Ok(number)
    }

    /// Discards the names that are not stored.
    pub(crate) fn discard(&mut self) {
        for name in self.new.drain(..) {
            self.known.remove(&name);
        }
    }

    pub(crate) fn check_limit(&self, state: &State, options: &ContainerTableOptions) -> Result<()> {
        match self.new.len() as u64 {
            0 => Ok(()),
            new => within(
                "fields of a table",
                u64::from(state.next_field) + new,
                options.fields_max.into(),
            ),
        }
    }

    /// Stores the new names. The caller stores the state.
    pub(crate) fn store<W: PageWrite>(
        &mut self,
        root: &mut Tree,
        w: &mut W,
        state: &mut State,
    ) -> Result<()> {
        if self.new.is_empty() {
            return Ok(());
        }
        let new = std::mem::take(&mut self.new);
        let from = state.next_field;
        state.next_field += new.len() as u32;
        change(root, w, Part::Fields, &mut |w, table| {
            for (number, name) in (from..).zip(&new) {
                table.insert(w, name.as_bytes(), &number.to_le_bytes())?;
            }
            Ok(())
        })?;
        change(root, w, Part::FieldNames, &mut |w, table| {
            let rows = (from..).zip(&new);
            let rows = rows.map(|(number, name)| (number.to_be_bytes(), name));
            table.extend(w, rows).map(drop)
        })
    }
}
