//! Objects: bytes of any size in chunks.
