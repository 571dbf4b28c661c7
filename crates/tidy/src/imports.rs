//! The import graph between the files of a crate. It follows `use` declarations and paths in the code, through
//! re-exports, to the file that defines the name. Test code is ignored.
//!
//! A name that is not found (defined by a macro, or in another crate) is attributed to the last module of its path,
//! so the graph can have extra arrows; only arrows that macros generate are missing.

use crate::source::{Source, is_word, line_of, word_indices};
use crate::tree::Tree;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of re-exports that are followed in a chain.
const HOPS_MAX: usize = 12;

/// An import: file and line of the import, the file that defines the imported name, and the path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// Path of the importing file, relative to the crate's `src`.
    pub from: String,
    /// Path of the file that defines the imported name, relative to the crate's `src`.
    pub to: String,
    /// Line of the import in `from`, counted from 1.
    pub line: usize,
    /// The imported path, from the root of the crate.
    pub path: String,
}

/// The files of one crate, and the imports between them.
#[derive(Debug, Default)]
pub struct Imports {
    /// Paths of the crate's files, relative to `src`.
    pub files: Vec<String>,
    /// All imports that lead to another file of the crate.
    pub imports: Vec<Import>,
}

/// A module: its file, the names that the module defines, and the names that it imports.
struct Module {
    file: String,
    code: String,
    defined: BTreeSet<String>,
    macros: BTreeSet<String>,
    brought: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
}

type Modules = BTreeMap<Vec<String>, Module>;

impl Imports {
    /// Reads the crate whose sources are below `src`, a path such as `crates/kv/src`.
    #[must_use]
    pub fn read(tree: &Tree, src: &str) -> Self {
        let mut modules = Modules::new();
        for (path, text) in tree.ending(".rs") {
            let Some(file) = path
                .strip_prefix(src)
                .and_then(|rest| rest.strip_prefix('/'))
            else {
                continue;
            };
            if let Some(name) = module_of(file) {
                let code = without_test_items(&Source::new(text).code);
                modules.insert(name, Module::new(file, code));
            }
        }
        for tests in test_modules(tree, src, &modules) {
            modules.retain(|name, _| !name.starts_with(&tests));
        }
        let names: Vec<Vec<String>> = modules.keys().cloned().collect();
        for name in &names {
            let uses = uses(&modules, name);
            let module = modules.get_mut(name).expect("one of the keys");
            for own in uses {
                match own.alias.as_str() {
                    "*" => module.globs.push(own.path),
                    _ => drop(module.brought.insert(own.alias, own.path)),
                }
            }
        }
        let mut imports = BTreeSet::new();
        for name in &names {
            let from = &modules[name].file;
            let uses = uses(&modules, name).into_iter();
            let all = uses.map(|own| (own.path, own.line));
            for (path, line) in all.chain(paths(&modules, name)) {
                let to = &modules[&resolve(&modules, &path, HOPS_MAX)].file;
                if to != from {
                    imports.insert(Import {
                        from: from.clone(),
                        to: to.clone(),
                        line,
                        path: path.join("::"),
                    });
                }
            }
        }
        Self {
            files: modules.into_values().map(|module| module.file).collect(),
            imports: imports.into_iter().collect(),
        }
    }

    /// The import cycles: groups of files in which each file reaches all others.
    #[must_use]
    pub fn cycles(&self) -> Vec<Vec<String>> {
        let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for import in &self.imports {
            next.entry(&import.from).or_default().insert(&import.to);
        }
        let reach: BTreeMap<&str, BTreeSet<&str>> = self
            .files
            .iter()
            .map(|file| (file.as_str(), reached(&next, file)))
            .collect();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for file in &self.files {
            if seen.contains(file.as_str()) {
                continue;
            }
            let round: Vec<String> = reach[file.as_str()]
                .iter()
                .filter(|other| reach[*other].contains(file.as_str()))
                .map(|other| (*other).to_owned())
                .collect();
            if round.len() > 1 {
                seen.extend(
                    round
                        .iter()
                        .filter_map(|own| reach.get_key_value(own.as_str()))
                        .map(|(own, _)| *own),
                );
                cycles.push(round);
            }
        }
        cycles
    }
}

fn reached<'a>(next: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(from).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}

impl Module {
    fn new(file: &str, code: String) -> Self {
        const KEYWORDS: [&str; 10] = [
            "mod",
            "fn",
            "struct",
            "enum",
            "trait",
            "type",
            "const",
            "static",
            "union",
            "macro_rules",
        ];
        let (mut defined, mut macros) = (BTreeSet::new(), BTreeSet::new());
        let mut before = "";
        for (_, word) in word_indices(&code) {
            if KEYWORDS.contains(&before) {
                defined.insert(word.to_owned());
            }
            if before == "macro_rules" {
                macros.insert(word.to_owned());
            }
            before = word;
        }
        Self {
            file: file.to_owned(),
            code,
            defined,
            macros,
            brought: BTreeMap::new(),
            globs: Vec::new(),
        }
    }
}

/// The module of a file: `lib.rs` is the root of the crate, `a/mod.rs` and `a.rs` are the module `a`. Returns `None`
/// for binaries, which are not part of the crate.
fn module_of(file: &str) -> Option<Vec<String>> {
    if file.starts_with("bin/") {
        return None;
    }
    let path = file.strip_suffix(".rs")?;
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    let is_folder = parts.last().is_some_and(|last| last == "mod");
    let is_root = parts.len() == 1 && (parts[0] == "lib" || parts[0] == "main");
    if is_folder || is_root {
        parts.pop();
    }
    Some(parts)
}

/// The modules that exist only in tests: `mod tests;` after `#[cfg(test)]`.
fn test_modules(tree: &Tree, src: &str, modules: &Modules) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (name, module) in modules {
        let Some(text) = tree.text(&format!("{src}/{}", module.file)) else {
            continue;
        };
        let code = Source::new(text).code;
        for (at, _) in code.match_indices("#[cfg(") {
            let (start, end) = item_behind(&code, at);
            if !is_test_only(&code[at..start]) {
                continue;
            }
            let mut words = word_indices(&code[start..end]).map(|(_, word)| word);
            if words.any(|word| word == "mod")
                && let Some(module) = words.next()
            {
                let mut path = name.clone();
                path.push(module.to_owned());
                found.push(path);
            }
        }
    }
    found
}

/// The code in which each item that exists only in tests is replaced by blanks.
fn without_test_items(code: &str) -> String {
    let mut blanked = code.to_owned();
    let mut from = 0;
    while let Some(at) = blanked[from..].find("#[cfg(").map(|at| from + at) {
        let (start, end) = item_behind(&blanked, at);
        let is_test = is_test_only(&blanked[at..start]);
        if is_test {
            let blank: String = blanked[at..end]
                .chars()
                .map(|c| if c == '\n' { '\n' } else { ' ' })
                .collect();
            blanked.replace_range(at..end, &blank);
        }
        from = start;
    }
    blanked
}

/// True if an attribute is `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_test_only(attribute: &str) -> bool {
    let words: Vec<&str> = word_indices(attribute).map(|(_, word)| word).collect();
    matches!(words[..], ["cfg", "test", ..] | ["cfg", "all", "test", ..])
}

/// Begin and end of the item after the attribute at this offset, or of the item that begins at this offset.
fn item_behind(code: &str, attribute: usize) -> (usize, usize) {
    let start = match code[attribute..].starts_with('#') {
        true => attribute + code[attribute..].find(']').map_or(0, |end| end + 1),
        false => attribute,
    };
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth <= 0 {
                    return (start, at + 1);
                }
            }
            b';' | b',' if depth == 0 => return (start, at + 1),
            _ => {}
        }
    }
    (start, code.len())
}

/// A name imported by a `use` declaration: the local name, and the path from the root of the crate.
struct Use {
    alias: String,
    path: Vec<String>,
    line: usize,
}

/// The names that the `use` declarations of a module import from this crate.
fn uses(modules: &Modules, name: &[String]) -> Vec<Use> {
    let code = &modules[name].code;
    let mut found = Vec::new();
    for (at, word) in word_indices(code) {
        if word != "use" {
            continue;
        }
        let end = code[at..].find(';').map_or(code.len(), |end| at + end);
        let mut leaves = Vec::new();
        spread(&code[at + 3..end], Vec::new(), &mut leaves);
        for (path, alias) in leaves {
            let scope = scope(code, name, at);
            if let Some(path) = from_root(modules, &scope, &path) {
                found.push(Use {
                    alias,
                    path,
                    line: line_of(code, at),
                });
            }
        }
    }
    found
}

/// Expands the tree of a `use` declaration into paths with their local names.
fn spread(text: &str, before: Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let text = text.trim();
    // The text is empty after the last comma of a list.
    if text.is_empty() {
        return;
    }
    if let Some(open) = text.find('{') {
        let mut path = before;
        path.extend(word_indices(&text[..open]).map(|(_, word)| word.to_owned()));
        let inside = &text[open + 1..text.rfind('}').unwrap_or(text.len())];
        let (mut depth, mut start) = (0, 0);
        for (at, byte) in inside.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    spread(&inside[start..at], path.clone(), found);
                    start = at + 1;
                }
                _ => {}
            }
        }
        spread(&inside[start..], path, found);
        return;
    }
    let mut path = before;
    let mut alias = None;
    let mut words = word_indices(text).map(|(_, word)| word);
    while let Some(word) = words.next() {
        match word {
            "as" => alias = words.next().map(str::to_owned),
            "self" if !path.is_empty() => {}
            _ => path.push(word.to_owned()),
        }
    }
    if text.ends_with('*') {
        alias = Some("*".to_owned());
    }
    if let Some(last) = path.last() {
        let alias = alias.unwrap_or_else(|| last.clone());
        found.push((path, alias));
    }
}

/// The paths that a module uses outside of `use` declarations, with their lines.
fn paths(modules: &Modules, name: &[String]) -> Vec<(Vec<String>, usize)> {
    let code = &modules[name].code;
    let bytes = code.as_bytes();
    let mut found = Vec::new();
    let mut end_of_use = 0;
    for (at, word) in word_indices(code) {
        if word == "use" {
            end_of_use = code[at..].find(';').map_or(code.len(), |end| at + end);
        }
        let is_first = !code[..at].ends_with("::") && !code[..at].ends_with('.');
        if at < end_of_use || !is_first || !code[at + word.len()..].starts_with("::") {
            continue;
        }
        let mut path = vec![word.to_owned()];
        let mut next = at + word.len();
        while code[next..].starts_with("::") {
            let start = next + 2;
            let length = code[start..].chars().take_while(|&c| is_word(c)).count();
            if length == 0 {
                break;
            }
            path.push(code[start..start + length].to_owned());
            next = start + length;
        }
        let is_lifetime = at > 0 && bytes[at - 1] == b'\'';
        if !is_lifetime && let Some(path) = from_root(modules, name, &path) {
            found.push((path, line_of(code, at)));
        }
    }
    found
}

/// The module to which the code at an offset belongs: the module of the file, or a module inside the file.
fn scope(code: &str, file: &[String], at: usize) -> Vec<String> {
    let mut scope = file.to_vec();
    for (start, word) in word_indices(&code[..at]) {
        if word != "mod" {
            continue;
        }
        let (_, end) = item_behind(code, start);
        let is_inside = at < end && code[start..at].contains('{');
        if let (true, Some((_, name))) = (is_inside, word_indices(&code[start + 3..at]).next()) {
            scope.push(name.to_owned());
        }
    }
    scope
}

/// The path from the root of the crate to the target of `path`; `None` if `path` leads out of the crate.
fn from_root(modules: &Modules, name: &[String], path: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => name.to_vec(),
        "super" => name[..name.len().checked_sub(1)?].to_vec(),
        _ => {
            let mut child = name.to_vec();
            child.push(first.clone());
            if modules.contains_key(&child) {
                child
            } else {
                return None;
            }
        }
    };
    for part in rest {
        match part.as_str() {
            "super" => drop(base.pop()),
            _ => base.push(part.clone()),
        }
    }
    Some(base)
}

/// The module that defines the target of a path, after following re-exports.
fn resolve(modules: &Modules, path: &[String], hops: usize) -> Vec<String> {
    let mut at = Vec::new();
    for (index, part) in path.iter().enumerate() {
        at.push(part.clone());
        if modules.contains_key(&at) {
            continue;
        }
        at.pop();
        let module = &modules[&at];
        if hops == 0 || module.defined.contains(part) {
            return at;
        }
        if let Some(target) = module.brought.get(part) {
            let mut target = target.clone();
            target.extend_from_slice(&path[index + 1..]);
            return resolve(modules, &target, hops - 1);
        }
        for glob in &module.globs {
            let mut target = glob.clone();
            target.extend_from_slice(&path[index..]);
            let found = resolve(modules, &target, hops - 1);
            if modules[&found].defined.contains(part) {
                return found;
            }
        }
        // An exported macro is named from the root of the crate, wherever it is defined.
        let mut macros = modules.iter().filter(|(_, own)| own.macros.contains(part));
        return match macros.next() {
            Some((name, _)) if at.is_empty() => name.clone(),
            _ => at,
        };
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(path, text)| (format!("crates/x/src/{path}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        let read = Imports::read(&Tree::of(&files), "crates/x/src");
        let arrows: BTreeSet<String> = read
            .imports
            .iter()
            .map(|import| format!("{} -> {}", import.from, import.to))
            .collect();
        arrows.into_iter().collect()
    }

    #[test]
    fn imports_lead_to_the_file_that_defines_the_name() {
        let found = arrows(&[
            ("lib.rs", "mod a; mod b;\npub use a::Thing;\n"),
            (
                "a/mod.rs",
                "mod deep;\npub use deep::{Thing, Other as Another};\n",
            ),
            ("a/deep.rs", "pub struct Thing; pub struct Other;\n"),
            (
                "b.rs",
                "use crate::Thing;\nfn f() -> crate::a::Another { super::a::deep::Thing::new() }\n",
            ),
        ]);
        assert_eq!(
            found,
            [
                "a/mod.rs -> a/deep.rs",
                "b.rs -> a/deep.rs",
                "lib.rs -> a/deep.rs"
            ]
        );
    }

    #[test]
    fn globs_groups_and_children_are_followed() {
        let found = arrows(&[
            ("lib.rs", "mod a; mod b;\n"),
            (
                "a.rs",
                "mod child;\npub use child::*;\nfn f() { child::made(); }\n",
            ),
            ("a/child.rs", "pub fn made() {}\npub const N: u8 = 1;\n"),
            (
                "b.rs",
                "use crate::{a::{self, N}, b as own};\nfn f() { a::made(); }\n",
            ),
        ]);
        assert_eq!(
            found,
            ["a.rs -> a/child.rs", "b.rs -> a.rs", "b.rs -> a/child.rs"]
        );
    }

    #[test]
    fn modules_inside_a_file_are_of_that_file() {
        let found = arrows(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            (
                "a.rs",
                "struct X;\nmod inside { use super::X; use super::super::b::Y; }\nfn f(x: inside::Z) {}\n",
            ),
            ("b.rs", "pub struct Y;\nuse crate::a::inside::Z;\n"),
        ]);
        assert_eq!(found, ["a.rs -> b.rs", "b.rs -> a.rs"]);
    }

    #[test]
    fn an_exported_macro_is_found_where_it_is_defined() {
        let found = arrows(&[
            ("lib.rs", "mod a; mod b;\n"),
            ("a.rs", "#[macro_export]\nmacro_rules! m { () => {} }\n"),
            ("b.rs", "fn f() { crate::m!(); }\n"),
        ]);
        assert_eq!(found, ["b.rs -> a.rs"]);
    }

    #[test]
    fn tests_and_words_in_texts_do_not_count() {
        let found = arrows(&[
            ("lib.rs", "mod a; mod b;\n#[cfg(test)]\nmod tests;\n"),
            (
                "a.rs",
                "// crate::b::X\nfn f() { g(\"crate::b\"); }\n#[cfg(all(\n    test,\n    unix\n))]\nfn h() { crate::b::X; }\n#[cfg(test)]\nuse crate::b::X;\n#[cfg(test)]\nmod tests { use crate::b::X; }\n",
            ),
            ("b.rs", "pub struct X;\n"),
            ("tests.rs", "use crate::b::X;\n"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn cycles_are_found_whole() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b; mod c; mod d;\n"),
            ("crates/x/src/a.rs", "use crate::b::B; pub struct A;\n"),
            ("crates/x/src/b.rs", "use crate::c::C; pub struct B;\n"),
            ("crates/x/src/c.rs", "use crate::a::A; pub struct C;\n"),
            ("crates/x/src/d.rs", "use crate::a::A;\n"),
        ];
        let read = Imports::read(&Tree::of(&files), "crates/x/src");
        assert_eq!(read.cycles(), [["a.rs", "b.rs", "c.rs"]]);
    }
}
