//! Colours of the output, used only on a terminal.

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

/// The colours of a stream; with colours off, text stays plain.
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

/// Colours of the lines of a plot, which can be distinguished with red-green colour blindness, too.
const LINES: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Green,
    AnsiColor::BrightBlue,
    AnsiColor::BrightRed,
];

impl Palette {
    /// The palette without colours.
    pub(crate) const PLAIN: Self = Self { on: false };

    /// The palette for text that is written to this stream, with colours if the stream is a terminal or the user wants
    /// them.
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

    /// True if text gets colours.
    #[cfg(feature = "sql")]
    pub(crate) fn is_on(self) -> bool {
        self.on
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

    /// Paints a text in the colour of the plot line with this index.
    pub(crate) fn line(self, index: usize, text: impl Display) -> String {
        self.paint(LINES[index % LINES.len()].on_default(), text)
    }
}

/// The colours that clap uses for `--help`.
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
