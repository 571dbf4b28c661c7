//! Tests of inputs as rows, in blocks of any size.

use super::*;
use crate::import::batch::{Batch, Combinations};
use crate::import::blocks::BLOCK_BYTES;
use crate::import::record::ROW_BYTES_MAX;

const WEATHER: &str = "origin,time_hour,temp\n\
    EWR,2013-01-01T06:00:00Z,39.02\n\
    EWR,2013-01-01T07:00:00Z,NA\n\
    JFK,yesterday,1\n\
    JFK,2013-01-01T07:00:00Z,warm\n\
    JFK,2013-01-01T08:00:00Z\n\
    ,2013-01-01T09:00:00Z,-1\n";

fn wishes() -> Wishes {
    Wishes {
        header: true,
        tags: vec!["origin".into()],
        ..Wishes::default()
    }
}

fn read_all(text: &str, wishes: &Wishes) -> Outcome<(Vec<String>, Vec<BadRow>)> {
    let whole = read_in_blocks(text, wishes, BLOCK_BYTES)?;
    // The rows and line numbers must not depend on where the blocks end.
    for size in [1, 40, 150] {
        assert_eq!(
            read_in_blocks(text, wishes, size)?,
            whole,
            "blocks of {size}"
        );
    }
    Ok(whole)
}

fn read_in_blocks(text: &str, wishes: &Wishes, size: usize) -> Outcome<(Vec<String>, Vec<BadRow>)> {
    let rows = Rows::open(
        text.as_bytes(),
        "a.csv",
        &Format::default(),
        wishes,
        Nulls::default(),
    )?;
    let mut blocks = rows.blocks.of_bytes(size);
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let mut known = Combinations::default();
    let (mut batch, mut tags) = (Batch::default(), Vec::new());
    while let Some(block) = blocks.next().unwrap() {
        rows.reading.read(block, &mut known, &mut batch)?;
        tags.append(&mut batch.combinations);
        let width = rows.reading.layout.values.len();
        for (row, time) in batch.times.iter().enumerate() {
            let tags = &tags[batch.tags[row] as usize];
            let values = &batch.values[row * width..(row + 1) * width];
            good.push(format!("{time} {tags:?} {values:?}"));
        }
        bad.extend(batch.bad.drain(..).map(|(_, bad)| bad));
    }
    Ok((good, bad))
}

#[test]
fn rows_and_complaints_with_line_numbers() {
    let wishes = Wishes {
        values: vec!["temp".into()],
        ..wishes()
    };
    let (good, bad) = read_all(WEATHER, &wishes).unwrap();
    assert_eq!(
        good,
        [
            "1357020000000000000 [\"EWR\"] [Some(Float(39.02))]",
            "1357023600000000000 [\"EWR\"] [None]",
            "1357030800000000000 [\"\"] [Some(Float(-1.0))]",
        ]
    );
    let lines: Vec<u64> = bad.iter().map(|row| row.line).collect();
    assert_eq!(lines, [4, 5, 6]);
    assert!(bad[0].why.contains("`yesterday`"), "{}", bad[0].why);
    assert_eq!(bad[1].why, "`warm` in column `temp` is not a number");
    assert_eq!(bad[2].why, "2 fields instead of 3");
}

#[test]
fn json_lines_are_rows_like_any() {
    let text = "{\"time\":\"2013-01-01T06:00:00Z\",\"origin\":\"EWR\",\"temp\":39.02}\n\
                {\"origin\":\"EWR\",\"time\":\"2013-01-01T07:00:00Z\",\"temp\":null,\"gust\":3}\n\
                oops\n{\"time\":\"2013-01-01T08:00:00Z\",\"gust\":1e1}\n";
    let (good, bad) = read_all(text, &wishes()).unwrap();
    assert_eq!(
        good,
        [
            "1357020000000000000 [\"EWR\"] [Some(Float(39.02)), None]",
            "1357023600000000000 [\"EWR\"] [None, Some(Float(3.0))]",
            "1357027200000000000 [\"\"] [None, Some(Float(10.0))]",
        ]
    );
    assert_eq!((bad.len(), bad[0].line), (1, 3));
    assert!(read_all("{oops\n", &wishes()).is_err());
}

#[test]
fn semicolons_a_byte_order_mark_and_windows_line_ends() {
    let text = "\u{feff}time;a;b\r\n2014-06-01;1;2\r\n2014-06-02;3;4\r\n";
    let (good, bad) = read_all(
        text,
        &Wishes {
            header: true,
            ..Wishes::default()
        },
    )
    .unwrap();
    assert_eq!(good.len(), 2);
    assert!(
        good[0].ends_with("[Some(Float(1.0)), Some(Float(2.0))]"),
        "{}",
        good[0]
    );
    assert!(bad.is_empty());
}

#[test]
fn without_a_header_columns_have_numbers() {
    let text = "1401581400,1.5\n1401581460,2.5\n";
    let with_header = read_all(
        text,
        &Wishes {
            header: true,
            ..Wishes::default()
        },
    );
    let failure = with_header.unwrap_err();
    assert!(failure.hint.unwrap().contains("--no-header"));
    let wishes = Wishes {
        time: Some("1".into()),
        ..Wishes::default()
    };
    let (good, _) = read_all(text, &wishes).unwrap();
    assert_eq!(good[1], "1401581460000000000 [] [Some(Float(2.5))]");
}

#[test]
fn malformed_csv_is_refused() {
    for (text, says) in [
        ("", "is empty"),
        ("\0\u{1}\u{2}", "binary"),
        ("a,b\n", "no rows"),
        ("hello\nworld\n", "no column contains times"),
    ] {
        let failure = read_all(text, &wishes()).unwrap_err();
        assert!(
            failure.message.contains(says),
            "{text:?}: {}",
            failure.message
        );
        assert_eq!(failure.exit, Exit::BadInput);
    }
}

#[test]
fn a_quote_that_stays_open_does_not_fill_the_memory() {
    let wishes = Wishes {
        header: true,
        ..Wishes::default()
    };
    let endless = "time,a\n2014-06-01,1\n\""
        .as_bytes()
        .chain(std::io::repeat(b'x'));
    let Err(failure) = Rows::open(endless, "x", &Format::default(), &wishes, Nulls::default())
    else {
        panic!("read to the end of an endless row");
    };
    assert!(failure.message.contains("a quote"), "{}", failure.message);
    assert_eq!(failure.exit, Exit::BadInput);
    // The reader buffers 128 KiB, so a row whose length is below the limit by twice this much can always be read.
    let note = "x".repeat(usize::try_from(ROW_BYTES_MAX).unwrap() - 2 * 128 * 1024);
    let long = format!("time,a,note\n2014-06-01,1,{note}\n2014-06-02,2,y\n");
    let read = read_in_blocks(&long, &wishes, BLOCK_BYTES).unwrap();
    assert_eq!(read.0.len(), 2);
}

/// The inputs have line feeds alone or Windows line ends, and empty lines between the rows.
#[test]
fn line_numbers_match_the_input() {
    let wishes = Wishes {
        header: true,
        ..Wishes::default()
    };
    for (end, quoted) in [("\n", "\n"), ("\r\n", "\r\n")] {
        let text = end.repeat(2)
            + &["time,a,n", "2014-06-01,1,x", "", "2014-06-02,y,x"].join(end)
            + &format!(
                "{end}2014-06-03,2,\"a{quoted}b\"\"{quoted}\"{end}{end}z,3,{end}\u{feff}2014-06-04,4,\"\"{end}2014-06-05,5,"
            );
        let (good, bad) = read_all(
            &text,
            &Wishes {
                values: vec!["a".into()],
                ..wishes.clone()
            },
        )
        .unwrap();
        assert_eq!(good.len(), 3, "{good:?}");
        let lines: Vec<u64> = bad.iter().map(|bad| bad.line).collect();
        // The time in the last bad row begins with a byte order mark.
        assert_eq!(lines, [6, 11, 12], "{bad:?}");
    }
}

#[test]
fn random_bytes_never_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..2000 {
        let mut text = Vec::new();
        for _ in 0..(state % 200) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let alphabet = b"time,;\"\n\r0123-:TZ.NAx\xff";
            text.push(alphabet[(state % alphabet.len() as u64) as usize]);
        }
        state = state.wrapping_add(0x1234_5678_9abc_def1);
        let wishes = Wishes {
            header: state.is_multiple_of(2),
            ..Wishes::default()
        };
        let opened = Rows::open(
            &text[..],
            "x",
            &Format::default(),
            &wishes,
            Nulls::default(),
        );
        let Ok(rows) = opened else { continue };
        let (mut blocks, mut batch) = (rows.blocks.of_bytes(64), Batch::default());
        let mut known = Combinations::default();
        while let Ok(Some(block)) = blocks.next() {
            let _ = rows.reading.read(block, &mut known, &mut batch);
        }
    }
}
