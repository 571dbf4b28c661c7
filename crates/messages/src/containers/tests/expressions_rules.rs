//! The rules of expressions, one by one: results, null, exact numbers, functions, and every error.

use crate::containers::document::Document;
use crate::containers::expression::{
    EXPRESSION_BYTES_MAX, EXPRESSION_LEVELS_MAX, EncodedFields, Expression, ExpressionError,
    FieldSource, MessageFields, ValueRef,
};
use crate::containers::value::FieldValue;
use tidalite_pager::{Error, Result};
use tidalite_testkit::rng::Rng;
use tidalite_time::Timestamp;

fn message() -> Document {
    let text = r#"{
        "i": 7, "n": null, "f": 2.5, "s": "Pump é", "yes": true, "no": false,
        "big": 18446744073709551615, "low": -9223372036854775808, "odd": 9007199254740993,
        "list": [1, 2, 3], "object": {"x": 1, "y": {"z": 2}}, "flat.x": 5, "flat": {"x": 6, "y": 8},
        "sensor.temperature.1": 21.5, "time": 9, "größe": 3, "a b": 4, "q\"`": 1
    }"#;
    Document::from_json(text).unwrap()
}

/// Evaluates an expression and returns the result as JSON; an error begins with `!`.
fn result(text: &str) -> String {
    let document = message();
    let message = MessageFields {
        document: &document,
        time: Some(Timestamp(1_700_000_000_000_000_000)),
        received: None,
    };
    let expression = Expression::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    match expression.evaluate(&message) {
        Ok(value) => {
            let mut document = Document::default();
            document.set("", value);
            let written = Document::new(vec![("v", document.remove("").unwrap())]);
            let written = written.unwrap().to_json().unwrap();
            written[5..written.len() - 1].to_owned()
        }
        Err(error) => format!("!{error}"),
    }
}

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(result(text), *expected, "{text}");
    }
}

#[test]
fn fields_are_found_by_their_names() {
    check(&[
        ("i", "7"),
        ("$i", "7"),
        ("`i`", "7"),
        ("missing", "null"),
        ("missing.too", "null"),
        ("object.x", "1"),
        ("object.y.z", "2"),
        ("object.y.w", "null"),
        ("object.y", "{\"z\":2}"),
        ("i.x", "null"),
        ("flat.x", "5"),
        ("flat.y", "8"),
        ("sensor.temperature.1", "21.5"),
        ("größe", "3"),
        ("`a b`", "4"),
        ("$\"a b\" + $'a b'", "8"),
        ("$\"q\\\"`\" + `q\"\\``", "2"),
        ("time", "1700000000000000000"),
        ("received", "null"),
        ("$time", "9"),
        ("list", "[1,2,3]"),
        ("in_stock", "null"),
        ("min", "null"),
        ("nulls == null", "true"),
    ]);
    let expression = Expression::parse("b + $\"a.b\" * b - c.d / exists(b) + time").unwrap();
    assert_eq!(expression.fields(), ["b", "a.b", "c.d"]);
    assert_eq!(
        expression.text(),
        "b + $\"a.b\" * b - c.d / exists(b) + time"
    );
    assert_eq!(
        expression.to_string(),
        "b + a.b * b - c.d / exists(b) + time"
    );
}

#[test]
fn null_stands_for_an_unknown_value() {
    for op in [
        "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "~", "!~",
    ] {
        for text in [
            format!("n {op} 1"),
            format!("'x' {op} n"),
            format!("n {op} missing"),
        ] {
            assert_eq!(result(&text), "null", "{text}");
        }
    }
    let values = [("yes", Some(true)), ("no", Some(false)), ("n", None)];
    let show = |value: Option<bool>| value.map_or("null".to_owned(), |value| value.to_string());
    for (a, x) in values {
        assert_eq!(result(&format!("!{a}")), show(x.map(|x| !x)));
        for (b, y) in values {
            let both = match (x, y) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let any = match (x, y) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            assert_eq!(result(&format!("{a} && {b}")), show(both), "{a} && {b}");
            assert_eq!(result(&format!("{a} || {b}")), show(any), "{a} || {b}");
        }
    }
    check(&[
        ("-n", "null"),
        ("n == null", "true"),
        ("null != n", "false"),
        ("i == null", "false"),
        ("null == null", "true"),
        ("null != 0", "true"),
        ("missing != null", "false"),
        ("n == missing", "null"),
        ("i in (1, 7)", "true"),
        ("i in (1, n, 7)", "true"),
        ("i in (1, n)", "null"),
        ("i in (1, 2)", "false"),
        ("n in (1, n)", "null"),
        ("n ? 1 : 2", "2"),
        ("yes ? 1 : 2", "1"),
        ("no ? 1 : n", "null"),
        ("no && ('a' + 1)", "false"),
        ("yes || 'a' + 1", "true"),
        ("yes ? 1 : 'a' + 1", "1"),
        ("if_null(1, 'a' + 1)", "1"),
    ]);
    let document = message();
    for (text, expected) in [("n", false), ("n > 1", false), ("yes", true), ("no", false)] {
        assert_eq!(
            Expression::parse(text).unwrap().matches(&document).unwrap(),
            expected
        );
    }
    let error = Expression::parse("1 + i")
        .unwrap()
        .matches(&document)
        .unwrap_err();
    assert!(
        matches!(error, ExpressionError::Kind { at: 3, .. }),
        "{error:?}"
    );
}

#[test]
fn numbers_are_exact() {
    check(&[
        ("big", "18446744073709551615"),
        ("low", "-9223372036854775808"),
        ("-9223372036854775808 == low", "true"),
        ("big - 1", "18446744073709551614"),
        ("big + 1 - 1", "18446744073709551615"),
        ("big * 1000 / 1000", "18446744073709551615"),
        ("odd == 9007199254740992.0", "false"),
        ("odd > 9007199254740992.0", "true"),
        ("9007199254740992 == 9007199254740992.0", "true"),
        ("odd < 9007199254740994.0", "true"),
        ("big < 18446744073709551616.0", "true"),
        ("big == 18446744073709551616.0", "false"),
        ("low == -9223372036854775808.0", "true"),
        ("low - 1 < -9223372036854775808.0", "true"),
        ("7 < 7.5 && 7.5 < 8 && -7 > -7.5 && -7.5 > -8", "true"),
        ("0 == -0.0", "true"),
        ("1 < 1e300 && -1 > -1e300 && 1e300 > big", "true"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("6 / 3", "2"),
        ("7 / 2", "3.5"),
        ("-7 / 2", "-3.5"),
        ("7 % 3", "1"),
        ("-7 % 3", "-1"),
        ("7 % -3", "1"),
        ("7.5 % 2", "1.5"),
        ("1 / 0", "null"),
        ("1 % 0", "null"),
        ("1 / 0.0", "null"),
        ("1.5 % 0", "null"),
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("2 - 3 - 4", "-5"),
        ("2 - (3 - 4)", "3"),
        ("--i", "7"),
        ("1e3", "1000.0"),
        ("1 + 1.0", "2.0"),
        ("1 == 1.0", "true"),
        ("1 in (2, 1.0)", "true"),
        (
            "big + 1",
            "!character 5 of the expression: found a result beyond 64 bits, expected an integer from -9223372036854775808 to 18446744073709551615",
        ),
        (
            "big * big * big",
            "!character 5 of the expression: found an integer * an integer with a result that is too large, expected integers within 128 bits, or floats up to 1.8e308",
        ),
        (
            "1e300 * 1e300",
            "!character 7 of the expression: found a float * a float with a result that is too large, expected integers within 128 bits, or floats up to 1.8e308",
        ),
    ]);
}

#[test]
fn kinds_are_told_apart() {
    check(&[
        ("1 == '1'", "false"),
        ("1 != '1'", "true"),
        ("true == 1", "false"),
        ("true == true && true != false", "true"),
        ("list == 1", "false"),
        ("'b' > 'a' && 'a' < 'aa' && 'Z' < 'a'", "true"),
        ("'1' in (1, '1')", "true"),
        (
            "list == list",
            "!character 6 of the expression: found a list == a list, expected numbers, texts or booleans",
        ),
        (
            "list in (1, object)",
            "!character 6 of the expression: found a list in an object, expected numbers, texts or booleans",
        ),
        (
            "'a' + 1",
            "!character 5 of the expression: found a text + an integer, expected two numbers",
        ),
        (
            "größe + s",
            "!character 7 of the expression: found an integer + a text, expected two numbers",
        ),
        (
            "1 < 'a'",
            "!character 3 of the expression: found an integer < a text, expected two numbers or two texts",
        ),
        (
            "true < false",
            "!character 6 of the expression: found a boolean < a boolean, expected two numbers or two texts",
        ),
        (
            "1 ~ 'a'",
            "!character 3 of the expression: found an integer ~ a text, expected two texts: text(x) makes a text of a number",
        ),
        (
            "!1",
            "!character 1 of the expression: found \"!\" of an integer, expected true or false",
        ),
        (
            "-'a'",
            "!character 1 of the expression: found \"-\" of a text, expected a number",
        ),
        (
            "1 && yes",
            "!character 3 of the expression: found an integer as operand of &&, expected true, false or null",
        ),
        (
            "no || 'a'",
            "!character 4 of the expression: found a text as operand of ||, expected true, false or null",
        ),
        (
            "1 ? 2 : 3",
            "!character 3 of the expression: found an integer before \"?\", expected true, false or null",
        ),
    ]);
}

#[test]
fn patterns_match_whole_texts() {
    check(&[
        ("s ~ 'Pump*'", "true"),
        ("s ~ 'pump*'", "false"),
        ("s ~ 'Pump ?'", "true"),
        ("s ~ 'Pump'", "false"),
        ("s !~ '*x*'", "true"),
        ("'' ~ ''", "true"),
        ("'' ~ '*'", "true"),
        ("'' ~ '?'", "false"),
        ("'abcabc' ~ '*abc'", "true"),
        ("'abcabd' ~ '*abc'", "false"),
        ("'abcabd' ~ 'a*b?'", "true"),
        ("'a*' ~ 'a\\\\*'", "true"),
        ("'ab' ~ 'a\\\\*'", "false"),
        ("'a\\\\' ~ 'a\\\\'", "true"),
        ("'a?c' ~ 'a\\\\?c' && 'abc' !~ 'a\\\\?c'", "true"),
        (
            "'mississippi' ~ '*iss*ip*' && 'mississippi' !~ '*iss*iss*iss*'",
            "true",
        ),
    ]);
    // The time does not grow exponentially with the number of stars.
    let text = format!("'{}' ~ '{}b'", "a".repeat(2_000), "*a".repeat(500));
    check(&[(&text, "false")]);
}

#[test]
fn functions_follow_their_rules() {
    let range = "expected a number whose result is an integer from -9223372036854775808 to 18446744073709551615";
    let text_of = |call: &str| format!("!character 1 of the expression: found {call}");
    check(&[
        ("exists(i)", "true"),
        ("exists(n)", "false"),
        ("exists(missing)", "false"),
        ("exists(list)", "true"),
        ("if_null(n, 3)", "3"),
        ("if_null(missing, n, 's')", "\"s\""),
        ("if_null(n, missing)", "null"),
        ("abs(-3)", "3"),
        ("abs(low)", "9223372036854775808"),
        ("abs(-2.5)", "2.5"),
        ("abs(n)", "null"),
        ("min(3, 1, 2)", "1"),
        ("max(3, 1.5, n)", "3"),
        ("max(1, 1.0)", "1"),
        ("min(1.0, 1)", "1.0"),
        ("max('a', 'b')", "\"b\""),
        ("min(n)", "null"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(2.4)", "2"),
        ("floor(-2.5)", "-3"),
        ("ceil(-2.5)", "-2"),
        ("ceil(2.1)", "3"),
        ("floor(big)", "18446744073709551615"),
        ("floor(1e300)", "1e+300"),
        ("floor(n)", "null"),
        ("lower('PuÉ')", "\"pué\""),
        ("upper('pué')", "\"PUÉ\""),
        ("length(s)", "6"),
        ("length(list)", "3"),
        ("length(object)", "2"),
        ("length(n)", "null"),
        ("starts_with(s, 'Pu')", "true"),
        ("starts_with(s, 'x')", "false"),
        ("ends_with(s, 'é')", "true"),
        ("contains(s, 'mp')", "true"),
        ("contains(s, n)", "null"),
        ("contains(n, 's')", "null"),
        ("int(2.9)", "2"),
        ("int(-2.9)", "-2"),
        ("int(' 18446744073709551615 ')", "18446744073709551615"),
        ("int('18446744073709551616')", "null"),
        ("int('1.5')", "null"),
        ("int(true)", "1"),
        ("int(n)", "null"),
        ("float(2)", "2.0"),
        ("float('1e2')", "100.0"),
        ("float('nan')", "null"),
        ("float('inf')", "null"),
        ("float(false)", "0.0"),
        ("text(big)", "\"18446744073709551615\""),
        ("text(2.50)", "\"2.5\""),
        ("text(true)", "\"true\""),
        ("text(n)", "null"),
        ("text(i) ~ '7*'", "true"),
        (
            "int(1e300)",
            &text_of(&format!("int of a float that is too large, {range}")),
        ),
        ("abs('a')", &text_of("abs of a text, expected a number")),
        (
            "round(list)",
            &text_of("round of a list, expected a number"),
        ),
        ("lower(1)", &text_of("lower of an integer, expected a text")),
        (
            "length(1)",
            &text_of("length of an integer, expected a text, a list or an object"),
        ),
        (
            "contains('a', 1)",
            &text_of("contains of a text and an integer, expected two texts"),
        ),
        (
            "min(1, 'a')",
            &text_of("min of an integer and a text, expected numbers, or texts"),
        ),
        (
            "max(yes)",
            &text_of("max of a boolean, expected numbers, or texts"),
        ),
        (
            "int(list)",
            &text_of("int of a list, expected a number, a boolean or a text"),
        ),
        (
            "float(object)",
            &text_of("float of an object, expected a number, a boolean or a text"),
        ),
        (
            "text(list)",
            &text_of("text of a list, expected a number, a boolean or a text"),
        ),
    ]);
}

#[test]
fn errors_of_the_text_name_the_place_and_suggest() {
    let deep = "(".repeat(EXPRESSION_LEVELS_MAX + 1);
    let minus = "-".repeat(EXPRESSION_LEVELS_MAX + 1);
    let sum = vec!["1"; EXPRESSION_LEVELS_MAX + 1].join("+");
    let long = " ".repeat(EXPRESSION_BYTES_MAX + 1);
    for (text, place, expected) in [
        ("", 1, "found the end, expected a field, a number"),
        ("1 +", 4, "found the end, expected a field, a number"),
        (
            "a b",
            3,
            "found the name \"b\", expected an operator or the end",
        ),
        ("(a", 3, "found the end, expected \")\" or an operator"),
        ("a)", 2, "found \")\", expected an operator or the end"),
        (
            "a = 1",
            3,
            "found \"=\", expected an operator: did you mean \"==\"?",
        ),
        ("a === 1", 3, "did you mean \"==\"?"),
        ("a <> 1", 3, "did you mean \"!=\"?"),
        ("a =~ 'x'", 3, "did you mean \"~\"?"),
        ("a & b", 3, "did you mean \"&&\"?"),
        ("a | b", 3, "did you mean \"||\"?"),
        ("a and b", 3, "did you mean \"&&\"?"),
        ("a OR b", 3, "did you mean \"||\"?"),
        ("a is null", 3, "did you mean \"==\"?"),
        (
            "a < b < c",
            7,
            "comparisons are joined, as in a < b && b < c",
        ),
        ("a == b in (c)", 8, "comparisons are joined"),
        ("lenght(a)", 1, "did you mean length?"),
        ("coalesce(a, b)", 1, "did you mean if_null?"),
        ("nonsense(a)", 1, "one of the functions exists, if_null"),
        (
            "abs()",
            1,
            "found abs with 0 arguments, expected 1 argument",
        ),
        ("abs(1, 2)", 1, "expected 1 argument"),
        ("contains(a)", 1, "expected 2 arguments"),
        ("if_null(a)", 1, "expected 2 to 1000 arguments"),
        ("min(1,)", 7, "found \")\", expected a field"),
        ("min(1 2)", 7, "expected \",\" or \")\""),
        ("a in 1", 6, "expected \"(\" and the values behind \"in\""),
        ("a in ()", 7, "expected a field"),
        ("in (1)", 1, "a field of this name is $in"),
        ("a ? b", 6, "expected \":\""),
        ("'abc", 1, "expected another ' at its end"),
        ("é + \"abc", 5, "expected another \" at its end"),
        ("'a\\x'", 3, "found an unknown escape"),
        ("'\\u{110000}'", 2, "found an unknown escape"),
        ("'\\u{}'", 2, "found an unknown escape"),
        ("'\\", 2, "found an unknown escape"),
        ("$", 1, "found a field without a name"),
        ("``", 1, "found a field without a name"),
        ("a # b", 3, "found the character '#'"),
        ("1.", 1, "found the number \"1.\""),
        ("1e", 1, "a number such as 12"),
        ("12km", 1, "a number such as 12"),
        ("1.2.3", 1, "a number such as 12"),
        (
            "18446744073709551616",
            1,
            "an integer up to 18446744073709551615",
        ),
        ("1e999", 1, "within the range of 64-bit"),
        ("a..b", 2, "found the character '.'"),
        (&deep, EXPRESSION_LEVELS_MAX + 1, "more than 100 levels"),
        (&minus, EXPRESSION_LEVELS_MAX + 1, "more than 100 levels"),
        (&sum, sum.len() + 1, "more than 100 levels"),
        (&long, 1, "found an expression of 65537 bytes"),
    ] {
        let error = Expression::parse(text).unwrap_err();
        let ExpressionError::Syntax { at, .. } = error else {
            panic!("{text}: {error:?}");
        };
        assert_eq!(at, place, "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
        let error = Error::from(error);
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("at character {place} ")),
            "{error}"
        );
    }
}

#[test]
fn printed_texts_have_the_fewest_parentheses() {
    for (text, printed) in [
        ("((a))", "a"),
        ("a&&b&&c", "a && b && c"),
        ("(a&&b)&&c", "(a && b) && c"),
        ("(a&&b)||c&&d", "a && b || c && d"),
        ("(a||b)&&c", "(a || b) && c"),
        ("(a-b)-c", "a - b - c"),
        ("a-(b-c)", "a - (b - c)"),
        ("(a+b)*c", "(a + b) * c"),
        ("-(a+b)", "-(a + b)"),
        ("!(a==b)", "!(a == b)"),
        ("(!a)==b", "!a == b"),
        ("(a==b)==c", "(a == b) == c"),
        ("(a?b:c)?d:(e?f:g)", "(a ? b : c) ? d : e ? f : g"),
        ("(a in(b,(c)))==d", "(a in (b, c)) == d"),
        ("$a.b + $'7' + `in`", "a.b + $\"7\" + $\"in\""),
        ("'\\'\"\\n\\u{1}'", "\"'\\\"\\n\\u{1}\""),
        ("1.50e0 + 007", "1.5 + 7"),
    ] {
        let expression = Expression::parse(text).unwrap();
        assert_eq!(expression.to_string(), printed);
        assert_eq!(Expression::parse(printed).unwrap(), expression);
    }
    assert_ne!(
        Expression::parse("a - b").unwrap(),
        Expression::parse("a + b").unwrap()
    );
    assert_ne!(
        Expression::parse("a").unwrap(),
        Expression::parse("b").unwrap()
    );
    // Long filters with one kind of operator count as one level.
    let many: Vec<String> = (0..1000).map(|at| format!("a == {at}")).collect();
    let many = Expression::parse(&many.join(" || ")).unwrap();
    let mut document = Document::default();
    document.set("a", FieldValue::Integer(999));
    assert!(many.matches(&document).unwrap());
}

#[test]
fn deep_expressions_and_random_texts_are_safe() {
    let levels = EXPRESSION_LEVELS_MAX;
    let inside = format!("{}1{}", "(".repeat(levels - 1), ")".repeat(levels - 1));
    assert_eq!(result(&inside), "1");
    assert_eq!(result(&vec!["1"; levels].join("+")), "100");
    let calls = levels - 2;
    let nested = format!("{}1{}", "abs(".repeat(calls), ")".repeat(calls));
    assert_eq!(result(&nested), "1");
    let pieces = [
        "a", "1", "1.5", "'x'", "(", ")", "&&", "||", "==", "<", "in", "?", ":", "!", "-", "+",
        "*", "$", "`", "\"", "\\", "min(", ",", "null", "time", "é", " ", ".",
    ];
    let mut parsed = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let text: String = (0..rng.index(12))
            .map(|_| pieces[rng.index(pieces.len())])
            .collect();
        if let Ok(expression) = Expression::parse(&text) {
            parsed += 1;
            let again = Expression::parse(&expression.to_string()).unwrap();
            assert_eq!(again, expression, "seed {seed}: {text}");
            let _ = expression.evaluate(&message());
        }
    }
    assert!(parsed > 100, "{parsed}");
}

#[test]
fn only_the_fields_that_are_needed_are_read() {
    struct Counting(std::cell::Cell<usize>);
    impl FieldSource for Counting {
        fn field(&self, _: usize, path: &str) -> Result<ValueRef<'_>> {
            self.0.set(self.0.get() + 1);
            Ok(match path {
                "no" => ValueRef::Bool(false),
                "yes" => ValueRef::Bool(true),
                _ => ValueRef::Integer(1),
            })
        }
    }
    for (text, reads) in [
        ("1 + 2", 0),
        ("a + a", 2),
        ("no && a > 0 && a > 1", 1),
        ("yes && a > 0", 2),
        ("yes || a > 0", 1),
        ("yes ? a : a + a", 2),
        ("no ? a : a + a", 3),
        ("a in (1, b, c)", 1),
        ("a in (2, b, c)", 2),
        ("if_null(null, a, b)", 1),
        ("null + a", 1),
    ] {
        let source = Counting(std::cell::Cell::new(0));
        Expression::parse(text).unwrap().evaluate(&source).unwrap();
        assert_eq!(source.0.get(), reads, "{text}");
    }
}

#[test]
fn errors_of_a_source_end_the_evaluation() {
    struct Broken;
    impl FieldSource for Broken {
        fn field(&self, _: usize, _: &str) -> Result<ValueRef<'_>> {
            Err(Error::Cancelled)
        }
    }
    let expression = Expression::parse("1 + a").unwrap();
    let error = expression.evaluate(&Broken).unwrap_err();
    assert!(matches!(error, ExpressionError::Source(_)));
    assert!(matches!(error.into(), Error::Cancelled));
    let constant = Expression::parse("time == null && 2 > 1").unwrap();
    assert!(constant.matches(&Broken).unwrap());
    let fields = EncodedFields {
        document: crate::containers::codec::EncodedDocument::new(&[0]).unwrap(),
        paths: &[],
        time: None,
        received: None,
    };
    let error = expression.evaluate(&fields).unwrap_err();
    assert!(
        error.to_string().contains("the paths of all fields"),
        "{error}"
    );
}
