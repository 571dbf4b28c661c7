//! Random patterns and names: a naive evaluator decides which names each pattern selects.

use crate::{SeriesName, SeriesPattern};
use tidalite_testkit::rng::Rng;

/// A pattern as the test generates it.
struct Spec {
    metric: Option<Glob>,
    sets: Vec<Vec<Condition>>,
}

enum Condition {
    Tag(String, Test, bool),
    Not(Vec<Condition>),
}

enum Test {
    Values(Vec<Glob>),
    Expression(Expression),
}

/// Parts of a glob; `None` is `*`, `Some(None)` is `?`.
type Glob = Vec<Option<Option<char>>>;

enum Expression {
    Char(char),
    Any,
    Sequence(Vec<Expression>),
    Either(Box<Expression>, Box<Expression>),
    Repeated(Box<Expression>),
}

const LETTERS: [char; 8] = ['a', 'b', 'c', '!', ' ', '"', '*', '\\'];
const KEYS: [&str; 6] = ["a", "b!", "not", "in", "not(", "two words"];

fn letter(rng: &mut Rng) -> char {
    // Mostly the first two, so that patterns often match.
    match rng.one_in(4) {
        true => LETTERS[rng.index(LETTERS.len())],
        false => LETTERS[rng.index(2)],
    }
}

fn text(rng: &mut Rng, len_max: usize) -> String {
    (0..rng.index(len_max + 1)).map(|_| letter(rng)).collect()
}

fn name(rng: &mut Rng) -> SeriesName {
    let metric = letter(rng).to_string() + &text(rng, 2);
    let keys = KEYS
        .iter()
        .filter(|_| rng.one_in(2))
        .copied()
        .collect::<Vec<_>>();
    let tags: Vec<_> = keys
        .into_iter()
        .map(|key| (key.to_owned(), text(rng, 3)))
        .collect();
    SeriesName::new(metric, tags).unwrap()
}

fn glob(rng: &mut Rng) -> Glob {
    let part = |rng: &mut Rng| match rng.below(5) {
        0 => None,
        1 => Some(None),
        _ => Some(Some(letter(rng))),
    };
    (0..rng.index(4)).map(|_| part(rng)).collect()
}

fn expression(rng: &mut Rng, depth: usize) -> Expression {
    match if depth == 0 {
        rng.below(4)
    } else {
        rng.below(8)
    } {
        0 => Expression::Any,
        1..=3 => Expression::Char(letter(rng)),
        4 | 5 => Expression::Sequence(
            (0..rng.index(4))
                .map(|_| expression(rng, depth - 1))
                .collect(),
        ),
        6 => Expression::Either(
            Box::new(expression(rng, depth - 1)),
            Box::new(expression(rng, depth - 1)),
        ),
        _ => Expression::Repeated(Box::new(expression(rng, depth - 1))),
    }
}

fn condition(rng: &mut Rng, depth: usize) -> Condition {
    if depth > 0 && rng.one_in(4) {
        return Condition::Not(conditions(rng, depth - 1));
    }
    let test = match rng.one_in(3) {
        true => Test::Expression(expression(rng, 3)),
        false => Test::Values((0..=rng.index(3)).map(|_| glob(rng)).collect()),
    };
    Condition::Tag(KEYS[rng.index(KEYS.len())].to_owned(), test, rng.one_in(3))
}

fn conditions(rng: &mut Rng, depth: usize) -> Vec<Condition> {
    (0..=rng.index(3)).map(|_| condition(rng, depth)).collect()
}

fn spec(rng: &mut Rng) -> Spec {
    let metric = (!rng.one_in(3)).then(|| match rng.one_in(3) {
        true => glob(rng),
        false => vec![None],
    });
    let sets = (0..rng.index(3)).map(|_| conditions(rng, 2)).collect();
    Spec { metric, sets }
}

// Writing: of the forms that the grammar has for one thing, a random one.

fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{escaped}\"")
}

fn space(rng: &mut Rng) -> &'static str {
    ["", "", "", " ", "  ", "\n"][rng.index(6)]
}

fn written_glob(rng: &mut Rng, glob: &Glob) -> String {
    if glob.is_empty() {
        return quoted("");
    }
    let part = |part: &Option<Option<char>>| match part {
        None => "*".to_owned(),
        Some(None) => "?".to_owned(),
        Some(Some(c)) if "abc".contains(*c) && rng.one_in(2) => c.to_string(),
        Some(Some(c)) => quoted(&c.to_string()),
    };
    glob.iter().map(part).collect()
}

fn written_expression(expression: &Expression) -> String {
    match expression {
        Expression::Any => ".".to_owned(),
        Expression::Char(c) if "!*\\".contains(*c) => format!(r"\{c}"),
        Expression::Char(c) => c.to_string(),
        Expression::Sequence(parts) => {
            let parts: String = parts.iter().map(written_expression).collect();
            format!("(?:{parts})")
        }
        Expression::Either(a, b) => {
            format!("(?:{}|{})", written_expression(a), written_expression(b))
        }
        Expression::Repeated(inner) => format!("(?:{})*", written_expression(inner)),
    }
}

fn written_condition(rng: &mut Rng, condition: &Condition) -> String {
    let (key, test, negated) = match condition {
        Condition::Not(conditions) => {
            let inside = written_conditions(rng, conditions);
            return format!("not {}({inside})", space(rng));
        }
        Condition::Tag(key, test, negated) => (key, test, *negated),
    };
    let key = match key.as_str() {
        key if key.contains(['!', ' ']) || rng.one_in(3) => quoted(key),
        key => key.to_owned(),
    };
    let (before, after) = (space(rng), space(rng));
    match test {
        Test::Expression(expression) => {
            let operator = if negated { "!~" } else { "=~" };
            let expression = quoted(&written_expression(expression));
            format!("{key}{before}{operator}{after}{expression}")
        }
        Test::Values(values) => {
            let operator = if negated { "!=" } else { "=" };
            let mut written: Vec<String> = values.iter().map(|g| written_glob(rng, g)).collect();
            if written.len() == 1 && rng.one_in(2) {
                return format!("{key}{before}{operator}{after}{}", written.remove(0));
            }
            let list = written.join(&format!("{before},{after}"));
            match rng.one_in(2) {
                true => format!("{key}{before}{operator}[{after}{list}]"),
                false if negated => format!("{key} not in{before}({after}{list}{after})"),
                false => format!("{key} in{before}({list}{after})"),
            }
        }
    }
}

fn written_conditions(rng: &mut Rng, conditions: &[Condition]) -> String {
    let written: Vec<String> = conditions
        .iter()
        .map(|c| written_condition(rng, c))
        .collect();
    written.join(&format!("{},{}", space(rng), space(rng)))
}

fn written(rng: &mut Rng, spec: &Spec) -> String {
    let mut text = spec
        .metric
        .as_ref()
        .map(|glob| written_glob(rng, glob))
        .unwrap_or_default();
    for set in &spec.sets {
        let set = written_conditions(rng, set);
        text += &format!("{}{{{set}{}}}", space(rng), space(rng));
    }
    text
}

// The naive evaluator.

fn glob_matches(glob: &[Option<Option<char>>], text: &[char]) -> bool {
    match (glob, text) {
        ([], _) => text.is_empty(),
        ([None, rest @ ..], _) => (0..=text.len()).any(|taken| glob_matches(rest, &text[taken..])),
        ([Some(None), rest @ ..], [_, after @ ..]) => glob_matches(rest, after),
        ([Some(Some(c)), rest @ ..], [first, after @ ..]) => {
            c == first && glob_matches(rest, after)
        }
        ([Some(_), ..], []) => false,
    }
}

/// The places where a match that begins at `from` may end.
fn ends(expression: &Expression, text: &[char], from: usize) -> Vec<usize> {
    let mut found = match expression {
        Expression::Any if from < text.len() => vec![from + 1],
        Expression::Char(c) if text.get(from) == Some(c) => vec![from + 1],
        Expression::Any | Expression::Char(_) => Vec::new(),
        Expression::Either(a, b) => [ends(a, text, from), ends(b, text, from)].concat(),
        Expression::Sequence(parts) => parts.iter().fold(vec![from], |places, part| {
            let mut next: Vec<usize> = places
                .into_iter()
                .flat_map(|place| ends(part, text, place))
                .collect();
            next.sort_unstable();
            next.dedup();
            next
        }),
        Expression::Repeated(inner) => {
            let mut places = vec![from];
            let mut at = 0;
            while at < places.len() {
                for end in ends(inner, text, places[at]) {
                    if !places.contains(&end) {
                        places.push(end);
                    }
                }
                at += 1;
            }
            places
        }
    };
    found.sort_unstable();
    found.dedup();
    found
}

fn holds(condition: &Condition, name: &SeriesName) -> bool {
    let (key, test, negated) = match condition {
        Condition::Not(conditions) => return !conditions.iter().all(|c| holds(c, name)),
        Condition::Tag(key, test, negated) => (key, test, *negated),
    };
    let own = name.tags().iter().find(|(own, _)| own == key);
    let value: Vec<char> = own
        .map(|(_, value)| value.chars().collect())
        .unwrap_or_default();
    let accepted = match test {
        Test::Values(globs) => globs.iter().any(|glob| glob_matches(glob, &value)),
        Test::Expression(expression) => ends(expression, &value, 0).contains(&value.len()),
    };
    accepted != negated
}

fn selects(spec: &Spec, name: &SeriesName) -> bool {
    let metric: Vec<char> = name.metric().chars().collect();
    let metric = spec
        .metric
        .as_ref()
        .is_none_or(|glob| glob_matches(glob, &metric));
    let in_set = |set: &Vec<Condition>| set.iter().all(|c| holds(c, name));
    metric && (spec.sets.is_empty() || spec.sets.iter().any(in_set))
}

#[test]
fn random_patterns_select_as_the_naive_evaluator_says() {
    let seed = 0x0f11_7e12;
    let mut rng = Rng::new(seed);
    let (mut selected, mut refused) = (0, 0);
    for round in 0..20_000 {
        let spec = spec(&mut rng);
        let text = written(&mut rng, &spec);
        let told = |error| format!("seed {seed:#x}, round {round}, {text}: {error}");
        let pattern = SeriesPattern::parse(&text)
            .unwrap_or_else(|error| panic!("{}", told(error.to_string())));
        let printed = pattern.to_string();
        let again = SeriesPattern::parse(&printed)
            .unwrap_or_else(|error| panic!("{}", told(error.to_string())));
        assert_eq!(
            again, pattern,
            "seed {seed:#x}, round {round}: {text} printed {printed}"
        );
        assert_eq!(again.to_string(), printed, "seed {seed:#x}, round {round}");
        for _ in 0..8 {
            let name = name(&mut rng);
            let expected = selects(&spec, &name);
            *(if expected {
                &mut selected
            } else {
                &mut refused
            }) += 1;
            assert_eq!(
                pattern.matches(&name),
                expected,
                "seed {seed:#x}, round {round}: {text} of {name}"
            );
            assert!(
                SeriesPattern::parse(&name.to_string())
                    .unwrap()
                    .matches(&name),
                "{name}"
            );
        }
    }
    // Both answers occur often enough to mean something.
    assert!(
        selected > 20_000 && refused > 20_000,
        "{selected} {refused}"
    );
}

/// Random characters of the grammar are parsed or refused at a place inside the text.
#[test]
fn random_text_is_parsed_or_refused() {
    let seed = 0x6a2b_a6e0;
    let mut rng = Rng::new(seed);
    let words = [
        "a", "not", "in", "not (", "(", ")", "{", "}", "[", "]", "=", "!", "~", ",", "*", "?", " ",
        "\"", "\\", "\"b\"", "ü", "=~\"c+\"", "{a=b}", "\n",
    ];
    let mut parsed = 0;
    for round in 0..50_000 {
        let text: String = (0..rng.index(12))
            .map(|_| words[rng.index(words.len())])
            .collect();
        match SeriesPattern::parse(&text) {
            Ok(pattern) => {
                parsed += 1;
                let printed = pattern.to_string();
                let again = SeriesPattern::parse(&printed).unwrap();
                assert_eq!(
                    again, pattern,
                    "seed {seed:#x}, round {round}: {text} {printed}"
                );
            }
            Err(error) => {
                let at = error.position().unwrap();
                assert!(
                    at <= text.chars().count(),
                    "seed {seed:#x}, round {round}: {text}"
                );
            }
        }
    }
    assert!(parsed > 1_000, "{parsed}");
}
