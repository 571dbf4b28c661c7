//! The public face.
