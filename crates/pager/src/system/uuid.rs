//! Random identities of files.

use crate::error::{Error, Result};

pub(crate) fn new_uuid() -> Result<[u8; 16]> {
    let mut uuid = [0u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut uuid, flags) {
        Ok(_) => Ok(uuid),
        Err(error) => Err(Error::Io {
            what: "random bytes for the file's identity".into(),
            at: 0,
            source: error.into(),
        }),
    }
}

/// The identity of a file in its usual text form.
pub(crate) fn uuid_text(uuid: &[u8]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}
