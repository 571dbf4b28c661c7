//! Parquet and Arrow: what `export` writes, `import` reads, and so do files of other programs.

use crate::support::Folder;

/// The rows of a database as CSV.
fn rows(folder: &Folder, file: &str) -> String {
    folder.say(&format!("export {file}")).ok()
}

#[test]
fn an_export_is_imported_with_the_same_rows() {
    let folder = Folder::with_plant("typed_round_trip");
    let before = rows(&folder, "plant.tdl");
    for end in ["parquet", "arrow", "feather"] {
        let long = format!("long.{end}");
        let told = folder
            .say(&format!("export plant.tdl --output {long}"))
            .ok();
        assert!(told.contains("479 rows in"), "{told}");
        folder
            .say(&format!("import {end}1.tdl {long} --series series --quiet"))
            .ok();
        assert_eq!(rows(&folder, &format!("{end}1.tdl")), before);
        let wide = format!("wide.{end}");
        folder
            .say(&format!("export plant.tdl --wide --output {wide}"))
            .ok();
        folder
            .say(&format!("import {end}2.tdl {wide} --tag turbine --quiet"))
            .ok();
        let after = rows(&folder, &format!("{end}2.tdl"));
        // A row of null has no value to import.
        let missing = before.lines().filter(|line| line.ends_with(',')).count();
        assert_eq!(after.lines().count() + missing, before.lines().count());
        assert!(after.lines().all(|line| before.contains(line)), "{after}");
    }
    // Standard output takes the bytes, too; tags have columns beside the name of the series.
    let output = folder
        .command(&["export", "plant.tdl", "hb.wind", "--format", "parquet"])
        .output()
        .unwrap();
    std::fs::write(folder.path("wind.parquet"), output.stdout).unwrap();
    let query =
        "SELECT turbine, count(*) AS n, max(value) AS v FROM 'wind.parquet' GROUP BY 1 ORDER BY 1";
    let ran = folder.run(&["sql", "plant.tdl", "--mode", "csv", "-c", query]);
    assert_eq!(ran.ok(), "turbine,n,v\nA,120,9.5\nB,120,119.0\n");
}

#[test]
fn all_types_of_series_survive() {
    let folder = Folder::new("typed_columns");
    folder.write(
        "a.csv",
        "time,site,n,u,ok,price,note,raw,id,f\n\
         2014-06-01T00:00:00Z,A,-5,18446744073709551615,true,-1.25,\"a,\n\"\"b\"\"\",00ff,00112233-4455-6677-8899-aabbccddeeff,0.1\n\
         2014-06-01T00:00:00.001Z,B,9007199254740993,0,false,0.00, NA ,,00112233-4455-6677-8899-aabbccddeeff,NaN\n",
    );
    let columns = "n:i64,u:u64,ok:bool,price:decimal(2),note:string,raw:bytes?,id:guid,f:f32";
    let import = |file: &str, input: &str| {
        folder
            .run(&[
                "import",
                file,
                input,
                "--into",
                "log",
                "--tag",
                "site",
                "--unit",
                "ms",
                "--columns",
                columns,
                "--quiet",
            ])
            .ok();
    };
    import("a.tdl", "a.csv");
    folder.say("export a.tdl --output a.parquet").ok();
    import("b.tdl", "a.parquet");
    assert_eq!(rows(&folder, "b.tdl"), rows(&folder, "a.tdl"));
    let query = "SELECT arrow_typeof(time) AS t, arrow_typeof(n) AS n, arrow_typeof(u) AS u, arrow_typeof(price) AS p, raw FROM 'a.parquet' LIMIT 1";
    let types = folder
        .run(&["sql", "a.tdl", "--mode", "line", "-c", query])
        .ok();
    for part in [
        "Timestamp(ms, \"UTC\")",
        "n = Int64",
        "u = UInt64",
        "Decimal128(19, 2)",
        "00ff",
    ] {
        assert!(types.contains(part), "{part}: {types}");
    }
}

/// Writes a file of Parquet with a query.
fn write(folder: &Folder, file: &str, query: &str) {
    let copy = format!("COPY ({query}) TO '{file}'");
    folder.run(&["sql", "s.tdl", "--create", "-c", &copy]).ok();
}

#[test]
fn types_of_other_programs_are_imported() {
    let folder = Folder::new("typed_foreign");
    write(
        &folder,
        "odd.parquet",
        "SELECT arrow_cast(t, 'Timestamp(Microsecond, None)') AS at, arrow_cast(site, 'Dictionary(Int8, Utf8)') AS site,
         arrow_cast(n, 'Int8') AS i8, arrow_cast(n, 'Int16') AS i16, arrow_cast(n, 'Int32') AS i32, n AS i64,
         arrow_cast(n, 'UInt8') AS u8, arrow_cast(n, 'UInt16') AS u16, arrow_cast(n, 'UInt32') AS u32,
         arrow_cast(n, 'UInt64') AS u64, arrow_cast(n, 'Float32') AS f32, arrow_cast(n, 'Decimal128(38, 3)') AS dec,
         n > 3 AS ok, [n, 1] AS list, 'text' AS note, arrow_cast('7', 'Utf8') AS __index_level_0__,
         arrow_cast(NULL, 'Float64') AS gone
         FROM (VALUES ('2024-03-01T12:00:00.5', 'A', 7), ('2024-03-01T12:00:01', 'B', NULL), ('2024-03-01T12:00:02', NULL, 3)) AS v (t, site, n)",
    );
    let ran = folder.say("import a.tdl odd.parquet --tag site");
    assert!(ran.err.contains("not used: list, note"), "{}", ran.err);
    ran.ok();
    let text = rows(&folder, "a.tdl");
    for name in ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"] {
        let first = format!("\"{name}{{site=\"\"A\"\"}}\",2024-03-01T12:00:00.5Z,7\n");
        assert!(text.contains(&first), "{name}: {text}");
        assert!(
            text.contains(&format!("\n{name},2024-03-01T12:00:02Z,3\n")),
            "{name}: {text}"
        );
    }
    for line in [
        "f32,2024-03-01T12:00:02Z,3",
        "dec,2024-03-01T12:00:02Z,3",
        "ok,2024-03-01T12:00:02Z,false",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    assert!(
        !text.contains("gone") && !text.contains("site=\"\"B"),
        "{text}"
    );
    let series = folder.say("series a.tdl u64 --format csv").ok();
    assert!(series.contains("value:u64"), "{series}");
    // The dry run tells the types.
    let told = folder
        .say("import a.tdl odd.parquet --tag site --dry-run")
        .ok();
    assert!(
        told.contains("series u64") && told.contains("the first 3 rows"),
        "{told}"
    );
}

#[test]
fn times_of_all_units_with_and_without_zone_are_imported() {
    let folder = Folder::new("typed_times");
    for (number, (ty, zoned)) in [
        ("Timestamp(Second, None)", false),
        ("Timestamp(Millisecond, None)", false),
        ("Timestamp(Microsecond, None)", false),
        ("Timestamp(Nanosecond, None)", false),
        ("Timestamp(Second, Some(\"UTC\"))", true),
        ("Timestamp(Nanosecond, Some(\"Europe/Berlin\"))", true),
        ("Timestamp(Millisecond, Some(\"+05:30\"))", true),
        ("Date32", false),
        ("Date64", false),
    ]
    .into_iter()
    .enumerate()
    {
        let (file, base) = (format!("{number}.arrow"), format!("{number}.tdl"));
        let time = match zoned {
            true => "2024-07-01T00:00:00Z",
            false => "2024-07-01T00:00:00",
        };
        write(
            &folder,
            &file,
            &format!("SELECT 1.5 AS v, arrow_cast('{time}', '{ty}') AS made"),
        );
        folder
            .say(&format!("import {base} {file} --tz Europe/Berlin --quiet"))
            .ok();
        let expected = match zoned {
            true => "2024-07-01T00:00:00Z",
            false => "2024-06-30T22:00:00Z",
        };
        assert_eq!(
            rows(&folder, &base),
            format!("series,time,value\nv,{expected},1.5\n"),
            "{ty}"
        );
    }
    // A column of numbers can be the time, too.
    write(
        &folder,
        "epoch.parquet",
        "SELECT 1719792000 AS time, 2 AS v",
    );
    folder.say("import e.tdl epoch.parquet --quiet").ok();
    assert_eq!(
        rows(&folder, "e.tdl"),
        "series,time,value\nv,2024-07-01T00:00:00Z,2\n"
    );
}

#[test]
fn errors_name_rows_and_options() {
    let folder = Folder::new("typed_errors");
    write(
        &folder,
        "a.parquet",
        "SELECT arrow_cast(t, 'Timestamp(Second, None)') AS time, v FROM (VALUES ('2024-03-01T12:00:00', 1.5), (NULL, 2.5)) AS x (t, v)",
    );
    folder
        .say("import a.tdl a.parquet")
        .failed(5, &["a.parquet, row 2", "no time"]);
    assert!(!folder.path("a.tdl").exists());
    let ran = folder.say("import a.tdl a.parquet --on-error skip");
    assert!(ran.err.contains("row skipped"), "{}", ran.err);
    ran.ok();
    folder
        .say("import a.tdl a.parquet --delimiter ;")
        .failed(2, &["--delimiter"]);
    folder
        .say("import a.tdl - --format parquet")
        .failed(2, &["standard input"]);
    folder
        .say("import a.tdl missing.parquet")
        .failed(3, &["missing.parquet"]);
    folder.write("empty.parquet", "");
    folder
        .say("import a.tdl empty.parquet")
        .failed(5, &["empty.parquet"]);
    write(
        &folder,
        "none.parquet",
        "SELECT now() AS time, 1 AS v WHERE false",
    );
    let ran = folder.say("import a.tdl none.parquet");
    assert_eq!(ran.code, 5);
    assert!(ran.err.contains("no rows"), "{}", ran.err);
    folder
        .say("export a.tdl --times ms --output b.parquet")
        .failed(2, &["--times"]);
}
