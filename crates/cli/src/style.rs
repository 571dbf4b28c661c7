//! Colours, on a terminal only.

use clap::ValueEnum;
use clap::builder::styling::{AnsiColor, Style, Styles};
use std::fmt::Display;
use std::io::IsTerminal;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Also into files and pipes
    Always,
    /// Not at all
    Never,
}

/// Colours of the output; plain text if colours are off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Palette {
    on: bool,
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const ERROR: Style = AnsiColor::Red.on_default().bold();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const COMMAND: Style = AnsiColor::Cyan.on_default();

/// Colours of the lines of a plot, distinguishable also with red-green colour blindness.
const LINES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::BrightBlue,
    AnsiColor::BrightRed,
];

impl Palette {
    /// No colours.
    pub(crate) const PLAIN: Self = Self { on: false };

    /// The colours for text that is written to this stream.
    pub(crate) fn of(when: ColorWhen, stream: &impl IsTerminal) -> Self {
        let on = match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => {
                stream.is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
            }
        };
        Self { on }
    }

    fn paint(self, style: Style, text: impl Display) -> String {
        if self.on {
            format!("{style}{text}{style:#}")
        } else {
            text.to_string()
        }
    }

    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint(BOLD, text)
    }

    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint(DIM, text)
    }

    pub(crate) fn error(self, text: impl Display) -> String {
        self.paint(ERROR, text)
    }

    pub(crate) fn warning(self, text: impl Display) -> String {
        self.paint(WARNING, text)
    }

    pub(crate) fn good(self, text: impl Display) -> String {
        self.paint(GOOD, text)
    }

    pub(crate) fn command(self, text: impl Display) -> String {
        self.paint(COMMAND, text)
    }

    /// The colour of the n-th line of a plot.
    pub(crate) fn line(self, index: usize, text: impl Display) -> String {
        self.paint(LINES[index % LINES.len()].on_default(), text)
    }
}

/// Colours of `--help`.
pub(crate) const fn help_styles() -> Styles {
    Styles::styled()
        .header(AnsiColor::Green.on_default().bold())
        .usage(AnsiColor::Green.on_default().bold())
        .literal(AnsiColor::Cyan.on_default().bold())
        .placeholder(AnsiColor::Cyan.on_default())
        .error(ERROR)
        .valid(GOOD)
        .invalid(WARNING)
}
