//! The first bytes of values. The layout of values is drawn at the head of this folder.

pub(super) const NULL: u8 = 0x00;
pub(super) const FALSE: u8 = 0x01;
pub(super) const TRUE: u8 = 0x02;
pub(super) const FLOAT: u8 = 0x03;
pub(super) const TEXT: u8 = 0x04;
pub(super) const LIST: u8 = 0x05;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const INTEGER: u8 = 0x10;
pub(super) const NEGATIVE: u8 = 0x20;
pub(super) const DECIMAL: u8 = 0x30;
pub(super) const SHORT_TEXT: u8 = 0x40;
pub(super) const SMALL: u8 = 0x80;

/// Maximum length in bytes of a text whose length is in its first byte.
pub(super) const SHORT_TEXT_BYTES_MAX: usize = (SMALL - SHORT_TEXT - 1) as usize;
/// Maximum number of bytes of the digits of a decimal: with one more byte it would not be shorter than the float.
pub(super) const DECIMAL_BYTES_MAX: usize = 6;
/// The bit of a decimal's exponent byte that is set for negative numbers.
pub(super) const DECIMAL_NEGATIVE: u8 = 0x80;
