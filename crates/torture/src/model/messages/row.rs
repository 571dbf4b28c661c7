//! Rows of the ledger: fields one after the other. Keys begin with the kind of the row.

/// Writes fields of a row.
#[derive(Default)]
pub(crate) struct Row(pub(super) Vec<u8>);

impl Row {
    pub(crate) fn word(mut self, word: u64) -> Self {
        self.0.extend_from_slice(&word.to_le_bytes());
        self
    }

    pub(crate) fn time(self, time: i64) -> Self {
        self.word(time as u64)
    }

    pub(crate) fn optional(self, time: Option<i64>) -> Self {
        self.time(time.unwrap_or(i64::MIN))
    }

    pub(crate) fn bytes(self, bytes: Option<&[u8]>) -> Self {
        let len = bytes.map_or(u64::MAX, |bytes| bytes.len() as u64);
        let mut row = self.word(len);
        row.0.extend_from_slice(bytes.unwrap_or_default());
        row
    }
}

/// Reads fields of a row. Missing fields are 0 and empty: the table is compared as a whole elsewhere.
pub(crate) struct Fields<'r>(pub(super) &'r [u8]);

impl<'r> Fields<'r> {
    pub(crate) fn word(&mut self) -> u64 {
        let Some((word, rest)) = self.0.split_first_chunk() else {
            return 0;
        };
        self.0 = rest;
        u64::from_le_bytes(*word)
    }

    pub(crate) fn time(&mut self) -> i64 {
        self.word() as i64
    }

    pub(crate) fn optional(&mut self) -> Option<i64> {
        Some(self.time()).filter(|time| *time != i64::MIN)
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        let len = self.word();
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }

    pub(crate) fn text(&mut self) -> String {
        let bytes = self.bytes().unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The key of a row.
pub(crate) fn key(kind: u8, rest: &[&[u8]]) -> Vec<u8> {
    [&[kind][..], &rest.concat()].concat()
}
