//! Determines to which part of a table of containers the rows of an unreferenced leaf belong.

use crate::containers::codec::raw_fields;
use crate::containers::keys::{MessageKey, split_trash, text_of};
use crate::containers::message::ContainerMessage;
use crate::containers::options::check_name;
use crate::containers::parts::Part;
use crate::containers::record::Record;

type Row = (Vec<u8>, Option<Vec<u8>>);

fn is_message(key: MessageKey, value: Option<&Vec<u8>>) -> bool {
    value.is_none_or(|value| {
        let message = ContainerMessage::decode(key, value);
        message.is_ok_and(|message| raw_fields(message.document).is_ok())
    })
}

/// The key, in the root table, of the nested table to which the rows of a leaf belong, if the rows are messages,
/// deleted messages or records of containers; `None` for all other rows. A value is `None` if it is lost, or large;
/// only messages have large values.
#[must_use]
pub fn part_of_container_rows(rows: &[Row]) -> Option<[u8; 1]> {
    let is_stored = |(key, value): &Row| {
        let key = MessageKey::decode(key);
        key.is_ok_and(|key| is_message(key, value.as_ref()))
    };
    let is_deleted = |(key, value): &Row| {
        let key = split_trash(key);
        key.is_ok_and(|(_, key)| is_message(key, value.as_ref()))
    };
    let is_record = |(key, value): &Row| {
        let has_name = text_of(key).is_ok_and(|name| check_name(name).is_ok());
        let value = value.as_ref();
        has_name && value.is_some_and(|value| Record::decode(value).is_ok())
    };
    let parts = [
        (Part::Messages, rows.iter().all(is_stored)),
        (Part::Trash, rows.iter().all(is_deleted)),
        (Part::Containers, rows.iter().all(is_record)),
    ];
    let mut fitting = parts.iter().filter(|(_, fits)| *fits);
    match (fitting.next(), fitting.next()) {
        (Some((part, _)), None) => Some(part.key()),
        _ => None,
    }
}
