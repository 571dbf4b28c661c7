//! The tests of the library, in one program: linked once, and with a thread for each processor also at its end. `facade` is a
//! program of its own.

mod aged;
mod article;
mod below;
mod broken;
mod buffered_damage;
mod buffered_tables;
mod cached;
mod calendar;
mod changed_texts;
mod cold;
mod compact_length;
mod container_check;
mod containers;
mod documents;
mod downsampling;
mod equal_times;
mod events;
mod frequent;
mod functions;
mod hash_damage;
mod hash_questions;
mod hash_tables;
mod hostile;
mod in_turn;
mod keep_all;
mod keep_distinct;
mod kernels;
mod known_tables;
mod large_sums;
mod maintained_messages;
mod many;
mod many_types;
mod matching;
mod message_refusals;
mod messages;
mod options;
mod own_rows;
mod owned_handles;
mod parallel;
mod record_units;
mod records;
mod refused_calls;
mod relation_crash;
mod relation_layouts;
mod relation_model;
mod relations;
mod retention;
mod retention_cap;
mod retention_clock;
mod row_figures;
mod rows_one_by_one;
mod set_tables;
mod shared_tables;
mod small_files;
mod streams;
mod table_calls;
mod table_edges;
mod table_types;
mod tables;
mod tags;
mod typed_rows;
mod typed_tables;
mod types;
mod uncommitted;
mod write_cursors;
mod zeros;

/// A file that is not named above would not be run.
#[test]
fn every_file_is_a_module() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for file in std::fs::read_dir(folder).expect("a folder") {
        let name = file.expect("a file").file_name();
        let name = name.to_string_lossy();
        let module = name.strip_suffix(".rs").filter(|name| *name != "suite");
        if let Some(module) = module {
            let named = include_str!("suite.rs").contains(&format!("\nmod {module};\n"));
            assert!(named, "{name} is not a module of suite.rs");
        }
    }
}
