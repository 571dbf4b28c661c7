//! Random identities of files.

use crate::error::{Error, Result};

/// A new random identity.
///
/// # Errors
/// If the system has no random bytes.
pub fn new_uuid() -> Result<[u8; 16]> {
    let mut uuid = [0u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    match rustix::rand::getrandom(&mut uuid, flags) {
        Ok(_) => Ok(uuid),
        Err(error) => Err(Error::of_call(
            "random bytes for the file's identity",
            0,
            error,
        )),
    }
}

/// The identity of a file in its usual text form.
pub fn uuid_text(uuid: &[u8]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}
