use crate::support::Folder;

#[test]
fn the_terminal_picture_has_axes_and_dots() {
    let folder = Folder::with_plant("the_terminal_picture_has_axes_and_dots");
    let out = folder
        .run(&[
            "plot",
            "plant.tdl",
            r#"hb.wind{turbine="B"}"#,
            "--width",
            "60",
            "--height",
            "10",
        ])
        .ok();
    assert!(
        out.contains("120 points, 2014-06-01T00:00:00Z to 2014-06-01T01:59:00Z"),
        "{out}"
    );
    assert!(
        out.contains("100 ┤") && out.contains("└") && out.contains("01:00"),
        "{out}"
    );
    assert!(
        out.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)),
        "{out}"
    );
    assert!(out.lines().all(|line| line.chars().count() <= 70), "{out}");
    // A picture of several series has a legend.
    let out = folder
        .say("plot plant.tdl hb.wind hb.power --by 10m --fn max")
        .ok();
    assert!(
        out.contains("max of 48 windows") && out.contains(r#"hb.power{turbine="A"}"#),
        "{out}"
    );
}

#[test]
fn svg_and_png_files() {
    let folder = Folder::with_plant("svg_and_png_files");
    let out = folder
        .say("plot plant.tdl hb.wind --svg wind.svg --png wind.png")
        .ok();
    assert_eq!(out, "wrote wind.svg\nwrote wind.png\n");
    let svg = std::fs::read_to_string(folder.path("wind.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("hb.wind{turbine=&quot;A&quot;}"));
    let png = std::fs::read(folder.path("wind.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"));
    assert_eq!(png[16..24], [0, 0, 7, 128, 0, 0, 3, 192], "1920 x 960");
    let svg = folder
        .say("plot plant.tdl hb.wind --svg - --width 400 --height 200")
        .ok();
    assert!(svg.contains(r#"width="400" height="200""#) && svg.ends_with("</svg>\n"));
    folder
        .say("plot plant.tdl hb.wind --svg no/such/x.svg")
        .failed(3, &["no/such/x.svg"]);
    folder
        .say("plot plant.tdl hb.wind --by 1h --fn max-time")
        .failed(2, &["invalid value 'max-time'"]);
}

#[test]
fn millions_of_points_keep_their_spikes() {
    let folder = Folder::new("millions_of_points_keep_their_spikes");
    let mut csv = String::from("time,v\n");
    for second in 0..600_000 {
        let value = if second == 345_678 { "1000" } else { "1" };
        csv += &format!("{},{value}\n", 1_401_580_800 + second);
    }
    folder.write("a.csv", csv);
    folder.say("import a.tdl a.csv --quiet").ok();
    let svg = folder.say("plot a.tdl v --svg -").ok();
    assert!(svg.contains("600,000 points"), "{}", &svg[..600]);
    assert!(svg.contains(">1000</text>"), "the spike is lost");
    assert!(svg.len() < 400_000, "{}", svg.len());
}

#[test]
fn a_band_reaches_from_the_lowest_to_the_highest() {
    let folder = Folder::with_plant("a_band_reaches_from_the_lowest_to_the_highest");
    let svg = folder.say("plot plant.tdl hb.wind --band --svg -").ok();
    assert_eq!(svg.matches("fill-opacity").count(), 2, "{svg}");
    assert!(svg.contains("240 points"), "{svg}");
    folder
        .say("plot plant.tdl hb.wind --band --png band.png")
        .ok();
    folder.say("plot plant.tdl hb.wind --png line.png").ok();
    let read = |name: &str| std::fs::read(folder.path(name)).unwrap();
    assert_ne!(read("band.png"), read("line.png"));
}

#[test]
fn any_number_of_lines() {
    let folder = Folder::new("any_number_of_lines");
    let mut csv = String::from("time,n,v\n");
    for n in 0..300 {
        csv += &format!("2014-06-01,{n},{n}\n2014-06-02,{n},1\n");
    }
    folder.write("a.csv", csv);
    folder
        .say("import a.tdl a.csv --tag n --value v --quiet")
        .ok();
    let svg = folder.say("plot a.tdl v --svg -").ok();
    assert!(
        svg.contains("600 points") && svg.contains("and 276 more"),
        "{svg}"
    );
    let out = folder.say("plot a.tdl v").ok();
    assert!(out.lines().count() < 80, "{out}");
}

#[test]
fn unplottable_points_differ_from_no_points() {
    let folder = Folder::new("points_without_a_value_to_draw");
    folder.write("a.csv", "time,v\n2014-06-01,inf\n2014-06-02,-inf\n");
    folder.say("import a.tdl a.csv --quiet").ok();
    for line in [
        "plot a.tdl v",
        "plot a.tdl v --by 1h",
        "plot a.tdl v --band",
    ] {
        folder.say(line).failed(3, &["drawable value", "infinite"]);
    }
    folder
        .say("plot a.tdl v --from 2015-01-01")
        .failed(3, &["no point in this range"]);
}

/// Units come from annotations, and a second unit has an axis of its own.
#[test]
fn units_and_a_second_axis() {
    let folder = Folder::with_plant("units_and_a_second_axis");
    folder.say("annotate plant.tdl hb.wind --set unit=m/s").ok();
    folder.say("annotate plant.tdl hb.power --set unit=kW").ok();
    let svg = |words: &str| folder.say(&format!("plot plant.tdl {words} --svg -")).ok();
    let one = svg("hb.wind");
    assert!(
        one.contains(">m/s</text>") && !one.contains("right"),
        "{one}"
    );
    let two = svg("hb.wind hb.power");
    assert!(
        two.contains(">m/s</text>") && two.contains(">kW</text>"),
        "{two}"
    );
    assert!(
        two.contains("hb.power{turbine=&quot;A&quot;} [kW, right]"),
        "{two}"
    );
    let counts = svg("hb.wind --by 1h --fn count");
    assert!(!counts.contains("m/s"), "{counts}");
    let means = svg("hb.wind --by 1h --fn mean");
    assert!(means.contains(">m/s</text>"), "{means}");
    let text = folder
        .say("plot plant.tdl hb.wind hb.power --width 80")
        .ok();
    assert!(text.contains("m/s") && text.contains('├'), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    // A series of several columns is named with the column that is drawn.
    folder.write("log.csv", "time,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n");
    folder
        .say("import plant.tdl log.csv --into log --columns a:f64,b:f64 --quiet")
        .ok();
    assert!(svg("log --column a").contains(">log a</text>"));
}
