//! Prints expressions with as few parentheses as possible and one space around operators.

use super::Expression;
use super::token::is_plain;
use super::tree::{Literal, Node, Strength, Unary};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let printer = Printer {
            fields: &self.fields,
        };
        printer.node(&self.root, f)
    }
}

struct Printer<'e> {
    fields: &'e [String],
}

impl Printer<'_> {
    fn node(&self, node: &Node, f: &mut Formatter<'_>) -> fmt::Result {
        match node {
            Node::Literal(literal) => print_literal(literal, f),
            Node::Field(number) => match self.fields.get(*number) {
                Some(name) if is_plain(name) => f.write_str(name),
                Some(name) => {
                    f.write_char('$')?;
                    print_text(name, f)
                }
                None => f.write_str("null"),
            },
            Node::Time => f.write_str("time"),
            Node::Received => f.write_str("received"),
            Node::Unary(op, _, operand) => {
                f.write_char(match op {
                    Unary::Not => '!',
                    Unary::Negative => '-',
                })?;
                self.operand(operand, Strength::Unary, f)
            }
            Node::Binary(op, _, operands) => {
                // Sums and products are read from left to right; comparisons cannot be operands of comparisons.
                let strength = op.strength();
                let left = match strength {
                    Strength::Comparison => Strength::Sum,
                    strength => strength,
                };
                self.operand(&operands[0], left, f)?;
                write!(f, " {} ", op.symbol())?;
                self.operand(&operands[1], stronger(strength), f)
            }
            Node::All(_, operands) => self.joined(operands, " && ", Strength::Comparison, f),
            Node::Any(_, operands) => self.joined(operands, " || ", Strength::All, f),
            Node::In(_, value, items) => {
                self.operand(value, Strength::Sum, f)?;
                f.write_str(" in (")?;
                self.joined(items, ", ", Strength::Conditional, f)?;
                f.write_char(')')
            }
            Node::Conditional(_, parts) => {
                self.operand(&parts[0], Strength::Any, f)?;
                f.write_str(" ? ")?;
                self.node(&parts[1], f)?;
                f.write_str(" : ")?;
                self.node(&parts[2], f)
            }
            Node::Call(function, _, arguments) => {
                write!(f, "{}(", function.name())?;
                self.joined(arguments, ", ", Strength::Conditional, f)?;
                f.write_char(')')
            }
        }
    }

    /// Prints an operand, in parentheses if it has a lower precedence than `strength`.
    fn operand(&self, node: &Node, strength: Strength, f: &mut Formatter<'_>) -> fmt::Result {
        if node.strength() >= strength {
            return self.node(node, f);
        }
        f.write_char('(')?;
        self.node(node, f)?;
        f.write_char(')')
    }

    fn joined(
        &self,
        nodes: &[Node],
        between: &str,
        strength: Strength,
        f: &mut Formatter<'_>,
    ) -> fmt::Result {
        for (at, node) in nodes.iter().enumerate() {
            if at > 0 {
                f.write_str(between)?;
            }
            self.operand(node, strength, f)?;
        }
        Ok(())
    }
}

fn stronger(strength: Strength) -> Strength {
    match strength {
        Strength::Comparison => Strength::Sum,
        Strength::Sum => Strength::Product,
        _ => Strength::Unary,
    }
}

fn print_literal(literal: &Literal, f: &mut Formatter<'_>) -> fmt::Result {
    match literal {
        Literal::Null => f.write_str("null"),
        Literal::Bool(value) => value.fmt(f),
        Literal::Integer(number) => number.fmt(f),
        // The text always has a fraction or an exponent, and reads back as exactly the same float.
        Literal::Float(number) => write!(f, "{number:?}"),
        Literal::Text(text) => print_text(text, f),
    }
}

fn print_text(text: &str, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for letter in text.chars() {
        match letter {
            '"' | '\\' => write!(f, "\\{letter}")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            letter if letter.is_control() => write!(f, "\\u{{{:X}}}", u32::from(letter))?,
            letter => f.write_char(letter)?,
        }
    }
    f.write_char('"')
}
