//! Random expressions, compared with an interpreter that follows the documented rules literally.

use super::documents::{Names, same};
use crate::containers::codec::EncodedDocument;
use crate::containers::document::Document;
use crate::containers::expression::{EncodedFields, Expression, MessageFields};
use crate::containers::fields::EncodedPath;
use crate::containers::value::FieldValue;
use std::cmp::Ordering;
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

/// An expression as this test builds it.
#[derive(Clone, Debug)]
enum Tree {
    Literal(FieldValue),
    Field(&'static str),
    Time,
    Received,
    Unary(&'static str, Box<Tree>),
    Binary(&'static str, Box<Tree>, Box<Tree>),
    In(Box<Tree>, Vec<Tree>),
    If(Box<Tree>, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

const FIELDS: [(&str, &str); 9] = [
    ("a", "a"),
    ("b", "$b"),
    ("battery.level", "battery.level"),
    ("t.x", "`t.x`"),
    ("odd name", "$\"odd name\""),
    ("time", "$time"),
    ("7", "$7"),
    ("missing", "missing"),
    ("list", "list"),
];

const BINARY: [&str; 15] = [
    "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "~", "!~",
];

const CALLS: [(&str, usize); 17] = [
    ("exists", 1),
    ("if_null", 2),
    ("abs", 1),
    ("min", 3),
    ("max", 2),
    ("round", 1),
    ("floor", 1),
    ("ceil", 1),
    ("lower", 1),
    ("upper", 1),
    ("length", 1),
    ("starts_with", 2),
    ("ends_with", 2),
    ("contains", 2),
    ("int", 1),
    ("float", 1),
    ("text", 1),
];

fn random_literal(rng: &mut Rng) -> FieldValue {
    match rng.below(7) {
        0 => FieldValue::Null,
        1 => FieldValue::Bool(rng.one_in(2)),
        2 => FieldValue::Integer(rng.below(4).into()),
        3 => FieldValue::Integer([u64::MAX.into(), 1 << 63, (1 << 53) + 1, 12][rng.index(4)]),
        4 => FieldValue::Float([0.5, 2.0, 1e300, 9_007_199_254_740_992.0, 1e-7][rng.index(5)]),
        _ => {
            let texts = [
                "",
                "abc",
                "*b*",
                "a?c",
                "é\n\"'\\`",
                "12",
                "1.5",
                "\\*",
                "\u{7f}",
            ];
            FieldValue::Text(texts[rng.index(texts.len())].into())
        }
    }
}

fn random_tree(rng: &mut Rng, levels: usize) -> Tree {
    let below = |rng: &mut Rng| Box::new(random_tree(rng, levels.saturating_sub(1)));
    match rng.below(if levels == 0 { 4 } else { 12 }) {
        0 | 1 => Tree::Literal(random_literal(rng)),
        2 => Tree::Field(FIELDS[rng.index(FIELDS.len())].0),
        3 if rng.one_in(2) => Tree::Time,
        3 => Tree::Received,
        4 => Tree::Unary(["!", "-"][rng.index(2)], below(rng)),
        5..=8 => {
            let op = BINARY[rng.index(BINARY.len())];
            Tree::Binary(op, below(rng), below(rng))
        }
        9 => {
            let value = below(rng);
            let items = (0..=rng.index(3)).map(|_| *below(rng)).collect();
            Tree::In(value, items)
        }
        10 => Tree::If(below(rng), below(rng), below(rng)),
        _ => {
            let (name, count) = CALLS[rng.index(CALLS.len())];
            Tree::Call(name, (0..count).map(|_| *below(rng)).collect())
        }
    }
}

/// Writes a tree with parentheses around every operand, and with spaces at random.
fn write(tree: &Tree, rng: &mut Rng, out: &mut String) {
    let list = |trees: &[Tree], rng: &mut Rng, out: &mut String| {
        for (at, tree) in trees.iter().enumerate() {
            out.push_str(if at > 0 { "," } else { "(" });
            write(tree, rng, out);
        }
        out.push(')');
    };
    let operand = |tree: &Tree, rng: &mut Rng, out: &mut String| {
        out.push('(');
        write(tree, rng, out);
        out.push(')');
    };
    if rng.one_in(4) {
        out.push_str(" \n");
    }
    match tree {
        Tree::Literal(FieldValue::Text(text)) => {
            let quote = ['"', '\''][rng.index(2)];
            out.push(quote);
            for letter in text.chars() {
                match letter {
                    '\\' => out.push_str("\\\\"),
                    letter if letter == quote => out.extend(['\\', letter]),
                    '\n' if rng.one_in(2) => out.push_str("\\n"),
                    'é' if rng.one_in(2) => out.push_str("\\u{e9}"),
                    letter => out.push(letter),
                }
            }
            out.push(quote);
        }
        Tree::Literal(FieldValue::Integer(number)) => out.push_str(&number.to_string()),
        Tree::Literal(FieldValue::Float(number)) => out.push_str(&format!("{number:?}")),
        Tree::Literal(FieldValue::Bool(value)) => out.push_str(&value.to_string()),
        Tree::Literal(_) => out.push_str("null"),
        Tree::Field(name) => {
            let (_, text) = FIELDS.iter().find(|(known, _)| known == name).unwrap();
            out.push_str(text);
        }
        Tree::Time => out.push_str("time"),
        Tree::Received => out.push_str("received"),
        Tree::Unary(op, inner) => {
            out.push_str(op);
            operand(inner, rng, out);
        }
        Tree::Binary(op, left, right) => {
            operand(left, rng, out);
            out.push_str(op);
            operand(right, rng, out);
        }
        Tree::In(value, items) => {
            operand(value, rng, out);
            out.push_str("in");
            list(items, rng, out);
        }
        Tree::If(condition, yes, no) => {
            operand(condition, rng, out);
            out.push('?');
            operand(yes, rng, out);
            out.push(':');
            operand(no, rng, out);
        }
        Tree::Call(name, arguments) => {
            out.push_str(name);
            list(arguments, rng, out);
        }
    }
}

use FieldValue::{Bool, Float, Integer, List, Null, Object, Text};

/// A result, or an error.
type Outcome = Result<FieldValue, ()>;

/// The order of two values that can be ordered.
fn order(a: &FieldValue, b: &FieldValue) -> Option<Ordering> {
    match (a, b) {
        (Integer(a), Integer(b)) => Some(a.cmp(b)),
        (Float(a), Float(b)) => a.partial_cmp(b),
        (Integer(_), Float(b)) if b.abs() > 1e38 => 0.0.partial_cmp(b),
        (Integer(a), Float(b)) if b.floor() == *b => Some(a.cmp(&(*b as i128))),
        // The float is between two integers.
        (Integer(a), Float(b)) if *a <= b.floor() as i128 => Some(Ordering::Less),
        (Integer(_), Float(_)) => Some(Ordering::Greater),
        (Float(_), Integer(_)) => order(b, a).map(Ordering::reverse),
        (Text(a), Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn equal(a: &FieldValue, b: &FieldValue) -> Result<Option<bool>, ()> {
    match (a, b) {
        (Null, _) | (_, Null) => Ok(None),
        (List(_) | Object(_), List(_) | Object(_)) => Err(()),
        (Bool(a), Bool(b)) => Ok(Some(a == b)),
        _ => Ok(Some(order(a, b) == Some(Ordering::Equal))),
    }
}

fn truth(value: Option<bool>) -> FieldValue {
    value.map_or(Null, Bool)
}

fn number(value: &FieldValue) -> Result<f64, ()> {
    match value {
        Integer(number) => Ok(*number as f64),
        Float(number) => Ok(*number),
        _ => Err(()),
    }
}

fn finite(number: f64) -> Outcome {
    if number.is_finite() {
        Ok(Float(number))
    } else {
        Err(())
    }
}

fn like(text: &[char], pattern: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['*', rest @ ..] => (0..=text.len()).any(|at| like(&text[at..], rest)),
        ['?', rest @ ..] => !text.is_empty() && like(&text[1..], rest),
        ['\\', letter, rest @ ..] | [letter, rest @ ..] => {
            text.first() == Some(letter) && like(&text[1..], rest)
        }
    }
}

fn binary(op: &str, a: &FieldValue, b: &FieldValue) -> Outcome {
    if *a == Null || *b == Null {
        return Ok(Null);
    }
    let by_order = |is: fn(Ordering) -> bool| order(a, b).map(|order| Bool(is(order))).ok_or(());
    match op {
        "==" => equal(a, b).map(truth),
        "!=" => equal(a, b).map(|is| truth(is.map(|is| !is))),
        "<" => by_order(Ordering::is_lt),
        "<=" => by_order(Ordering::is_le),
        ">" => by_order(Ordering::is_gt),
        ">=" => by_order(Ordering::is_ge),
        "~" | "!~" => match (a, b) {
            (Text(a), Text(b)) => {
                let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
                Ok(Bool(like(&a, &b) == (op == "~")))
            }
            _ => Err(()),
        },
        _ => {
            let (x, y) = (number(a)?, number(b)?);
            if let (Integer(a), Integer(b)) = (a, b) {
                let exact = match op {
                    "+" => a.checked_add(*b),
                    "-" => a.checked_sub(*b),
                    "*" => a.checked_mul(*b),
                    _ if *b == 0 => return Ok(Null),
                    "/" if a.wrapping_rem(*b) != 0 => return finite(x / y),
                    "/" => a.checked_div(*b),
                    _ => Some(a.wrapping_rem(*b)),
                };
                return exact.map(Integer).ok_or(());
            }
            match op {
                "+" => finite(x + y),
                "-" => finite(x - y),
                "*" => finite(x * y),
                _ if y == 0.0 => Ok(Null),
                "/" => finite(x / y),
                _ => finite(x % y),
            }
        }
    }
}

fn call(name: &str, values: &[FieldValue]) -> Outcome {
    let first = &values[0];
    match name {
        "exists" => return Ok(Bool(*first != Null)),
        "if_null" => return Ok(values.iter().find(|v| **v != Null).cloned().unwrap_or(Null)),
        "min" | "max" => {
            let there: Vec<_> = values.iter().filter(|v| **v != Null).collect();
            let Some(mut best) = there.first().copied() else {
                return Ok(Null);
            };
            order(best, best).ok_or(())?;
            for value in there {
                let order = order(value, best).ok_or(())?;
                if order
                    == if name == "min" {
                        Ordering::Less
                    } else {
                        Ordering::Greater
                    }
                {
                    best = value;
                }
            }
            return Ok(best.clone());
        }
        _ => {}
    }
    if values.contains(&Null) {
        return Ok(Null);
    }
    let range = -9_223_372_036_854_775_808.0..18_446_744_073_709_551_616.0;
    let round = |round: fn(f64) -> f64| match first {
        Float(number) if range.contains(&round(*number)) => Ok(Integer(round(*number) as i128)),
        Float(number) => Ok(Float(round(*number))),
        Integer(_) => Ok(first.clone()),
        _ => Err(()),
    };
    let two = |is: fn(&str, &str) -> bool| match values {
        [Text(a), Text(b)] => Ok(Bool(is(a, b))),
        _ => Err(()),
    };
    match (name, first) {
        ("abs", Integer(number)) => number.checked_abs().map(Integer).ok_or(()),
        ("abs", Float(number)) => Ok(Float(number.abs())),
        ("round", _) => round(f64::round),
        ("floor", _) => round(f64::floor),
        ("ceil", _) => round(f64::ceil),
        ("lower", Text(text)) => Ok(Text(text.to_lowercase())),
        ("upper", Text(text)) => Ok(Text(text.to_uppercase())),
        ("length", Text(text)) => Ok(Integer(text.chars().count() as i128)),
        ("length", List(items)) => Ok(Integer(items.len() as i128)),
        ("length", Object(fields)) => Ok(Integer(fields.len() as i128)),
        ("starts_with", _) => two(|a, b| a.starts_with(b)),
        ("ends_with", _) => two(|a, b| a.ends_with(b)),
        ("contains", _) => two(|a, b| a.contains(b)),
        ("int", Integer(_)) | ("float", Float(_)) | ("text", Text(_)) => Ok(first.clone()),
        ("int", Float(number)) if range.contains(&number.trunc()) => Ok(Integer(*number as i128)),
        ("int", Bool(value)) => Ok(Integer((*value).into())),
        ("int", Text(text)) => Ok(match text.as_str() {
            "12" => Integer(12),
            _ => Null,
        }),
        ("float", Integer(number)) => Ok(Float(*number as f64)),
        ("float", Bool(value)) => Ok(Float(f64::from(*value))),
        ("float", Text(text)) => Ok(match text.as_str() {
            "12" => Float(12.0),
            "1.5" => Float(1.5),
            _ => Null,
        }),
        ("text", Integer(number)) => Ok(Text(number.to_string())),
        ("text", Float(number)) => Ok(Text(format!("{number:?}"))),
        ("text", Bool(value)) => Ok(Text(value.to_string())),
        _ => Err(()),
    }
}

fn evaluate(tree: &Tree, message: &MessageFields<'_>) -> Outcome {
    let value = |tree: &Tree| evaluate(tree, message);
    let time = |time: Option<Timestamp>| time.map_or(Null, |time| Integer(time.0.into()));
    let is_null = |tree: &Tree| matches!(tree, Tree::Literal(Null));
    match tree {
        Tree::Literal(value) => Ok(value.clone()),
        Tree::Field(name) => Ok(message.document.find(name).cloned().unwrap_or(Null)),
        Tree::Time => Ok(time(message.time)),
        Tree::Received => Ok(time(message.received)),
        Tree::Unary("!", inner) => match value(inner)? {
            Null => Ok(Null),
            Bool(value) => Ok(Bool(!value)),
            _ => Err(()),
        },
        Tree::Unary(_, inner) => match value(inner)? {
            Null => Ok(Null),
            Integer(number) => number.checked_neg().map(Integer).ok_or(()),
            Float(number) => Ok(Float(-number)),
            _ => Err(()),
        },
        Tree::Binary(op @ ("&&" | "||"), left, right) => {
            let decides = Bool(*op == "||");
            let left = value(left)?;
            if !matches!(left, Null | Bool(_)) {
                return Err(());
            }
            if left == decides {
                return Ok(decides);
            }
            match value(right)? {
                right if right == decides => Ok(right),
                Null => Ok(Null),
                Bool(right) => Ok(if left == Null { Null } else { Bool(right) }),
                _ => Err(()),
            }
        }
        Tree::Binary("==", left, right) if is_null(left) || is_null(right) => {
            Ok(Bool(value(left)? == Null && value(right)? == Null))
        }
        Tree::Binary("!=", left, right) if is_null(left) || is_null(right) => {
            Ok(Bool(value(left)? != Null || value(right)? != Null))
        }
        Tree::Binary(op, left, right) => binary(op, &value(left)?, &value(right)?),
        Tree::In(inner, items) => {
            let inner = value(inner)?;
            if inner == Null {
                return Ok(Null);
            }
            let mut result = Some(false);
            for item in items {
                match equal(&inner, &value(item)?)? {
                    Some(true) => return Ok(Bool(true)),
                    Some(false) => {}
                    None => result = None,
                }
            }
            Ok(truth(result))
        }
        Tree::If(condition, yes, no) => match value(condition)? {
            Bool(true) => value(yes),
            Bool(false) | Null => value(no),
            _ => Err(()),
        },
        Tree::Call("if_null", arguments) => {
            for argument in arguments {
                let value = value(argument)?;
                if value != Null {
                    return Ok(value);
                }
            }
            Ok(Null)
        }
        Tree::Call(name, arguments) => {
            let values: Vec<_> = arguments.iter().map(value).collect::<Result<_, _>>()?;
            call(name, &values)
        }
    }
}

fn random_message(rng: &mut Rng) -> Document {
    let mut document = Document::default();
    for name in ["a", "b", "odd name", "time", "7"] {
        if !rng.one_in(5) {
            document.set(name, random_literal(rng));
        }
    }
    let battery = Object(vec![("level".into(), random_literal(rng))]);
    document.set("battery", battery);
    if rng.one_in(3) {
        document.set("battery.level", random_literal(rng));
    }
    document.set("t", Object(vec![("x".into(), random_literal(rng))]));
    document.set("list", List(vec![Null, Integer(1)]));
    document
}

#[test]
fn random_expressions_print_parse_and_evaluate_as_the_rules_say() {
    let mut counts = [0; 3];
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let levels = rng.index(5);
        let tree = random_tree(&mut rng, levels);
        let mut text = String::new();
        write(&tree, &mut rng, &mut text);
        let expression = Expression::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = expression.to_string();
        let again = Expression::parse(&printed)
            .unwrap_or_else(|error| panic!("seed {seed}: {printed}: {error}"));
        assert_eq!(again, expression, "seed {seed}: {text}");
        assert_eq!(again.to_string(), printed, "seed {seed}: {text}");
        assert!(printed.len() <= text.len() + 4 * 40, "{printed}");

        let document = random_message(&mut rng);
        let message = MessageFields {
            document: &document,
            time: rng.one_in(2).then_some(Timestamp(1 << 60)),
            received: Some(Timestamp(-1)),
        };
        let mut names = Names::default();
        let bytes = names.encode(&document).unwrap();
        let number = |name: &str| names.number(name);
        let paths = EncodedPath::all(again.fields(), &number);
        let encoded = EncodedFields {
            document: EncodedDocument::new(&bytes).unwrap(),
            paths: &paths,
            time: message.time,
            received: message.received,
        };
        let expected = evaluate(&tree, &message).and_then(|value| match value {
            Integer(number) if !(-(1 << 63)..1 << 64).contains(&number) => Err(()),
            value => Ok(value),
        });
        let is_match = match &expected {
            Ok(Bool(value)) => Some(*value),
            Ok(Null) => Some(false),
            _ => None,
        };
        for found in [expression.evaluate(&message), again.evaluate(&encoded)] {
            let is_same = match (&found, &expected) {
                (Ok(found), Ok(expected)) => same(found, expected),
                (Err(_), Err(())) => true,
                _ => false,
            };
            assert!(
                is_same,
                "seed {seed}: {printed} of {} gives {found:?}, not {expected:?}",
                document.to_json().unwrap()
            );
        }
        assert_eq!(
            expression.matches(&message).ok(),
            is_match,
            "seed {seed}: {printed}"
        );
        assert_eq!(
            again.matches(&encoded).ok(),
            is_match,
            "seed {seed}: {printed}"
        );
        counts[match expected {
            Err(()) => 0,
            Ok(Null) => 1,
            Ok(_) => 2,
        }] += 1;
    }
    assert!(counts.iter().all(|count| *count > 1_000), "{counts:?}");
}
