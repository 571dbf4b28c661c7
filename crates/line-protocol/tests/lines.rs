//! Lines as InfluxDB documents and writes them.

use tidalite_line_protocol::{Line, Scanner, Value, lines};

/// A line as text without escapes: `measurement{key=value} field=value@time`.
fn shown(line: &str) -> String {
    let parsed = match Line::parse(line) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return "nothing".to_owned(),
        Err(error) => return error.to_string(),
    };
    let series = match parsed.series() {
        Ok(series) => series,
        Err(error) => return error.to_string(),
    };
    let tags: Vec<String> = series
        .tags
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let fields: Result<Vec<String>, _> = parsed
        .fields()
        .map(|field| field.map(|field| format!("{}={:?}", field.key(), field.value)))
        .collect();
    match fields {
        Ok(fields) => format!(
            "{}{{{}}} {} {:?}",
            series.measurement,
            tags.join(";"),
            fields.join(";"),
            parsed.time()
        ),
        Err(error) => error.to_string(),
    }
}

#[test]
fn lines_that_are_right() {
    for (line, expected) in [
        ("m v=1", "m{} v=Float(1.0) None"),
        ("m v=1 5\n", "m{} v=Float(1.0) Some(5)"),
        ("  m  v=1  -5  \r\n", "m{} v=Float(1.0) Some(-5)"),
        (
            "m,a=x,b=y v=1i,w=2u 7",
            "m{a=x;b=y} v=Integer(1);w=Unsigned(2) Some(7)",
        ),
        (
            "m a=t,b=TRUE,c=f,d=False",
            "m{} a=Boolean(true);b=Boolean(true);c=Boolean(false);d=Boolean(false) None",
        ),
        (
            "m a=-1.5e-3,b=.5,c=+2",
            "m{} a=Float(-0.0015);b=Float(0.5);c=Float(2.0) None",
        ),
        (
            "m a=-9223372036854775808i,b=18446744073709551615u",
            "m{} a=Integer(-9223372036854775808);b=Unsigned(18446744073709551615) None",
        ),
        ("m s=\"a b\" 5", "m{} s=String(\"a b\") Some(5)"),
        ("m s=\"a, b=c 7\"", "m{} s=String(\"a, b=c 7\") None"),
        ("m s=\"\",v=1", "m{} s=String(\"\");v=Float(1.0) None"),
        (
            r#"m s="say \"hi\" \\ \n" 5"#,
            r#"m{} s=String("say \"hi\" \\ \\n") Some(5)"#,
        ),
        (
            "m s=\"two\nlines\" 5\n",
            "m{} s=String(\"two\\nlines\") Some(5)",
        ),
        (
            r"my\ m\,x=y,k\=1=a\ b\,c,d=e\f v\ 1=1",
            r"my m,x=y{k=1=a b,c;d=e\f} v 1=Float(1.0) None",
        ),
        (
            "\u{6e29},\u{5ea6}=\u{6771} \u{5024}=1",
            "\u{6e29}{\u{5ea6}=\u{6771}} \u{5024}=Float(1.0) None",
        ),
        ("m,h=\"a\" v=1", "m{h=\"a\"} v=Float(1.0) None"),
        ("", "nothing"),
        ("   \r\n", "nothing"),
        ("# a comment", "nothing"),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn lines_that_are_wrong_have_a_column() {
    for (line, expected) in [
        (",a=b v=1", "column 1: the line has no measurement"),
        ("m", "column 2: the line has no fields after its tags"),
        ("m,a=b", "column 6: the line has no fields after its tags"),
        ("m,a v=1", "column 3: `a` is not a tag such as site=north"),
        (
            "m,a=b,c= v=1",
            "column 7: `c=` is not a tag such as site=north",
        ),
        ("m,=b v=1", "column 3: `=b` is not a tag such as site=north"),
        ("m, v=1", "column 3: `` is not a tag such as site=north"),
        ("m v", "column 3: `v` is not a field such as temp=21.5"),
        ("m v=1,w", "column 7: `w` is not a field such as temp=21.5"),
        ("m =1", "column 3: `=1` is not a field such as temp=21.5"),
        ("m v=1, 5", "column 7: `` is not a field such as temp=21.5"),
        (
            "m v=",
            "column 5: `` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=abc",
            "column 5: `abc` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=NaN",
            "column 5: `NaN` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=-inf",
            "column 5: `-inf` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=1.5i",
            "column 5: `1.5i` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=-1u",
            "column 5: `-1u` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        (
            "m v=9223372036854775808i",
            "column 5: `9223372036854775808i` has more than 64 bits",
        ),
        (
            "m v=1e999",
            "column 5: `1e999` is not a value: write 1.5, 7i, 7u, true or \"text\"",
        ),
        ("\u{6e29} s=\"a", "column 5: a string is not closed"),
        (
            "m s=\"a\"b,v=1",
            "column 8: a comma or a blank must follow a string",
        ),
        (
            "m v=1 x",
            "column 7: `x` is not a timestamp, which is an integer",
        ),
        (
            "m v=1 1.5",
            "column 7: `1.5` is not a timestamp, which is an integer",
        ),
        (
            "m v=1 5 6",
            "column 7: `5` is not a timestamp, which is an integer",
        ),
        (
            "m v=1 99999999999999999999",
            "column 7: `99999999999999999999` is not a timestamp, which is an integer",
        ),
    ] {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn a_string_may_contain_line_feeds() {
    let text = "# \"a\nm,h=\"x v=\"1\n2\",w=3 5\n\nm,h=b s=\"\\\"\n\\\\\"\nm v=1";
    let expected = [
        "# \"a\n",
        "m,h=\"x v=\"1\n2\",w=3 5\n",
        "\n",
        "m,h=b s=\"\\\"\n\\\\\"\n",
        "m v=1",
    ];
    let found: Vec<&str> = lines(text.as_bytes())
        .map(|(at, line)| {
            assert_eq!(&text.as_bytes()[at..at + line.len()], line);
            std::str::from_utf8(line).unwrap()
        })
        .collect();
    assert_eq!(found, expected);
    let mut scanner = Scanner::default();
    let ends = text.bytes().filter(|byte| scanner.next(*byte)).count();
    assert_eq!((ends, scanner.is_in_string()), (4, false));
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn text(&mut self, alphabet: &[char], most: u64) -> String {
        let length = self.below(most + 1);
        (0..length)
            .map(|_| alphabet[self.below(alphabet.len() as u64) as usize])
            .collect()
    }
}

fn escaped(text: &str, characters: &[char]) -> String {
    let mut written = String::new();
    for c in text.chars() {
        if characters.contains(&c) {
            written.push('\\');
        }
        written.push(c);
    }
    written
}

/// Random points are written with escapes, several to a text, and read back.
#[test]
fn what_is_written_is_read() {
    let seed = 0x51ed_270b_d1a7_93c5;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let letters: Vec<char> = "ab,= \"#\u{e9}".chars().collect();
    let in_strings: Vec<char> = "ab,= \"\\\n#1".chars().collect();
    for round in 0..3000 {
        let name = |random: &mut Random| format!("n{}n", random.text(&letters, 5));
        let (mut text, mut expected) = (String::new(), Vec::new());
        for _ in 0..=random.below(3) {
            let measurement = name(&mut random);
            let mut line = escaped(&measurement, &[',', ' ']);
            let mut tags = Vec::new();
            for _ in 0..random.below(3) {
                let (key, value) = (name(&mut random), name(&mut random));
                line += &format!(
                    ",{}={}",
                    escaped(&key, &[',', '=', ' ']),
                    escaped(&value, &[',', '=', ' '])
                );
                tags.push((key, value));
            }
            line.push(' ');
            let mut fields = Vec::new();
            for place in 0..=random.below(3) {
                let key = name(&mut random);
                let (written, value) = match random.below(4) {
                    0 => ("-7i".to_owned(), Value::Integer(-7)),
                    1 => ("0.25".to_owned(), Value::Float(0.25)),
                    2 => ("T".to_owned(), Value::Boolean(true)),
                    _ => {
                        let string = random.text(&in_strings, 8);
                        (
                            format!("\"{}\"", escaped(&string, &['"', '\\'])),
                            Value::String(string.into()),
                        )
                    }
                };
                let comma = if place > 0 { "," } else { "" };
                line += &format!("{comma}{}={written}", escaped(&key, &[',', '=', ' ']));
                fields.push((key, value));
            }
            let time =
                (random.below(2) == 0).then(|| i64::try_from(random.below(1000)).unwrap() - 500);
            if let Some(time) = time {
                line += &format!(" {time}");
            }
            text += &line;
            text.push('\n');
            expected.push((measurement, tags, fields, time));
        }
        let mut found = Vec::new();
        for (_, line) in lines(text.as_bytes()) {
            let line = std::str::from_utf8(line).unwrap();
            let line = Line::parse(line).unwrap().unwrap();
            let series = line.series().unwrap();
            let tags = series
                .tags
                .iter()
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect();
            let fields = line.fields().map(|field| {
                let field = field.unwrap();
                (field.key().into_owned(), field.value)
            });
            let fields: Vec<(String, Value<'_>)> = fields.collect();
            found.push((series.measurement.into_owned(), tags, fields, line.time()));
        }
        assert_eq!(found, expected, "round {round}: {text}");
    }
}

#[test]
fn random_bytes_never_panic() {
    let seed = 0x2545_f491_4f6c_dd1d;
    println!("seed {seed:#x}");
    let mut random = Random(seed);
    let alphabet: Vec<char> = "m,=\"\\ 1i.-e#\nt\u{e9}\u{6e29}".chars().collect();
    let mut good = 0;
    for _ in 0..20_000 {
        let text = random.text(&alphabet, 30);
        let length: usize = lines(text.as_bytes()).map(|(_, line)| line.len()).sum();
        assert_eq!(length, text.len());
        for (_, line) in lines(text.as_bytes()) {
            let line = std::str::from_utf8(line).unwrap();
            if let Ok(Some(line)) = Line::parse(line) {
                let _ = line.series();
                good += line.fields().filter(Result::is_ok).count();
            }
        }
    }
    assert!(good > 0, "no line was ever right");
}
