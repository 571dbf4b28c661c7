//! Random UUIDs, which identify files.

use crate::error::{Error, Result};

/// Returns a new random UUID.
///
/// # Errors
/// If the system cannot provide random bytes.
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

/// Returns a UUID as text: 32 hexadecimal digits.
pub fn uuid_text(uuid: &[u8]) -> String {
    uuid.iter().map(|byte| format!("{byte:02x}")).collect()
}
