//! Encodes real columns, if `TIDALITE_TEST_DATA` names a folder with data files. Prints the number of bits per value.

use super::column_round_trip;
use crate::{ColumnType, EncoderState};
use std::path::Path;

#[test]
fn real_columns_come_back() {
    let Some(folder) = std::env::var_os("TIDALITE_TEST_DATA") else {
        println!("skipped: TIDALITE_TEST_DATA");
        return;
    };
    let mut total = 0.0;
    let mut columns = 0;
    let Ok(files) = std::fs::read_dir(Path::new(&folder).join("alp-samples")) else {
        println!("skipped: no alp-samples");
        return;
    };
    let mut files: Vec<_> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    for path in files
        .iter()
        .filter(|path| path.extension().is_some_and(|e| e == "csv"))
    {
        let text = std::fs::read_to_string(path).unwrap();
        let words: Vec<u64> = text
            .lines()
            .filter_map(|line| line.trim().parse::<f64>().ok())
            .map(f64::to_bits)
            .collect();
        if words.is_empty() {
            continue; // one of the samples has no numbers
        }
        let mut state = EncoderState::default();
        let mut bytes = 0;
        let mut codes = String::new();
        for vector in words.chunks(1024) {
            let (chunk, payload) = column_round_trip(ColumnType::F64, vector, &mut state);
            bytes += payload.len() + chunk.description_bytes();
            if codes.len() < 40 {
                codes += &format!(" {}/{}", chunk.encoding, chunk.width);
            }
            column_round_trip(ColumnType::I64, vector, &mut EncoderState::default());
        }
        let bits = bytes as f64 * 8.0 / words.len() as f64;
        println!("{bits:6.2} {:?}{codes}", path.file_stem().unwrap());
        total += bits;
        columns += 1;
    }
    println!("{:6.2} mean of {columns}", total / f64::from(columns));
}
