//! Colours of the input.

use crate::command::names;
use crate::keywords::is_keyword;
use crate::lexer::{Kind, tokens};
use nu_ansi_term::{Color, Style};
use reedline::{Highlighter, StyledText};

/// Colours the input, or leaves it plain.
pub(super) struct Colors {
    pub on: bool,
}

impl Highlighter for Colors {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut styled = StyledText::new();
        if !self.on {
            styled.push((Style::new(), line.to_owned()));
            return styled;
        }
        if line.trim_start().starts_with('.') {
            let end = line.trim_end().find(' ').unwrap_or(line.len());
            let (name, rest) = line.split_at(end);
            let is_known = names().any(|known| known == name.trim());
            let style = if is_known {
                Color::Cyan.normal()
            } else {
                Style::new()
            };
            styled.push((style, name.to_owned()));
            styled.push((Style::new(), rest.to_owned()));
            return styled;
        }
        for token in tokens(line) {
            let text = &line[token.range];
            styled.push((style(token.kind, text), text.to_owned()));
        }
        styled
    }
}

fn style(kind: Kind, text: &str) -> Style {
    match kind {
        Kind::Word if is_keyword(text) => Color::Blue.bold(),
        Kind::String => Color::Green.normal(),
        Kind::Number => Color::Magenta.normal(),
        Kind::Comment => Style::new().dimmed(),
        Kind::Quoted => Color::Cyan.normal(),
        Kind::Space | Kind::Word | Kind::Semicolon | Kind::Other => Style::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_colour_and_no_text_is_lost() {
        let line = "select 'a' + 1 -- c";
        let styled = Colors { on: true }.highlight(line, 0);
        let text: String = styled
            .buffer
            .iter()
            .map(|(_, text)| text.as_str())
            .collect();
        assert_eq!(text, line);
        let style = |wanted: &str| {
            let found = styled.buffer.iter().find(|(_, text)| text == wanted);
            found.unwrap().0
        };
        assert_eq!(style("select"), Color::Blue.bold());
        assert_eq!(style("'a'"), Color::Green.normal());
        assert_eq!(style("1"), Color::Magenta.normal());
        assert_eq!(style("-- c"), Style::new().dimmed());
        assert_eq!(style("+"), Style::new());
    }

    #[test]
    fn known_commands_are_coloured() {
        let style = |line: &str| Colors { on: true }.highlight(line, 0).buffer[0].0;
        assert_eq!(style(".mode csv"), Color::Cyan.normal());
        assert_eq!(style(".mood csv"), Style::new());
        let plain = Colors { on: false }.highlight("select 1", 0);
        assert_eq!(plain.buffer, [(Style::new(), "select 1".to_owned())]);
    }
}
