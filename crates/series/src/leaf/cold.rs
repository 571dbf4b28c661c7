//! A leaf in cold form, which is smaller but slower to read: a column that becomes smaller this way stores one model
//! that all its vectors share; other columns do not change.

use crate::leaf::layout::{MODEL_ENTRY_BYTES, payload_checksum};
use crate::leaf::open_vector::{Model, OpenVector};
use crate::leaf::writer::{OpenLeaf, vector_rows};
use tidalite_codec::{ColdColumn, ColumnType, EncoderState, RowsRef, encode_cold, words};

impl OpenLeaf {
    /// Clears the leaf and fills it with rows in cold form; returns the number of rows that were taken.
    pub(crate) fn fill_with_cold(
        &mut self,
        types: &[ColumnType],
        states: &mut [EncoderState],
        rows: RowsRef<'_>,
    ) -> usize {
        let taken = self.fill_cold(types, states, rows);
        let rows = rows.slice(0..taken);
        let mut ends = Vec::new();
        let mut at = 0;
        while at < taken {
            at += vector_rows(rows.slice(at..taken));
            ends.push(at);
        }
        assert_eq!(ends.len(), self.vectors, "the vectors that were encoded");
        let hot = std::mem::take(&mut self.payloads);
        let mut payloads = Vec::with_capacity(hot.len());
        if self.step.is_none() {
            let vectors = cut(words(rows.times()), &ends);
            let column = encode_cold(ColumnType::I64, &vectors);
            self.times_model = cool(&mut self.times, column, &hot, &mut payloads);
        }
        for (c, (column, &ty)) in self.columns.iter_mut().zip(types).enumerate() {
            if column.word.is_none() {
                let vectors = cut(rows.column(c), &ends);
                let cold = encode_cold(ty, &vectors);
                column.model = cool(&mut column.vectors, cold, &hot, &mut payloads);
            }
        }
        self.payloads = payloads;
        taken
    }
}

/// Splits values into vectors that end at the given row numbers.
fn cut<'w>(words: &'w [u64], ends: &[usize]) -> Vec<&'w [u64]> {
    debug_assert!(ends.is_sorted_by(|a, b| a < b), "every vector has rows");
    debug_assert_eq!(ends.last(), Some(&words.len()), "vectors hold all rows");
    let begins = std::iter::once(0).chain(ends.iter().copied());
    begins
        .zip(ends)
        .map(|(begin, &end)| &words[begin..end])
        .collect()
}

/// Appends the payloads of a column's vectors to `out`, in cold form if that is smaller; returns the model that the
/// vectors then share.
fn cool<T>(
    vectors: &mut [OpenVector<T>],
    cold: Option<ColdColumn>,
    hot: &[u8],
    out: &mut Vec<u8>,
) -> Option<Model> {
    debug_assert!(
        cold.as_ref()
            .is_none_or(|cold| cold.vectors.len() == vectors.len()),
        "a page for each vector"
    );
    let cold = cold.filter(|cold| {
        let gain = vectors.iter().zip(&cold.vectors).map(|(vector, page)| {
            let length = page.as_ref().map_or(usize::MAX, |(_, page)| page.len());
            vector.chunk.len().saturating_sub(length)
        });
        gain.sum::<usize>() > MODEL_ENTRY_BYTES + cold.model.len()
    });
    let model = cold.as_ref().map(|cold| {
        let offset = out.len() as u32;
        out.extend_from_slice(&cold.model);
        Model {
            offset,
            bytes: cold.model.len() as u32,
            checksum: payload_checksum(&cold.model),
        }
    });
    let mut pages = cold.into_iter().flat_map(|cold| cold.vectors);
    for vector in vectors {
        let offset = out.len() as u32;
        match pages.next().flatten() {
            Some((chunk, page)) if page.len() < vector.chunk.len() => {
                vector.chunk = chunk;
                vector.checksum = payload_checksum(&page);
                out.extend_from_slice(&page);
            }
            _ => {
                let begin = vector.offset as usize;
                out.extend_from_slice(&hot[begin..begin + vector.chunk.len()]);
            }
        }
        vector.offset = offset;
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaf::reader::Leaf;
    use crate::packer::Packer;
    use tidalite_codec::{COLD, Chunk, Rows};
    use tidalite_kv::Tree;
    use tidalite_pager::Error;
    use tidalite_testkit::ScratchPages;

    /// A leaf whose second column is in cold form: a build without the feature `cold` returns an error that names the
    /// missing feature; a build with it reports damage, because the column's bytes are invalid. Both builds can read
    /// the first column.
    #[test]
    fn a_cold_leaf_is_read_or_the_error_names_the_feature() {
        let types = [ColumnType::I64, ColumnType::F64];
        let mut rows = Rows::new(2);
        for i in 0..600 {
            rows.push_row(i * 10, &[i as u64 % 7, (i as f64).sqrt().to_bits()]);
        }
        let mut packer = Packer::new(Tree::new(3));
        let mut leaf = packer.take_leaf();
        let mut states = vec![EncoderState::default(); 3];
        assert_eq!(leaf.fill_cold(&types, &mut states, rows.view()), 600);
        // A chunk with encoding 13 (cold form), in which everything else is zero.
        let (chunk, _) = Chunk::get(&[13, 0, 0, 0], 0, (600, 40)).unwrap();
        let cold = ColdColumn {
            model: vec![3; 20],
            vectors: vec![Some((chunk, vec![7; 40]))],
        };
        let hot = std::mem::take(&mut leaf.payloads);
        let mut payloads = Vec::new();
        cool(&mut leaf.columns[0].vectors, None, &hot, &mut payloads);
        let vectors = &mut leaf.columns[1].vectors;
        leaf.columns[1].model = cool(vectors, Some(cold), &hot, &mut payloads);
        assert!(leaf.columns[1].model.is_some());
        leaf.payloads = payloads;
        let mut pages = ScratchPages::new(4096);
        let entry = packer.write_leaf(&mut pages, &mut leaf, 7).unwrap();
        packer.finish(&mut pages).unwrap();
        pages.commit();
        let leaf = Leaf::open(&pages, &entry.link, &types).unwrap();
        let mut words = vec![0; 600];
        leaf.column(&pages, 0, 0, &mut words).unwrap();
        assert_eq!(words, rows.columns[0]);
        let error = leaf.column(&pages, 0, 1, &mut words).unwrap_err();
        match error {
            Error::Unsupported { .. } if !COLD => {
                assert!(error.to_string().contains("the feature `cold`"), "{error}");
            }
            Error::Corrupt(_) if COLD => {}
            other => panic!("{other}"),
        }
        let rows = crate::leaf_rows(&pages, &entry.link.ptr);
        assert_eq!(rows.is_err(), !COLD, "{rows:?}");
    }
}
