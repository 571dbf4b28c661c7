//! Runs every structure check on the project itself.

use tidalite_tidy::{
    Finding, Tree, arrows, built, documents, excerpts, fence, layers, leftovers, licences, limits,
    parity, root, watched, words,
};

fn tree() -> Tree {
    Tree::load(&root()).expect("the working copy can be read")
}

#[track_caller]
fn none(findings: &[Finding]) {
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn dependencies_equal_the_architecture_page() {
    none(&arrows::check(&tree()));
}

#[test]
fn imports_inside_a_crate_point_down() {
    none(&layers::check(&tree()));
}

#[test]
fn paths_and_items_named_in_documents_exist() {
    none(&documents::check(&tree()));
}

#[test]
fn rust_code_in_the_readme_is_in_an_example() {
    let tree = tree();
    // The examples are part of the public crate, which may be missing from this copy.
    if tree.exists("crates/tidalite/examples") {
        none(&excerpts::check(&tree));
    }
}

#[test]
fn limits_are_shown_with_their_values() {
    none(&limits::check(&tree()));
}

#[test]
fn parity_tables_name_existing_items() {
    none(&parity::check(&tree()));
}

#[test]
fn ordinary_tests_run_under_the_monitor() {
    none(&watched::check(&tree()));
}

#[test]
fn comments_are_plain() {
    none(&words::check(&tree()));
}

#[test]
fn crates_of_the_library_stay_within_their_sizes() {
    none(&built::check(&tree()));
}

#[test]
fn licences_of_dependencies_are_allowed() {
    none(&licences::check(&root()).expect("cargo lists the dependencies"));
}

#[test]
fn unsafe_stays_in_its_fence() {
    none(&fence::check(&tree()));
}

#[test]
fn nothing_is_left_over() {
    none(&leftovers::check(&tree()));
}

#[test]
fn the_test_command_of_the_readme_is_what_ci_runs() {
    let tree = tree();
    let readme = tree.text("README.md").expect("README.md");
    let ci = tree.text(".ci/run").expect(".ci/run");
    let command = "cargo test --workspace";
    assert!(readme.lines().any(|line| line == command));
    assert!(ci.lines().any(|line| line.ends_with(command)));
}
