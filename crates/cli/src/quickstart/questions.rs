//! Five questions about a year of weather, each answered by a different command.

use std::path::Path;

/// A question about the sample data, with the command that answers it.
pub(crate) struct Question {
    /// The question as text.
    pub text: &'static str,
    command: &'static str,
    /// The arguments of the command after the database file.
    arguments: &'static [&'static str],
}

impl Question {
    /// The words of the command line, without the name of the program.
    pub(crate) fn words(&self, file: &Path) -> Vec<String> {
        words(self.command, file, self.arguments)
    }
}

fn words(command: &str, file: &Path, arguments: &[&str]) -> Vec<String> {
    let mut words = vec![command.to_owned(), file.display().to_string()];
    words.extend(arguments.iter().map(|&argument| argument.to_owned()));
    words
}

pub(crate) fn all() -> &'static [Question] {
    &[
        Question {
            text: "How many temperatures has each airport, from when to when?",
            command: "series",
            arguments: &["weather.temp"],
        },
        Question {
            text: "How cold and how hot did it get (in degrees Fahrenheit), and when?",
            command: "aggregate",
            arguments: &["weather.temp", "--fn", "min,min-time,mean,max,max-time"],
        },
        Question {
            text: "How did the heat wave of July go at Kennedy airport, day by day?",
            command: "window",
            arguments: &[
                r#"weather.temp{origin="JFK"}"#,
                "--by",
                "1d",
                "--fn",
                "min,mean,max",
                "--from",
                "2013-07-14",
                "--to",
                "2013-07-21",
                "--tz",
                "America/New_York",
            ],
        },
        Question {
            text: "Newark once reports a wind of 1048 miles an hour. What stands around it?",
            command: "scan",
            arguments: &[
                r#"weather.wind_speed{origin="EWR"}"#,
                "--from",
                "2013-02-12T06:00:00Z",
                "--to",
                "2013-02-12T11:00:00Z",
            ],
        },
        Question {
            text: "What did LaGuardia measure last?",
            command: "latest",
            arguments: &[r#"weather.*{origin="LGA"}"#],
        },
    ]
}

/// The words of the command that plots a year of temperatures.
pub(crate) fn picture(file: &Path) -> Vec<String> {
    words("plot", file, &[r#"weather.temp{origin="JFK"}"#])
}

/// Commands that the user can try next.
pub(crate) fn to_try(file: &Path) -> Vec<Vec<String>> {
    let svg = file.with_file_name("pressure.svg").display().to_string();
    vec![
        words(
            "plot",
            file,
            &[
                "weather.pressure",
                "--from",
                "2013-01-30",
                "--to",
                "2013-02-02",
                "--svg",
                &svg,
            ],
        ),
        words(
            "window",
            file,
            &[
                "weather.precip",
                "--by",
                "1w",
                "--fn",
                "sum",
                "--format",
                "csv",
            ],
        ),
        words("stat", file, &[]),
        words("check", file, &[]),
    ]
}
