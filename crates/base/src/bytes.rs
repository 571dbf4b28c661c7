//! Checked access to little-endian fields in byte slices. A getter panics only if the field extends past the end of the
//! slice; callers check the length of untrusted input once, before they read fields.

macro_rules! field {
    ($get:ident, $put:ident, $ty:ty) => {
        /// Reads a little-endian field at byte offset `at`.
        ///
        /// # Panics
        /// If the field does not lie inside `bytes`. The caller checks the length first.
        #[must_use]
        #[inline]
        pub fn $get(bytes: &[u8], at: usize) -> $ty {
            let mut field = [0u8; size_of::<$ty>()];
            field.copy_from_slice(&bytes[at..at + size_of::<$ty>()]);
            <$ty>::from_le_bytes(field)
        }

        /// Writes a little-endian field at byte offset `at`.
        ///
        /// # Panics
        /// If the field does not lie inside `bytes`.
        #[inline]
        pub fn $put(bytes: &mut [u8], at: usize, value: $ty) {
            bytes[at..at + size_of::<$ty>()].copy_from_slice(&value.to_le_bytes());
        }
    };
}

field!(get_u16, put_u16, u16);
field!(get_u32, put_u32, u32);
field!(get_u64, put_u64, u64);
field!(get_i64, put_i64, i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_little_endian_and_come_back() {
        let mut bytes = [0u8; 16];
        put_u64(&mut bytes, 3, 0x0102_0304_0506_0708);
        assert_eq!(bytes[3], 8);
        assert_eq!(get_u64(&bytes, 3), 0x0102_0304_0506_0708);
        put_i64(&mut bytes, 8, -2);
        assert_eq!(get_i64(&bytes, 8), -2);
    }
}
